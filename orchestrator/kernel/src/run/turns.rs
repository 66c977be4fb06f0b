//! Whose turn it is: the host whose last turn lies most runs back goes first. A turn is a slot granted in a run, whatever
//! comes of it. With `max-preparing` it is also a `prepare` at which the host's part ended, as that kept others from being prepared. So a host that
//! fails each time moves behind the others each time. Turns are counted in runs, because the clock may be set back.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, RunId};
use serde::{Deserialize, Serialize};

use super::host::{HostStatus, RunHost};
use crate::left_out::is_default;
use crate::reason::Reason;
use crate::remembered::Remembered;

/// The runs of a site, counted, with the last turn of each host, and how its part in a run ended last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Turns {
    /// How many runs have started.
    runs: u64,
    /// The number of the run in which each host had its last turn.
    #[serde(default, skip_serializing_if = "Remembered::is_empty")]
    last: Remembered<u64>,
    /// How the part of each host ended in the last run in which it took part.
    #[serde(default, skip_serializing_if = "Remembered::is_empty")]
    ends: Remembered<LastEnd>,
}

/// In so many runs, one after the other, a host is not reached before an operator is told.
pub const NOT_REACHED_RUNS: u32 = 3;

/// How the part of a host ended in the last run in which it took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LastEnd {
    pub run: RunId,
    /// When it entered its last status.
    pub at: DateTime<Utc>,
    /// Its last status.
    pub status: HostStatus,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// When its part failed or timed out last; absent if it has succeeded since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<DateTime<Utc>>,
    /// In how many runs it was not reached, one after the other, up to this one. Runs that an operator took it out of do not count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub not_reached: u32,
}

impl Turns {
    /// The number of the run in which `host` had its last turn; 0 if it never had one.
    pub(crate) fn last(&self, host: &HostName) -> u64 {
        self.last.of(host).copied().unwrap_or(0)
    }

    /// Counts a run that starts; returns its number.
    pub(crate) fn run_started(&mut self) -> u64 {
        self.runs = self.runs.saturating_add(1);
        self.runs
    }

    /// Records that `host` has its turn in the run of that number.
    pub(crate) fn taken(&mut self, host: &HostName, run: u64) {
        self.last.record(host, run, |run| *run);
    }

    /// How the part of `host` ended in the last run in which it took part.
    pub fn last_end(&self, host: &HostName) -> Option<&LastEnd> {
        self.ends.of(host)
    }

    /// Records how the part of `name` in `run` has ended.
    pub(super) fn ended(&mut self, name: &HostName, run: &RunId, host: &RunHost) {
        let before = self.last_end(name);
        let (failed_at, not_reached) =
            before.map_or((None, 0), |before| (before.failed_at, before.not_reached));
        let (failed_at, not_reached) = match host.status {
            HostStatus::Skipped => return,
            HostStatus::NotReached => (failed_at, not_reached.saturating_add(1)),
            HostStatus::Cancelled => (failed_at, not_reached),
            HostStatus::Failed | HostStatus::TimedOut => (Some(host.since), 0),
            HostStatus::Pending
            | HostStatus::Preparing
            | HostStatus::Prepared
            | HostStatus::Waiting
            | HostStatus::Draining
            | HostStatus::Upgrading
            | HostStatus::Rebooting
            | HostStatus::Recovering
            | HostStatus::Upgraded => (None, 0),
        };
        let (run, at, status, reason) = (run.clone(), host.since, host.status, host.reason.clone());
        self.ends.record(name, LastEnd { run, at, status, reason, failed_at, not_reached }, |end| end.at);
    }

    /// Forgets `host`.
    pub(crate) fn remove(&mut self, host: &HostName) {
        self.last.remove(host);
        self.ends.remove(host);
    }
}
