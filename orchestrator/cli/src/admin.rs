//! Commands that work with this machine's files, settings and NATS.

mod doctor;
mod nats_config;
mod recovery;
mod token;

use std::env::vars_os;

use clap::Subcommand;
use os_upgrade_settings as settings;

use crate::failure::Failure;
use crate::outln;

/// Every command of this folder.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Configure NATS so that no host can speak for another: keys, accounts, certificates, credentials
    #[command(subcommand)]
    NatsConfig(nats_config::Command),
    /// Check everything the site needs, and print what is wrong and what to do
    ///
    /// It changes nothing, and neither orchestrator nor NATS has to be running; streams are checked if NATS answers. It
    /// exits with 0 if there is no problem, even if there are warnings. It checks this machine with --config, with the
    /// configuration of `os-upgrade dev` if that runs in the same directory, or with `OS_UPGRADE_<SECTION>__<KEY>` variables, in
    /// this order. It asks an instance over its API with --url or --context, or if there are no such settings and `OS_UPGRADE_URL` or
    /// the current context names one; then it leaves out what only the machine shows, such as files and the rights in NATS. On
    /// standard error it says first which it checks, and why.
    #[command(after_help = examples![
        "doctor", "doctor --config /etc/os-upgrade/os-upgrade.toml", "doctor --url https://upgrade.example:8646 --ca ca.pem"
    ])]
    Doctor(doctor::Doctor),
    /// Write everything of a site to one file, while it runs
    ///
    /// History and state are of one moment: the file has every change that was acknowledged before the backup began.
    #[command(after_help = examples!["backup site.tar --config /etc/os-upgrade/os-upgrade.toml"])]
    Backup(recovery::Backup),
    /// Restore a site from a backup, or from the store after NATS has lost data
    ///
    /// Stop all orchestrators of the site first. An active run ends as failed, and every host that may be at work keeps
    /// its slot. If it is interrupted, run it again.
    #[command(after_help = examples![
        "restore site.tar --dry-run --config /etc/os-upgrade/os-upgrade.toml",
        "restore --from-store --config /etc/os-upgrade/os-upgrade.toml",
    ])]
    Restore(recovery::Restore),
    /// Print a configuration file with every key, its help and its default
    #[command(after_help = examples!["default-config"])]
    DefaultConfig,
}

impl Command {
    /// The log filter used unless `RUST_LOG` is set; `None` if the command logs nothing.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self {
            Self::Token(_) | Self::Backup(_) | Self::Restore(_) => Some("warn"),
            Self::NatsConfig(_) | Self::Doctor(_) => Some("off"),
            Self::DefaultConfig => None,
        }
    }
}

/// Runs `command`.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Token(command) => token::run(command),
        Command::NatsConfig(command) => nats_config::run(command).await,
        Command::Doctor(options) => Box::pin(doctor::run(options)).await,
        Command::Backup(options) => {
            let settings = settings::load(options.config.as_deref(), vars_os())?;
            Box::pin(recovery::back_up(settings, options)).await
        }
        Command::Restore(options) => {
            let settings = settings::load(options.config.as_deref(), vars_os())?;
            Box::pin(recovery::restore(settings, options)).await
        }
        Command::DefaultConfig => {
            outln!("{}", settings::default_file().trim_end());
            Ok(())
        }
    }
}
