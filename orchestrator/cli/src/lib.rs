//! The commands of `os-upgrade` but those that run an orchestrator: [`remote`] asks one over its API, [`lock`] any
//! FleetLock server, and [`admin`] has what needs the machine itself: its files, its settings, its NATS.

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
    /// Look at the instances of a site
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// The hosts of a site: list them, and say which take part in runs
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Secrets that the site keeps, and the key to them
    #[command(subcommand)]
    Strongbox(strongbox::Command),
    /// FleetLock slots: run a command under one, list, hold and release them, examine any server
    #[command(subcommand)]
    Lock(lock::Command),
    /// Say who may call the API: make tokens, list and revoke them
    #[command(subcommand)]
    Token(token::Command),
    /// NATS in which no host can speak for another: keys, accounts, certificates, credentials, configurations
    #[command(subcommand)]
    NatsConfig(nats_config::Command),
    /// Look at everything the site needs, and say what is wrong and what to do
    ///
    /// It changes nothing and needs nothing to run; streams are looked at where NATS answers. It ends with 0 when there
    /// is no problem, warnings or not.
    Doctor(doctor::Doctor),
    /// Write everything of a site to one file, while it runs
    ///
    /// History and state are of one moment: everything that had been answered when it began is in it.
    Backup(recovery::Backup),
    /// Go on from a backup, or from the store after NATS has lost data
    ///
    /// No orchestrator of the site may run. An active run ends as failed, and every host that may be at work keeps its
    /// slot. It can be run again when it was cut off.
    Restore(recovery::Restore),
    /// Print a configuration file with every key, its help and its default
    DefaultConfig,
}

impl Command {
    /// What the command logs unless `RUST_LOG` says otherwise; nothing, where it says everything itself.
    pub fn log_level(&self) -> Option<&'static str> {
        match self {
            Self::Lock(_) | Self::Token(_) | Self::Backup(_) | Self::Restore(_) => Some("warn"),
            Self::NatsConfig(_) | Self::Doctor(_) => Some("off"),
            Self::Cluster(_) | Self::Hosts(_) | Self::Strongbox(_) | Self::DefaultConfig => None,
        }
    }
}

/// Carries out `command`.
///
/// # Errors
/// Why it did not do what it should.
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
