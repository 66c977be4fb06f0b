//! The commands of `os-upgrade`, except those that run an orchestrator. [`remote`] calls an orchestrator's API, [`lock`]
//! is about slots, of any FleetLock server and of an instance, and [`admin`] works with this machine's files, settings and NATS.

mod admin;
mod failure;
mod lock;
pub mod output;
mod remote;
pub mod rest;

use clap::Subcommand;

pub use self::failure::{EXIT_CODES, Failure};

/// Every command of this crate.
#[derive(Debug, Subcommand)]
#[expect(private_interfaces, reason = "the arguments are for clap and `run`")]
pub enum Command {
    /// Commands that call an instance's API.
    #[command(flatten)]
    Remote(remote::Command),
    /// FleetLock slots: run a command under one, list, hold and release them, test any server
    #[command(subcommand)]
    Lock(lock::Command),
    /// Commands that work with this machine.
    #[command(flatten)]
    Admin(admin::Command),
}

impl Command {
    /// The log filter used unless `RUST_LOG` is set; `None` if the command logs nothing.
    pub fn log_level(&self) -> Option<&'static str> {
        match self {
            Self::Remote(_) => None,
            Self::Lock(_) => Some("warn"),
            Self::Admin(command) => command.log_level(),
        }
    }
}

/// Runs `command`.
///
/// # Errors
/// The command failed.
pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Remote(command) => Ok(remote::run(command).await?),
        Command::Lock(command) => lock::run(command).await,
        Command::Admin(command) => admin::run(command).await,
    }
}
