//! What all kinds of hosts share: running tools, transactions that must not be interrupted, health and reboots.

pub(crate) mod before;
pub(crate) mod health;
pub(crate) mod host;
mod reboot;
pub(crate) mod tools;
pub(crate) mod transaction;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use os_upgrade_worker_sdk::{Cause, HandlerError, HandlerResult};

use crate::options::positive_duration;

/// The command line options for health and reboots.
#[derive(Debug, Clone, Args)]
pub(crate) struct SystemOptions {
    /// Program that exits with 0 if the host is healthy; otherwise the last line of its standard error is the reason
    #[arg(long, value_name = "FILE", env = "OS_UPGRADE_HEALTH_SCRIPT")]
    pub(crate) health_script: Option<PathBuf>,

    /// How long the host may take to become healthy after a reboot or an upgrade
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        env = "OS_UPGRADE_HEALTH_WAIT",
        value_parser = positive_duration
    )]
    pub(crate) health_wait: Duration,

    /// How long to wait for what holds up a reboot before the reboot fails: programs that inhibit it (systemd-inhibit --list), and
    /// users with --wait-for-sessions. A reboot is tried again after --reboot-wait plus this
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1m",
        env = "OS_UPGRADE_INHIBITOR_WAIT",
        value_parser = positive_duration
    )]
    pub(crate) inhibitor_wait: Duration,

    /// Reboot even if programs inhibit it
    #[arg(long, env = "OS_UPGRADE_IGNORE_INHIBITORS", value_parser = BoolishValueParser::new())]
    pub(crate) ignore_inhibitors: bool,

    /// Wait also for users who are logged in; otherwise their sessions end with the reboot
    #[arg(long, env = "OS_UPGRADE_WAIT_FOR_SESSIONS", value_parser = BoolishValueParser::new())]
    pub(crate) wait_for_sessions: bool,
}

impl SystemOptions {
    /// How long a reboot may be held up before it is started.
    pub(crate) const fn holdup_max(&self) -> Duration {
        if self.ignore_inhibitors && !self.wait_for_sessions { Duration::ZERO } else { self.inhibitor_wait }
    }
}

/// The error of a preparation that was stopped.
const fn stop_error(cause: Cause) -> &'static str {
    match cause {
        Cause::Cancelled => "the preparation was stopped, because the run was cancelled",
        Cause::RunFailed => "the preparation was stopped, because other hosts of the run failed",
        Cause::Hint | Cause::Shutdown => "the preparation was stopped",
        Cause::NotAfter => "the preparation did not end before not-after",
    }
}

/// Retries with a pause and a time limit.
#[derive(Debug)]
pub(crate) struct Retry {
    since: tokio::time::Instant,
    limit: Duration,
    pause: Duration,
}

impl Retry {
    pub(crate) fn new(limit: Duration, pause: Duration) -> Self {
        Self { since: tokio::time::Instant::now(), limit, pause: pause.min(limit) }
    }

    /// Pauses before the next attempt.
    ///
    /// # Errors
    /// `error`, the last attempt's, if the time limit has passed.
    pub(crate) async fn pause_or_fail(&self, error: HandlerError) -> HandlerResult {
        if self.since.elapsed() >= self.limit {
            return Err(error);
        }
        tokio::time::sleep(self.pause).await;
        Ok(())
    }
}
