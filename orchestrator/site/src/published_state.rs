//! The site at one moment, as this instance sees it.

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use os_upgrade_kernel::{Forecast, State, View, forecast};
use os_upgrade_protocol::{HostName, Progress};
use os_upgrade_shell::instance::Leadership;
use os_upgrade_shell::inventory::{HostVersions, Unused};

/// The committed state and the view at one moment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct PublishedState {
    /// The committed state.
    pub state: State,
    /// The kernel's view of hosts and clocks.
    pub view: View,
    /// The last published versions of hosts.
    pub versions: OrdMap<HostName, HostVersions>,
    /// The last reported progress of hosts, perhaps of an earlier command; see [`Self::progress_of`].
    pub progress: OrdMap<HostName, Progress>,
    /// How many messages of workers were not used.
    pub unused: Unused,
    /// Whether this instance can accept or forward a write.
    pub readiness: Readiness,
    /// The setting of a stream that somebody has changed while this instance runs; `None` if all are as they must be.
    pub changed_setting: Option<String>,
    /// The other site to which the stream of what hosts are to have belongs, if this instance leads and it does.
    pub crossed_site: Option<String>,
    /// Whether the journal has been read to its end since the start. Before that, the state is out of date.
    pub is_read: bool,
    /// Who leads.
    pub leadership: Leadership,
    /// The sequence up to which this instance has the journal.
    pub position: u64,
    /// The sequence of the last record passed to the projection; 0 before the first.
    pub recorded: u64,
    /// The sequence of the last record that a power cut does not take from the store; 0 before the first.
    pub stored: u64,
}

impl PublishedState {
    /// The reported progress of a host's unanswered command; `None` without either.
    pub fn progress_of(&self, host: &HostName) -> Option<&Progress> {
        let command = self.state.run.as_ref()?.host(host)?.unanswered()?;
        self.progress.get(host).filter(|progress| Some(progress.command) == command.sequence)
    }

    /// The hosts that have reported other progress than in `before`.
    pub fn progress_changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a HostName> {
        before.progress.diff(&self.progress).filter_map(|change| match change {
            DiffItem::Add(host, _) | DiffItem::Update { new: (host, _), .. } => Some(host),
            DiffItem::Remove(..) => None,
        })
    }

    /// When the next run starts automatically, as of `now`.
    pub fn forecast(&self, now: DateTime<Utc>) -> Forecast {
        forecast(&self.state, &self.view, now)
    }
}

/// Whether this instance can accept a write, or forward it to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// It cannot, for this reason.
    NotReady(String),
    /// It cannot until an operator intervenes.
    Halted {
        /// The kind of the reason, for programs.
        kind: &'static str,
        /// The reason.
        why: String,
    },
}

impl Readiness {
    /// Why it cannot; `None` if it can.
    pub fn reason_not_ready(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::NotReady(why) | Self::Halted { why, .. } => Some(why),
        }
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::NotReady("starting".to_owned())
    }
}
