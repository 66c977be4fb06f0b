//! Whose turn it is: the host whose last turn lies most runs back goes first. A turn is a slot granted in a run, whatever
//! comes of it: a host that fails each time moves behind the others each time. Turns are counted in runs, because the
//! clock may be set back.

use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use crate::remembered::Remembered;

/// The runs of a site, counted, and the last turn of each host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Turns {
    /// How many runs have started.
    runs: u64,
    /// The number of the run in which each host had its last turn.
    #[serde(default, skip_serializing_if = "Remembered::is_empty")]
    last: Remembered<u64>,
}

/// The place of a host in the order of turns: the smallest goes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the run in which it had its last turn; 0 if it never had one.
    pub last_turn: u64,
    pub host: HostName,
}

impl Turns {
    /// The number of the run in which `host` had its last turn; 0 if it never had one.
    pub(crate) fn last(&self, host: &HostName) -> u64 {
        self.last.of(host).unwrap_or(0)
    }

    /// Counts a run that starts; returns its number.
    pub(crate) fn run_started(&mut self) -> u64 {
        self.runs = self.runs.saturating_add(1);
        self.runs
    }

    /// Records that `host` has its turn in the run of that number.
    pub(crate) fn granted(&mut self, host: &HostName, run: u64) {
        self.last.record(host, run);
    }

    /// Forgets `host`.
    pub(crate) fn remove(&mut self, host: &HostName) {
        self.last.remove(host);
    }
}
