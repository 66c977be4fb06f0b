//! `os-upgrade lock run`: a command that runs while a slot is held.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use os_upgrade_kernel::ClientId;
use os_upgrade_protocol::GroupName;
use os_upgrade_settings::HttpUrl;
use tokio::process::{Child, Command};

use super::credentials::Credentials;
use super::signals::{Signals, is_typed};
use super::slot::{Slot, Waited};
use super::tls::Tls;
use crate::Failure;
use crate::output::errln;
use crate::rest::{DEFAULT_URL, http_url};

/// No slot was had in time: `EX_TEMPFAIL`.
const TIMED_OUT: u8 = 75;
/// The server was never reached: `EX_UNAVAILABLE`.
const UNREACHABLE: u8 = 69;
/// As shells have it: the command is there and cannot be started.
const NOT_STARTED: u8 = 126;
/// As shells have it: there is no such command.
const NOT_FOUND: u8 = 127;
/// As shells have it: this and the signal's number.
const SIGNALLED: u8 = 128;

/// The longest pause before asking again.
const RETRY_MAX: Duration = Duration::from_hours(24);

#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit status: the command's own, 128 + n if signal n has ended it or the wait; 75 when there was no slot in time; 69 when \
the server was never reached; 127 when there is no such command, 126 when it cannot be started; 2 on wrong usage, 1 when a file of --ca, --cert, --key or --credentials-file cannot be used. When \
the slot cannot be given back, it says what gives it back.")]
pub(crate) struct Run {
    /// The lock server's base URL; user and password are better not in it, as everybody
    /// on the machine can read a command line
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = http_url)]
    url: HttpUrl,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    tls: Tls,
    /// The group whose slot is taken
    #[arg(long, default_value = "default")]
    group: GroupName,
    /// In whose name; two that run at the same time need different ids
    #[arg(long, value_parser = ClientId::new)]
    id: ClientId,
    /// How long to wait for a slot, such as 90s or 1h, or forever
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    wait: Wait,
    /// How long to pause before asking again, 1d at most; up to a quarter is added, and more where the server wants it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = retry)]
    retry: Duration,
    /// The command with its arguments; it finds `OS_UPGRADE_LOCK_GROUP` and `OS_UPGRADE_LOCK_ID` in its environment
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How long to wait.
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
    let Run { url, credentials, tls, group, id, wait, retry, command } = options;
    let tls = tls.files(&url)?;
    let (url, found) = credentials.in_url(&url)?;
    let mut signals = Signals::listen()?;
    let mut command = prepared(&command, &group, &id);
    let slot = Slot::new(&url, &found, &tls, group, id).context("no slot can be asked for")?;
    let status = match slot.wait(wait.0, retry, &mut signals).await {
        Waited::TimedOut => TIMED_OUT,
        Waited::Unreachable => UNREACHABLE,
        Waited::Signalled(signal) => of_signal(signal as i32),
        Waited::Granted => {
            let status = match command.spawn() {
                Ok(child) => watched(child, &mut signals).await,
                Err(error) => Err(error),
            };
            let status = status.map_or_else(|error| not_run(&command, &error), of_command);
            slot.give_back(&mut signals).await;
            status
        }
    };
    if status == 0 { Ok(()) } else { Err(Failure::Status(status)) }
}

fn prepared(command: &[OsString], group: &GroupName, id: &ClientId) -> Command {
    let (program, arguments) = command.split_first().expect("clap has seen to it that there is a command");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("OS_UPGRADE_LOCK_GROUP", group.as_str())
        .env("OS_UPGRADE_LOCK_ID", id.as_str());
    command
}

/// Waits for the command's end, and hands signals on to it until then.
async fn watched(mut child: Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    loop {
        let signal = tokio::select! {
            biased;
            signal = signals.next() => signal,
            status = child.wait() => return status,
        };
        // Until it was waited for, its number is nobody else's.
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.filter(|_| !is_typed(signal)) {
            // It may have just ended.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

fn of_command(status: ExitStatus) -> u8 {
    let code = status.code().map(|code| u8::try_from(code).unwrap_or(u8::MAX));
    code.unwrap_or_else(|| of_signal(status.signal().unwrap_or_default()))
}

fn of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| SIGNALLED.saturating_add(signal))
}

fn not_run(command: &Command, error: &io::Error) -> u8 {
    errln!("os-upgrade: cannot run {}: {error}", command.as_std().get_program().display());
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;

    use super::*;

    #[test]
    fn how_long_to_wait() {
        assert_eq!("forever".parse(), Ok(Wait(None)));
        assert_eq!("1h 30m".parse(), Ok(Wait(Some(Duration::from_mins(90)))));
        assert!("soon".parse::<Wait>().is_err());
        assert_eq!(retry("1d"), Ok(RETRY_MAX));
        assert!(retry("1d 1ms").is_err() && retry("500000000years").is_err() && retry("x").is_err());
    }

    #[test]
    fn exit_statuses() {
        for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (15, 143), (9, 137)] {
            assert_eq!(of_command(ExitStatus::from_raw(raw)), expected);
        }
        assert_eq!(of_signal(Signal::SIGHUP as i32), 129);
    }
}
