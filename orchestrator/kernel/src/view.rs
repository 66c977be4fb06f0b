//! What is seen of the site at the moment, handed in with every input. Nothing here is durable, and nothing is
//! concluded from it but what a fact then says.

use chrono::{DateTime, TimeDelta, Utc};
use imbl::{OrdMap, OrdSet};
use os_upgrade_protocol::{ApplicationName, GroupName, HostName};

use crate::blocker::WindowBlocker;
use crate::config::WorkerApplication;
use crate::strongbox::Sealed;

/// Hosts by name, how the clocks stand, and whether secrets can be used. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Hosts on which a worker has announced itself.
    pub hosts: OrdMap<HostName, SeenHost>,
    /// Hosts whose workers have all taken their announcements back.
    pub left: OrdSet<HostName>,
    /// The orchestrator's clock minus the bus's, when that has been measured.
    pub clock_skew: Option<TimeDelta>,
    /// Whether everything that stood in the control stream when this leadership began has been read.
    pub has_read_control: bool,
    /// The same, and those who could not answer while the bus was away have had time to: only then does the lack of an
    /// answer mean anything.
    pub has_heard_control: bool,
    /// Why slots cannot be asked for here, when that is because of a secret that is needed for it.
    pub sealed: Option<Sealed>,
    /// Whether a run whose time has come can start by itself, as the leader says, where that is another: clocks, secrets and
    /// heartbeats are the leader's to judge.
    pub leader_says: Option<Result<(), WindowBlocker>>,
}

/// A host as its workers show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenHost {
    /// The applications announced on it.
    pub applications: OrdSet<ApplicationName>,
    /// The group it announces.
    pub group: Option<GroupName>,
    /// The boot id it announces.
    pub boot_id: Option<String>,
    /// Whether it shows signs of life.
    pub reachability: Reachability,
    /// The worker's clock minus the bus's at its last announcement, in seconds, when it told its time.
    pub clock_skew_secs: Option<i64>,
    /// When the bus took the last announcement on it.
    pub announced_at: Option<DateTime<Utc>>,
}

/// Whether a host shows signs of life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reachability {
    /// It sends no heartbeats, so their absence means nothing.
    #[default]
    Unknown,
    /// It sends heartbeats, and it is not known yet whether it still does: one is waited for, and not for long.
    Awaited,
    /// Its last sign of life is recent.
    Reachable,
    /// It sends heartbeats, and none has been heard for too long.
    Unreachable,
}

/// The largest difference of clocks with which anything is started, in seconds.
pub const CLOCK_SKEW_SECS_MAX: i64 = 30;

impl View {
    /// The skew in seconds, when it is too large to start anything.
    pub fn excessive_skew(&self) -> Option<i64> {
        let seconds = self.clock_skew?.num_seconds();
        (seconds.abs() > CLOCK_SKEW_SECS_MAX).then_some(seconds)
    }

    /// Hosts that serve one of `applications`, each with the first of them that it serves.
    pub fn serving<'a>(
        &'a self,
        applications: &'a [WorkerApplication],
    ) -> impl Iterator<Item = (&'a HostName, &'a SeenHost, &'a ApplicationName)> {
        self.hosts.iter().filter_map(|(name, host)| {
            let mut names = applications.iter().map(|application| &application.name);
            let application = names.find(|application| host.applications.contains(*application))?;
            Some((name, host, application))
        })
    }
}
