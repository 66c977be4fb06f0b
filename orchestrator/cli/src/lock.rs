//! `os-upgrade lock`: FleetLock slots from the command line, of os-upgrade's server and of others.

mod conformance;
mod credentials;
mod history;
mod list;
mod operator;
mod run;
mod server;
mod signals;
mod slot;
mod tls;
mod unlock;

use clap::Subcommand;

use crate::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding a slot of any FleetLock server
    ///
    /// It waits for a slot of the group, runs the command, and gives the slot back however the command ends. SIGINT,
    /// SIGTERM, SIGHUP and SIGQUIT are passed on to the command, unless they were ignored at the start, as under nohup. If
    /// any other signal kills this program, such as SIGKILL or SIGUSR1, the slot stays taken until somebody gives it back.
    Run(run::Run),
    /// Give a slot back to any FleetLock server, as its holder does
    ///
    /// It sends one request, and exits with 0 if the server confirms that the slot is not held any more.
    #[command(after_help = examples!["lock unlock --group workers --id backup-job"])]
    Unlock(unlock::Unlock),
    /// Show who holds slots, since when and why, and who waits for one
    #[command(after_help = examples!["lock list", "lock list --group workers -o json"])]
    List(list::List),
    /// Show which slots operators held and released, and why
    #[command(after_help = examples!["lock history", "lock history --clients --limit 10"])]
    History(history::Options),
    /// Hold a slot for a host or client until it is released
    ///
    /// It keeps the slot from everybody else, but not from the host or client of that name: the host has its slot already,
    /// so it is the first to be upgraded, and a client is granted the slot.
    #[command(after_help = examples!["lock hold --id h01 --reason 'its disk is being replaced'"])]
    Hold(operator::Order),
    /// Release a slot of a host or of a FleetLock client; refused while the active run needs it
    ///
    /// A host whose run has ended may still be at work: check first.
    #[command(after_help = examples!["lock release --group default --id h01 --reason 'power supply failed'"])]
    Release(operator::Order),
    /// Release the slot of a host that has left the inventory, where the settings allow that
    #[command(after_help = examples!["lock forget --group default --id h01"])]
    Forget(operator::Slot),
    /// Test any FleetLock server: print a row per case, with the expected and the actual response
    ///
    /// It uses ids of its own, and takes slots of one group, which must have a free one, for as long as a case needs them.
    /// All are given back, even on Ctrl-C. Other clients of the group can disturb cases. If the server is busy and sends
    /// Retry-After, it is asked again after that time. It exits with 0 if no case failed.
    #[command(after_help = examples![
        "lock conformance --url http://lock.example:8080",
        "lock conformance --url http://127.0.0.1:8646 --strict --slots 1",
    ])]
    Conformance(conformance::Options),
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(options).await,
        Command::Unlock(options) => unlock::run(options).await,
        Command::List(options) => list::run(options).await,
        Command::History(options) => history::run(options).await,
        Command::Hold(order) => operator::hold(order).await,
        Command::Release(order) => operator::release(order).await,
        Command::Forget(slot) => operator::forget(slot).await,
        Command::Conformance(options) => conformance::run(options).await,
    }
}
