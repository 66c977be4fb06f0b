//! `os-upgrade dev`: a whole site on one machine. This module starts and ends the parts in order; the parts are in the
//! modules below.

mod api;
mod host;
mod progress;
mod upgrade;
mod worker;

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use os_upgrade_cli::output::outln;
use os_upgrade_cli::{DEFAULT_URL, Events, Failure, dev_site};
use os_upgrade_console::commands::quoted;
use os_upgrade_credentials::Access;
use os_upgrade_nats_config::NatsConfig;
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::HostName;
use os_upgrade_settings::{NatsMode, NatsUrls, Settings};
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::serve::{Setup, with_nats};
use api::Api;
use host::DemoHost;
use worker::Workers;

/// How long a host takes for one step of its work. Preparing has two, an upgrade three.
const STEP: Duration = Duration::from_secs(1);
/// How long the orchestrator may take to end after it was asked to.
const END_WAIT: Duration = Duration::from_secs(30);

/// The arguments of `os-upgrade dev`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// How many hosts to run, named h01, h02, ...
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=200))]
    hosts: u16,
    /// Upgrade all hosts once, show the progress, and exit; exit code 0 only if the run completed
    #[arg(long)]
    once: bool,
    /// How many times faster than usual the hosts work: usually a host takes about 5 s. With --once the default is 1000
    #[arg(long, value_name = "FACTOR", default_value = "1", default_value_if("once", "true", "1000"), value_parser = speed)]
    speed: f64,
    /// The directory for the hosts, the history and the nats-server's data
    #[arg(long, value_name = "DIR", default_value = dev_site::DATA_DIRECTORY)]
    data_dir: PathBuf,
    /// For your own NATS, at `OS_UPGRADE_NATS__URL`: the directory of `os-upgrade nats-config`, with credentials for the
    /// orchestrator and each host
    #[arg(long, value_name = "DIR")]
    nats_config: Option<PathBuf>,
    /// The address and port of the API; by default `[api] listen`
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

impl Options {
    /// Applies these arguments to `settings`, which come from defaults and environment.
    pub(super) fn settings(&self, mut settings: Settings) -> Settings {
        settings.store.path.clone_from(&self.data_dir);
        settings.api.listen = self.listen.unwrap_or(settings.api.listen);
        // The client and the printed commands use plain HTTP, which never leaves this machine.
        settings.api_tls = Settings::default().api_tls;
        // Whoever starts the demo hosts also approves them.
        settings.site.auto_approve = true;
        if let Some(directory) = &self.nats_config {
            let config = NatsConfig::new(directory);
            settings.nats.credentials.get_or_insert_with(|| config.orchestrator_credentials());
            settings.nats.ca.get_or_insert_with(|| config.ca());
        }
        settings
    }

    /// What the worker of `host` presents to NATS.
    fn access_of(&self, host: &str, settings: &Settings) -> anyhow::Result<Access> {
        let orchestrator = settings.nats.access();
        let credentials = match (settings.nats.mode(), &self.nats_config) {
            (NatsMode::Managed, Some(_)) => {
                bail!("--nats-config is for your own NATS: set OS_UPGRADE_NATS__URL to its address")
            }
            (NatsMode::External { .. }, None) if orchestrator.credentials.is_some() => bail!(
                "the hosts would have no credentials for this NATS: give the directory of `os-upgrade nats-config` as \
                 --nats-config, or unset OS_UPGRADE_NATS__URL and OS_UPGRADE_NATS__CREDENTIALS for a nats-server of dev's own"
            ),
            (NatsMode::Managed | NatsMode::External { .. }, None) => None,
            (NatsMode::External { urls }, Some(directory)) => {
                let file = NatsConfig::new(directory).host_credentials(&HostName::new(host)?);
                if !file.is_file() {
                    bail!(
                        "{host} has no credentials in {}: create them with `os-upgrade nats-config host {host} --dir {} --nats {urls}`",
                        file.display(),
                        directory.display()
                    );
                }
                Some(file)
            }
        };
        // Each worker has its own working directory, so paths must be absolute.
        let absolute = |file: Option<PathBuf>| file.map(std::path::absolute).transpose();
        Ok(Access {
            credentials: absolute(credentials)?,
            ca: absolute(orchestrator.ca)?,
            certificate: absolute(orchestrator.certificate)?,
            key: absolute(orchestrator.key)?,
        })
    }
}

/// Parses a factor of the speed.
fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.01..=1000.0).contains(factor));
    factor.ok_or_else(|| "a number from 0.01 to 1000 is expected".to_owned())
}

