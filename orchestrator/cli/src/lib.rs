//! The commands of `os-upgrade`, except those that run an orchestrator. [`remote`] calls an orchestrator's API, [`lock`]
//! is about slots, of any FleetLock server and of an instance, and [`admin`] works with this machine's files, settings and NATS.

/// The examples at the end of a command's help.
macro_rules! examples {
    ($($example:literal),+ $(,)?) => { concat!("Examples:", $("\n  os-upgrade ", $example),+) };
}

mod address;
mod admin;
pub mod arguments;
mod consent;
mod contexts;
pub mod dev_site;
mod failure;
mod leadership;
pub mod lines;
mod lock;
mod moment;
pub mod output;
mod remote;
pub mod rest;
mod text_file;

use anstream::{AutoStream, ColorChoice};
use clap::Subcommand;

pub use self::address::DEFAULT_URL;
pub use self::failure::Failure;
pub use self::remote::events::Events;

/// What the program's `--help` says at its end.
pub const HELP: &str = "\
Examples:
  os-upgrade dev
  os-upgrade status
  os-upgrade run start --watch
  os-upgrade hosts list
  os-upgrade context add prod --url https://upgrade.example:8646 --ca ca.pem --token-file ~/.prod-token

Which instance a command calls: --url or --context; else OS_UPGRADE_URL; else the current context; else
http://127.0.0.1:8646. OS_UPGRADE_TOKEN and OS_UPGRADE_CA come after --token-file and --ca, and before what the context
has. Each command lists its options; global ones may also come first: os-upgrade --context prod status. NO_COLOR turns
colours off, COLUMNS sets the width of tables.

Exit codes:
  0  done
  1  failed, by a command that changes nothing, or the run that was watched failed
  2  wrong usage, or a file or setting that cannot be used
  3  the run that was watched timed out
  4  the run that was watched was cancelled
  5  the change was certainly not made: it was refused, or nothing could be reached
  6  the change may have been made, or may still be made: check the state
  7  the run that was watched completed, and not every host in it was upgraded";

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
    console::set_colors_enabled(AutoStream::choice(&std::io::stdout()) == ColorChoice::Always);
    console::set_colors_enabled_stderr(AutoStream::choice(&std::io::stderr()) == ColorChoice::Always);
    match command {
        Command::Remote(command) => remote::run(command).await,
        Command::Lock(command) => lock::run(command).await,
        Command::Admin(command) => Box::pin(admin::run(command)).await,
    }
}
