//! `os-upgrade lock`: FleetLock slots from the command line, of our server and of others.

mod conformance;
mod credentials;
mod history;
mod list;
mod operator;
mod run;
mod signals;
mod slot;
mod tls;
mod unlock;

use clap::Subcommand;

use crate::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while a slot is held, of any FleetLock server
    ///
    /// It waits for a slot of the group, runs the command, and gives the slot back however the command ends. SIGINT,
    /// SIGTERM, SIGHUP and SIGQUIT are handed on to the command, but those that are ignored from the start stay so, as
    /// with nohup. When another signal ends this program, such as SIGKILL or SIGUSR1, the slot stays taken until
    /// somebody gives it back.
    Run(run::Run),
    /// Give a slot back to any FleetLock server, as its holder does
    ///
    /// It asks once, and ends with 0 when the server has confirmed that the slot is not held any more.
    Unlock(unlock::Unlock),
    /// Show who holds slots, since when and why, and who waits for one
    List(list::List),
    /// Show which slots operators have held and released, and why
    History(history::Options),
    /// Hold a slot in somebody's name until it is released
    ///
    /// It keeps the slot from everybody else. It does not stop whoever has that name: a host holds the slot then, so
    /// that it is the first to be upgraded, and a client that asks is granted it.
    Hold(operator::Order),
    /// Release a slot, of a host or of a FleetLock client; not in a run that needs it
    ///
    /// A host whose run has ended may still be at work: look first.
    Release(operator::Order),
    /// Release the slot of a host that has left the inventory, where the settings allow that
    Forget(operator::Slot),
    /// Examine any FleetLock server: one row for each case, with what was expected and what it answered
    ///
    /// It asks under ids of its own and takes slots of one group, which must have a free one, for as long as a case
    /// needs them; all are given back, also on Ctrl-C. In a group that others use meanwhile, cases may be disturbed.
    /// A server that has no time and says until when is asked again then. It ends with 0 when no case failed.
    Conformance(conformance::Options),
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(options).await,
        Command::Unlock(options) => unlock::run(options).await,
        Command::List(options) => Ok(list::run(options).await?),
        Command::History(options) => Ok(history::run(options).await?),
        Command::Hold(order) => Ok(operator::hold(order).await?),
        Command::Release(order) => Ok(operator::release(order).await?),
        Command::Forget(slot) => Ok(operator::forget(slot).await?),
        Command::Conformance(options) => conformance::run(options).await,
    }
}