/// Runs the site until `shutdown`, or with `--once` until its upgrade has ended.
pub(super) async fn run(
    mut settings: Settings,
    options: &Options,
    shutdown: CancellationToken,
) -> Result<(), Failure> {
    if settings.api.listen.port() == 0 {
        return Err(anyhow!("dev needs a fixed port; --listen {} has none", settings.api.listen).into());
    }
    let program = worker::find_program()?;
    let step = STEP.div_f64(options.speed);
    let hosts = DemoHost::create_all(&options.data_dir, options.hosts, step)?;
    let access = hosts.iter().map(|host| options.access_of(&host.name, &settings));
    let access = access.collect::<anyhow::Result<Vec<_>>>()?;
    let api = Api::new(settings.api.listen)?;
    let setup = Setup::from_settings(&settings).await?;
    let chosen = settings.clone();
    let bus = with_nats::start(&mut settings).await.map_err(with_advice)?;
    dev_site::write(&chosen).context("cannot leave the configuration for `os-upgrade doctor`")?;
    let nats = servers(&settings)?;

    let end = CancellationToken::new();
    let (_, no_changes) = watch::channel(settings.for_kernel());
    let mut orchestrator = tokio::spawn(with_nats::serve(settings, setup, no_changes, bus, end.clone()));
    let workers = Workers::start(&program, &nats.servers().join(","), &hosts, &access);
    let result = tokio::select! {
        result = upgrade_or_wait(&api, &hosts, &nats, options) => result,
        () = shutdown.cancelled() => interrupted(options.once).map_err(Failure::from),
        served = &mut orchestrator => {
            workers.stop().await;
            return Err(served_until(served).into());
        }
    };
    workers.stop().await;
    end.cancel();
    let ended = tokio::time::timeout(END_WAIT, orchestrator).await;
    let late = || format!("the orchestrator did not end within {} s", END_WAIT.as_secs());
    let served = ended.with_context(late)?.map_err(anyhow::Error::from)?;
    result?;
    Ok(served?)
}

/// Why the site ends before it should.
fn served_until(served: Result<anyhow::Result<()>, JoinError>) -> anyhow::Error {
    const ENDED: &str = "the orchestrator has stopped";
    match served {
        Ok(Ok(())) => anyhow!(ENDED),
        Ok(Err(error)) => error.context(ENDED),
        Err(panicked) => anyhow::Error::from(panicked).context(ENDED),
    }
}

/// Sets the site up, then upgrades it once, or prints what happens there.
async fn upgrade_or_wait(
    api: &Api,
    hosts: &[DemoHost],
    nats: &NatsUrls,
    options: &Options,
) -> Result<(), Failure> {
    upgrade::set_up(api, hosts).await?;
    if options.once {
        return Ok(upgrade::once(api, hosts).await?);
    }
    let events = Events::from_now(api.base()).await?;
    explain_use(api, hosts, nats, &options.data_dir);
    events.print().await
}

fn with_advice(error: anyhow::Error) -> anyhow::Error {
    let cause = error.downcast_ref::<managed_nats::Error>();
    if !matches!(cause, Some(managed_nats::Error::InUse { .. })) {
        return error;
    }
    anyhow!(
        "{error:#}: another `os-upgrade dev` runs there; give this one a directory of its own with --data-dir"
    )
}

fn interrupted(once: bool) -> anyhow::Result<()> {
    if once {
        bail!("interrupted before the run ended");
    }
    Ok(())
}

fn servers(settings: &Settings) -> anyhow::Result<NatsUrls> {
    match settings.nats.mode() {
        NatsMode::External { urls, .. } => Ok(urls.clone()),
        NatsMode::Managed => bail!("the managed nats-server is not up"),
    }
}

fn explain_use(api: &Api, hosts: &[DemoHost], nats: &NatsUrls, data_dir: &Path) {
    let base = api.base().to_string();
    let base = base.trim_end_matches('/');
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    outln!("{} hosts run: {}. Their files: {}", hosts.len(), names.join(", "), hosts[0].parent().display());
    outln!("NATS is at {nats}");
    let url = managed_nats::url_file(&data_dir.join("nats"));
    if url.is_file() {
        outln!("For your own workers: export OS_UPGRADE_NATS_URL=$(cat {})", url.display());
    }
    outln!("The API is described at {base}/docs/");
    outln!();
    let program = env::args_os().next().unwrap_or_else(|| "os-upgrade".into());
    let program = program.to_string_lossy();
    let program = quoted(&program);
    if base != DEFAULT_URL {
        outln!("Tell the commands: export OS_UPGRADE_URL={base}");
    }
    outln!("Upgrade the hosts: {program} run start --watch");
    outln!("What goes on:      {program} status --watch");
    outln!("What they run:     {program} hosts list -o wide");
    outln!("What happened:     {program} run show last");
    outln!("Let a host fail:   touch {}", quoted(&hosts[hosts.len() - 1].failure_file().to_string_lossy()));
    outln!("Why it failed:     {program} run logs");
    outln!("Check everything:  {program} doctor{}", doctor_options(data_dir));
    outln!();
    outln!("Ctrl-C ends everything; the state is kept. What happens until then:");
}

/// What `os-upgrade doctor` needs to be told of the site in `data_dir`.
fn doctor_options(data_dir: &Path) -> String {
    if data_dir == Path::new(dev_site::DATA_DIRECTORY) {
        return String::new();
    }
    format!(" --config {}", quoted(&dev_site::file(data_dir).to_string_lossy()))
}

#[cfg(test)]
mod tests;
