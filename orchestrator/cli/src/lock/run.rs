//! `os-upgrade lock run`: a command that runs while a slot is held.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use os_upgrade_kernel::ClientId;
use os_upgrade_protocol::GroupName;
use tokio::process::{Child, Command};

use super::server::Server;
use super::signals::{Signals, is_typed};
use super::slot::{Slot, WaitOutcome};
use super::unlock;
use crate::Failure;
use crate::output::errln;

/// No slot was granted in time: `EX_TEMPFAIL`.
const TIMED_OUT: u8 = 75;
/// The server was never reached: `EX_UNAVAILABLE`.
const UNREACHABLE: u8 = 69;
/// The command exists but cannot be started, as in shells.
const NOT_STARTED: u8 = 126;
/// There is no such command, as in shells.
const NOT_FOUND: u8 = 127;
/// Added to the number of the signal that ended the command, as in shells.
const SIGNALLED: u8 = 128;

/// The longest pause before asking again.
const RETRY_MAX: Duration = Duration::from_hours(24);

#[derive(Debug, Args)]
#[command(after_help = concat!(
    examples![
        "lock run --group workers --id backup-job -- backup --full",
        "lock run --url http://lock.example:8080 --id h01 --wait 10m -- apt-get --yes upgrade",
    ],
    "\n\nExit status: the command's own, or 128 + n if signal n ended it or the wait; 75 if there was no slot in time; 69 if \
     the server was never reached; 127 if there is no such command, 126 if it cannot be started; 2 on wrong usage, also \
     if a file of --ca, --cert, --key or --credentials-file cannot be used. If the slot could not be given back, it prints a \
     command that does.",
))]
pub(crate) struct Run {
    #[command(flatten)]
    server: Server,
    /// The group whose slot is taken
    #[arg(long, default_value = "default")]
    group: GroupName,
    /// The id that holds the slot; two commands that run at the same time need different ids
    #[arg(long, value_parser = ClientId::new)]
    id: ClientId,
    /// How long to wait for a slot, such as 90s or 1h, or forever
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    wait: Wait,
    /// How long to pause before asking again, at most 1d; up to a quarter is added, and more if the server asks for it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = retry)]
    retry: Duration,
    /// The command with its arguments; `OS_UPGRADE_LOCK_GROUP` and `OS_UPGRADE_LOCK_ID` are set in its environment
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How long to wait for a slot; `None` is forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait(Option<Duration>);

impl FromStr for Wait {
    type Err = humantime::DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "forever" {
            return Ok(Self(None));
        }
        humantime::parse_duration(text).map(|duration| Self(Some(duration)))
    }
}

fn retry(text: &str) -> Result<Duration, String> {
    let pause = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if pause > RETRY_MAX { Err("at most 1d is expected".to_owned()) } else { Ok(pause) }
}

/// Takes a slot, runs the command, gives the slot back.
pub(super) async fn run(options: Run) -> Result<(), Failure> {
    let Run { server, group, id, wait, retry, command } = options;
    let (url, source, tls) = server.resolve()?;
    let mut signals = Signals::listen()?;
    let mut command = prepared(&command, &group, &id);
    let slot = Slot::new(&url, &source, &tls, group, id).map_err(unlock::not_set_up)?;
    let status = match slot.wait(wait.0, retry, &mut signals).await {
        WaitOutcome::TimedOut => TIMED_OUT,
        WaitOutcome::Unreachable => UNREACHABLE,
        WaitOutcome::Signalled(signal) => signal_status(signal as i32),
        WaitOutcome::Granted => {
            let status = match command.spawn() {
                Ok(child) => wait_for(child, &mut signals).await,
                Err(error) => Err(error),
            };
            let status = status.map_or_else(|error| start_failed(&command, &error), command_status);
            slot.give_back(&mut signals).await;
            status
        }
    };
    if status == 0 { Ok(()) } else { Err(Failure::Status(status)) }
}

fn prepared(command: &[OsString], group: &GroupName, id: &ClientId) -> Command {
    let (program, arguments) = command.split_first().expect("clap requires a command");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("OS_UPGRADE_LOCK_GROUP", group.as_str())
        .env("OS_UPGRADE_LOCK_ID", id.as_str());
    command
}

/// Waits for the command's end, and passes signals on to it until then.
async fn wait_for(mut child: Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    loop {
        let signal = tokio::select! {
            biased;
            signal = signals.next() => signal,
            status = child.wait() => return status,
        };
        // The pid cannot be reused before the child has been waited for.
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.filter(|_| !is_typed(signal)) {
            // Fails if it has just ended.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

fn command_status(status: ExitStatus) -> u8 {
    let code = status.code().map(|code| u8::try_from(code).unwrap_or(u8::MAX));
    code.unwrap_or_else(|| signal_status(status.signal().unwrap_or_default()))
}

fn signal_status(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| SIGNALLED.saturating_add(signal))
}

fn start_failed(command: &Command, error: &io::Error) -> u8 {
    errln!("os-upgrade: cannot run {}: {error}", command.as_std().get_program().display());
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;

    use super::*;

    #[test]
    fn durations_are_parsed() {
        assert_eq!("forever".parse(), Ok(Wait(None)));
        assert_eq!("1h 30m".parse(), Ok(Wait(Some(Duration::from_mins(90)))));
        assert!("soon".parse::<Wait>().is_err());
        assert_eq!(retry("1d"), Ok(RETRY_MAX));
        assert!(retry("1d 1ms").is_err() && retry("500000000years").is_err() && retry("x").is_err());
    }

    #[test]
    fn exit_statuses() {
        for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (15, 143), (9, 137)] {
            assert_eq!(command_status(ExitStatus::from_raw(raw)), expected);
        }
        assert_eq!(signal_status(Signal::SIGHUP as i32), 129);
    }
}
