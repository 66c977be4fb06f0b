//! The site at one moment, as this instance has it.

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_kernel::{Forecast, State, View, forecast};
use os_upgrade_protocol::{HostName, Progress};
use os_upgrade_shell::inventory::HostVersions;
use os_upgrade_shell::node::Leadership;

/// Everything that can be read at a moment: committed state, and what is seen of the site. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SiteSnapshot {
    /// The committed state.
    pub state: State,
    /// What is seen of the site.
    pub view: View,
    /// The last versions of every host that published some.
    pub versions: OrdMap<HostName, HostVersions>,
    /// What every host's worker said last of how far it is; see [`Self::progress_of`].
    pub progress: OrdMap<HostName, Progress>,
    /// Whether a write can be taken, or passed on, or why not.
    pub readiness: Readiness,
    /// Whether the journal has been read to its end since the start: before, the state is none that the site is in.
    pub is_read: bool,
    /// Who leads.
    pub leadership: Leadership,
    /// The sequence up to which this instance has the journal.
    pub position: u64,
    /// The sequence of the last record that the history was given; 0 when it was given none.
    pub recorded: u64,
}

impl SiteSnapshot {
    /// How far a host's worker says that it is with the command that it has been sent and has not answered.
    pub fn progress_of(&self, host: &HostName) -> Option<&Progress> {
        let command = self.state.run.as_ref()?.host(host)?.unanswered()?;
        self.progress.get(host).filter(|progress| Some(progress.command) == command.sequence)
    }

    /// When the next run starts by itself, as it looks at `now`.
    pub fn forecast(&self, now: DateTime<Utc>) -> Forecast {
        forecast(&self.state, &self.view, now)
    }
}

/// Whether this instance can take a write, or pass it on to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// It cannot, for this reason.
    NotReady(String),
    /// It cannot until an operator has looked, for this reason.
    Halted(String),
}

impl Readiness {
    /// Why it cannot, if so.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::NotReady(reason) | Self::Halted(reason) => Some(reason),
        }
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::NotReady("starting".to_owned())
    }
}
