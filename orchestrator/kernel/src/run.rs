//! A run: one upgrade of a site, with the state of every host in it.

mod event;
mod host;
mod index;

use chrono::{DateTime, Utc};
use imbl::{OrdMap, OrdSet};
use os_upgrade_protocol::{GroupName, HostName, RunId};
use serde::{Deserialize, Serialize};

pub use self::event::{Enlisted, HostEvent};
pub use self::host::{HostStatus, IllegalTransition, Issued, RunHost};
use self::index::Index;
use crate::config::Rollout;

/// One upgrade of a site. Cheap to clone: the hosts are shared between copies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "StoredRun", into = "StoredRun")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What started it.
    pub trigger: Trigger,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub not_after: DateTime<Utc>,
    /// How it goes through the hosts.
    pub rollout: Rollout,
    /// How far it is.
    pub phase: Phase,
    /// Why no further host is started, if so.
    pub stopping: Option<StopCause>,
    /// When and how it ended, if it has.
    pub ended: Option<Ended>,
    hosts: OrdMap<HostName, RunHost>,
    index: Index,
}

/// What is kept of a run; the index is made anew.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoredRun {
    id: RunId,
    trigger: Trigger,
    started_at: DateTime<Utc>,
    not_after: DateTime<Utc>,
    rollout: Rollout,
    phase: Phase,
    stopping: Option<StopCause>,
    ended: Option<Ended>,
    hosts: OrdMap<HostName, RunHost>,
}

impl From<StoredRun> for Run {
    fn from(stored: StoredRun) -> Self {
        let StoredRun { id, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts } = stored;
        let index = Index::of(&hosts);
        Self { id, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts, index }
    }
}

impl From<Run> for StoredRun {
    fn from(run: Run) -> Self {
        let Run { id, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts, index: _ } =
            run;
        Self { id, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts }
    }
}

/// What started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Trigger {
    /// An operator.
    Operator {
        /// Who.
        actor: String,
    },
    /// A maintenance window has opened.
    Window {
        /// When its occurrence began.
        start: DateTime<Utc>,
        /// When it ends.
        end: DateTime<Utc>,
    },
}

impl Trigger {
    /// The word in the history.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Who it was, where it was somebody.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::Operator { actor } => Some(actor),
            Self::Window { .. } => None,
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Hosts get ready.
    Preparing,
    /// Hosts are upgraded.
    Upgrading,
}

impl Phase {
    /// The word in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why no further host is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum StopCause {
    /// More hosts failed than may.
    Failed {
        /// The host whose failure it was.
        host: HostName,
    },
    /// An operator cancelled it.
    Cancelled {
        /// Who.
        actor: String,
    },
    /// The site was restored while it was active: what became of its hosts is not known.
    Restored {
        /// Who did it.
        actor: String,
    },
}

impl StopCause {
    /// Who it was, where it was somebody.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::Failed { .. } => None,
            Self::Cancelled { actor } | Self::Restored { actor } => Some(actor),
        }
    }
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum RunResult {
    /// Every host that took part is upgraded, but for as many failures as were allowed, and for those that operators gave
    /// up.
    Completed,
    /// More hosts failed than may, or none could take part.
    Failed,
    /// Its time was over first.
    TimedOut,
    /// An operator cancelled it.
    Cancelled,
}

impl RunResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Failed, Self::TimedOut, Self::Cancelled];

    /// The word in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ended {
    /// When.
    pub at: DateTime<Utc>,
    /// How.
    pub result: RunResult,
}

impl Run {
    /// A run that starts `at`, with the hosts of its list.
    pub(crate) fn start(
        id: RunId,
        trigger: Trigger,
        at: DateTime<Utc>,
        not_after: DateTime<Utc>,
        rollout: Rollout,
        enlisted: &[Enlisted],
    ) -> Self {
        let hosts: OrdMap<_, _> =
            enlisted.iter().map(|entry| (entry.host.clone(), RunHost::enlist(entry, at))).collect();
        let index = Index::of(&hosts);
        let phase = Phase::Preparing;
        Self {
            id,
            trigger,
            started_at: at,
            not_after,
            rollout,
            phase,
            stopping: None,
            ended: None,
            hosts,
            index,
        }
    }

    /// Every host, by name.
    pub fn hosts(&self) -> &OrdMap<HostName, RunHost> {
        &self.hosts
    }

    /// One host.
    pub fn host(&self, name: &HostName) -> Option<&RunHost> {
        self.hosts.get(name)
    }

    /// Hosts whose current command has not been seen in the control stream yet.
    pub fn unsent(&self) -> &OrdSet<HostName> {
        &self.index.unsent
    }

    /// Hosts from the grant of their slot to the end of their step.
    pub fn under_way(&self) -> &OrdSet<HostName> {
        &self.index.under_way
    }

    /// Hosts that are prepared and not started, by group.
    pub fn ready(&self) -> &OrdMap<GroupName, OrdSet<HostName>> {
        &self.index.ready
    }

    /// Hosts whose turn it is and that have no slot yet.
    pub fn waiting(&self) -> &OrdSet<HostName> {
        &self.index.waiting
    }

    /// How many hosts have not answered `prepare`.
    pub fn unprepared(&self) -> usize {
        self.index.unprepared
    }

    /// How many hosts are in `status`.
    pub fn count(&self, status: HostStatus) -> usize {
        self.index.count(status)
    }

    /// Whether nothing is left to do for any host.
    pub fn is_through(&self) -> bool {
        HostStatus::ALL.iter().filter(|status| !status.is_final()).all(|status| self.count(*status) == 0)
    }

    /// Whether a further host may come under way.
    pub(crate) fn has_room(&self) -> bool {
        self.phase == Phase::Upgrading
            && self.stopping.is_none()
            && self.under_way().len() < self.rollout.max_concurrent as usize
    }

    /// Why the run starts no further host once `host` fails or is given up, if that is one failure too many.
    pub(crate) fn stop_after(&self, host: &HostName) -> Option<StopCause> {
        let before = self.count(HostStatus::Failed) + self.count(HostStatus::TimedOut);
        let is_enough = self.stopping.is_none() && before >= self.rollout.max_failures as usize;
        is_enough.then(|| StopCause::Failed { host: host.clone() })
    }

    /// Folds `event` into the state of a host.
    pub(crate) fn apply(
        &mut self,
        name: &HostName,
        event: &HostEvent,
        at: DateTime<Utc>,
    ) -> Result<(), HostError> {
        let host = self.hosts.get(name).ok_or_else(|| HostError::Unknown(name.clone()))?;
        let next = host.after(event, at).map_err(|source| HostError::Illegal(name.clone(), source))?;
        self.index.remove(name, host);
        self.index.insert(name, &next);
        self.hosts.insert(name.clone(), next);
        Ok(())
    }
}

/// An event does not fit a host of the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The run has no such host.
    #[error("the run has no host {0}")]
    Unknown(HostName),
    /// The host is not where the event could happen to it.
    #[error("host {0}")]
    Illegal(HostName, #[source] IllegalTransition),
}
