//! Options that several commands share, and the parsers of their values.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use os_upgrade_worker_sdk::GroupName;

/// The NATS servers, and the credentials and certificates for them.
#[derive(Debug, Args)]
pub(crate) struct NatsArgs {
    /// NATS server, nats://USER:PASSWORD@HOST:PORT, of which only HOST is required; several are separated by commas
    #[arg(
        id = "nats",
        long = "nats",
        value_name = "URL",
        env = "OS_UPGRADE_NATS_URL",
        hide_env_values = true,
        value_parser = nats_url
    )]
    pub(crate) url: String,

    /// Credentials for NATS (.creds), as `os-upgrade nats-config` creates them: those of this host, or for `check` those
    /// of an orchestrator; the file may be replaced while the program runs
    #[arg(long, value_name = "FILE", env = "OS_UPGRADE_NATS_CREDENTIALS")]
    pub(crate) credentials: Option<PathBuf>,

    /// Certificates, in PEM, of the authorities to trust for NATS, instead of the system's; requires TLS
    #[arg(long, value_name = "FILE", env = "OS_UPGRADE_NATS_CA")]
    pub(crate) tls_ca: Option<PathBuf>,

    /// Client certificate for NATS, in PEM, followed by its intermediate certificates
    #[arg(long, value_name = "FILE", env = "OS_UPGRADE_NATS_CERTIFICATE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of that certificate, in PEM, not encrypted
    #[arg(long, value_name = "FILE", env = "OS_UPGRADE_NATS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// The options of every worker, whatever the kind of host.
#[derive(Debug, Args)]
#[expect(clippy::doc_markdown, reason = "these texts are shown to users unformatted")]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) nats: NatsArgs,

    /// Name of the host; this machine's name if neither this nor SYS_HOST is given
    #[arg(long, value_name = "NAME", env = "SYS_HOST")]
    pub(crate) host: Option<String>,

    /// Worker application that this is an instance of, as configured at the orchestrator
    #[arg(long, value_name = "NAME")]
    pub(crate) application: String,

    /// FleetLock group whose slot the host needs [default: the site's default group]
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<GroupName>,

    /// Directory of the worker's state; it must survive a reboot
    #[arg(long, value_name = "DIR", default_value = "/var/lib/os-upgrade-worker")]
    pub(crate) state_dir: PathBuf,

    /// File that contains the boot id [default: the kernel's, /proc/sys/kernel/random/boot_id]
    #[arg(long, value_name = "FILE")]
    pub(crate) boot_id_file: Option<PathBuf>,

    /// How long a reboot may take to end this process before it is tried again
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = positive_duration)]
    pub(crate) reboot_wait: Duration,

    /// Directory below which configurations from the orchestrator may have files, an absolute path without links; may be
    /// given several times. The host then takes configurations of files
    #[arg(long = "config-root", value_name = "DIR")]
    pub(crate) config_roots: Vec<PathBuf>,

    /// Label of the host; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,

    /// Address at which operators can reach the host; may be given several times
    #[arg(long = "address", value_name = "ADDRESS")]
    pub(crate) addresses: Vec<String>,
}

fn nats_url(text: &str) -> Result<String, String> {
    for part in text.split(',') {
        if part.trim().is_empty() {
            let advice =
                "give the address of a nats-server, such as nats://HOST:4222, here or in OS_UPGRADE_NATS_URL";
            return Err(advice.to_owned());
        }
        part.trim().parse::<async_nats::ServerAddr>().map_err(|error| error.to_string())?;
    }
    Ok(text.to_owned())
}

/// Parses a duration greater than zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() {
        return Err("it must be greater than zero".to_owned());
    }
    Ok(duration)
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("it should be KEY=VALUE".to_owned()),
    }
}
