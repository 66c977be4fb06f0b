//! What kinds of hosts have in common: running tools, what must not be stopped half-way, health and reboots.

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

/// Health and reboots, on the command line.
#[derive(Debug, Clone, Args)]
pub(crate) struct SystemOptions {
    /// Program that says by exit status 0 that the host is well; otherwise the last line of its standard error is the
    /// reason
    #[arg(long, value_name = "FILE", env = "OS_UPGRADE_HEALTH_SCRIPT")]
    pub(crate) health_script: Option<PathBuf>,

    /// How long the host has for becoming well after a reboot or an upgrade; it is looked at again and again
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        env = "OS_UPGRADE_HEALTH_WAIT",
        value_parser = positive_duration
    )]
    pub(crate) health_wait: Duration,

    /// How long to wait for programs that hold up a reboot (systemd-inhibit --list) before the reboot has failed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1m",
        env = "OS_UPGRADE_INHIBITOR_WAIT",
        value_parser = positive_duration
    )]
    pub(crate) inhibitor_wait: Duration,

    /// Reboot also when programs hold it up
    #[arg(long, env = "OS_UPGRADE_IGNORE_INHIBITORS", value_parser = BoolishValueParser::new())]
    pub(crate) ignore_inhibitors: bool,
}

/// What a preparation ends with that was told to stop.
const fn stopped(cause: Cause) -> &'static str {
    match cause {
        Cause::Cancelled => "the preparation was stopped, as the run was cancelled",
        Cause::RunFailed => "the preparation was stopped, as other hosts of the run failed",
        Cause::Hint | Cause::Shutdown => "the preparation was stopped",
        Cause::NotAfter => "the preparation did not end before not-after",
    }
}

/// Trying something again until it has taken long enough.
#[derive(Debug)]
pub(crate) struct Patience {
    since: tokio::time::Instant,
    most: Duration,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(most: Duration, pause: Duration) -> Self {
        Self { since: tokio::time::Instant::now(), most, pause: pause.min(most) }
    }

    /// Pauses, and returns when it is to be tried again.
    ///
    /// # Errors
    /// It has taken long enough: the error that it had last.
    pub(crate) async fn again(&self, error: HandlerError) -> HandlerResult {
        if self.since.elapsed() >= self.most {
            return Err(error);
        }
        tokio::time::sleep(self.pause).await;
        Ok(())
    }
}
