//! `os-upgrade lock`: FleetLock slots from the command line, of our server and of others.

mod conformance;
mod history;
mod list;
mod operator;
mod run;
mod signals;
mod slot;
mod tls;

use clap::Subcommand;
use os_upgrade_kernel::{ClientId, ClientIdError};

use super::Failure;

/// Where the API tells of slots.
const STATE: &str = "/v1/state/fleet-lock";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a command while a slot is held, of any FleetLock server
    ///
    /// It waits for a slot of the group, runs the command, and gives the slot back however the command ends. SIGINT,
    /// SIGTERM and SIGHUP are handed on to the command. The slot is not given back when this program is killed with
    /// SIGKILL; until an operator releases it, it stays taken.
    Run(run::Run),
    /// Show who holds slots, since when and why, and who waits for one
    List(list::List),
    /// Show which slots operators have held and released, and why
    History(history::Options),
    /// Hold a slot in somebody's name until it is released
    Hold(operator::Order),
    /// Release a slot, of a host or of a FleetLock client; not while its host is at work
    Release(operator::Order),
    /// Release the slot of a host that has left the inventory, where the settings allow that
    Forget(operator::Slot),
    /// Examine any FleetLock server: one row for each case, with what was expected and what it answered
    ///
    /// It asks under ids of its own and takes slots of one group, which must have a free one, for as long as a case
    /// needs them; all are given back, also on Ctrl-C. In a group that others use meanwhile, cases may be disturbed.
    /// It ends with 0 when no case failed.
    Conformance(conformance::Options),
}

/// Carries the command out.
pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(options).await,
        Command::List(options) => Ok(list::run(options).await?),
        Command::History(options) => Ok(history::run(options).await?),
        Command::Hold(order) => Ok(operator::hold(order).await?),
        Command::Release(order) => Ok(operator::release(order).await?),
        Command::Forget(slot) => Ok(operator::forget(slot).await?),
        Command::Conformance(options) => Ok(conformance::run(options).await?),
    }
}

fn client_id(text: &str) -> Result<ClientId, ClientIdError> {
    ClientId::new(text)
}
