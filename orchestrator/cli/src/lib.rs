//! The commands of `os-upgrade`, except those that run an orchestrator. [`remote`] calls an orchestrator's API, [`lock`]
//! calls any FleetLock server, and [`admin`] works with this machine's files, settings and NATS.

mod admin;
mod failure;
mod lock;
pub mod output;
mod remote;
pub mod rest;

use std::env::vars_os;

use clap::Subcommand;
use os_upgrade_settings as settings;

use self::admin::{doctor, nats_config, recovery, token};
pub use self::failure::{EXIT_CODES, Failure};
use self::remote::{cluster, hosts, strongbox};

/// Every command of this crate.
#[derive(Debug, Subcommand)]
#[expect(private_interfaces, reason = "the arguments are for clap and `run`")]
pub enum Command {
    /// Show the instances of a site
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// List the hosts of a site, and decide which take part in runs
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Manage the site's secrets, and the key that seals them
    #[command(subcommand)]
    Strongbox(strongbox::Command),
    /// FleetLock slots: run a command under one, list, hold and release them, test any server
    #[command(subcommand)]
    Lock(lock::Command),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Configure NATS so that no host can speak for another: keys, accounts, certificates, credentials
    #[command(subcommand)]
    NatsConfig(nats_config::Command),
    /// Check everything the site needs, and print what is wrong and what to do
    ///
    /// It changes nothing, and neither orchestrator nor NATS has to be running; streams are checked if NATS answers. It
    /// exits with 0 if there is no problem, even if there are warnings.
    Doctor(doctor::Doctor),
    /// Write everything of a site to one file, while it runs
    ///
    /// History and state are of one moment: the file has every change that was acknowledged before the backup began.
    Backup(recovery::Backup),
    /// Restore a site from a backup, or from the store after NATS has lost data
    ///
    /// Stop all orchestrators of the site first. An active run ends as failed, and every host that may be at work keeps
    /// its slot. If it is interrupted, run it again.
    Restore(recovery::Restore),
    /// Print a configuration file with every key, its help and its default
    DefaultConfig,
}

impl Command {
    /// The log filter used unless `RUST_LOG` is set; `None` if the command logs nothing.
    pub fn log_level(&self) -> Option<&'static str> {
        match self {
            Self::Lock(_) | Self::Token(_) | Self::Backup(_) | Self::Restore(_) => Some("warn"),
            Self::NatsConfig(_) | Self::Doctor(_) => Some("off"),
            Self::Cluster(_) | Self::Hosts(_) | Self::Strongbox(_) | Self::DefaultConfig => None,
        }
    }
}

/// Runs `command`.
///
/// # Errors
/// The command failed.
pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Cluster(command) => Ok(cluster::run(command).await?),
        Command::Hosts(command) => Ok(hosts::run(command).await?),
        Command::Strongbox(command) => Ok(strongbox::run(command).await?),
        Command::Lock(command) => lock::run(command).await,
        Command::Token(command) => token::run(command),
        Command::NatsConfig(command) => nats_config::run(command).await,
        Command::Doctor(options) => {
            let settings = settings::load(options.config.as_deref(), vars_os());
            Ok(doctor::run(settings, options).await?)
        }
        Command::Backup(options) => {
            let settings = settings::load(options.config.as_deref(), vars_os())?;
            Ok(Box::pin(recovery::back_up(settings, options)).await?)
        }
        Command::Restore(options) => {
            let settings = settings::load(options.config.as_deref(), vars_os())?;
            Ok(Box::pin(recovery::restore(settings, options)).await?)
        }
        Command::DefaultConfig => {
            outln!("{}", settings::default_file().trim_end());
            Ok(())
        }
    }
}
