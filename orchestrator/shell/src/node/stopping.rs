//! How far a node is with leaving.

use std::time::Duration;

/// How long what is under way may take to come back, and the lease to be given back. What has not by then is left: its
/// askers hear that its outcome is not known, and the lease runs out.
pub const STOP_WITHIN: Duration = Duration::from_millis(2_500);
/// What askers hear meanwhile.
pub(super) const STOPPING: &str = "the orchestrator is stopping";

/// How far a node has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// It has not been asked to.
    No,
    /// It begins nothing new, and waits for what is under way.
    Draining { until: Duration },
    /// It leads no more, and gives the lease back.
    Leaving { until: Duration },
    /// It is done.
    Stopped,
}

impl Stopping {
    pub(super) fn is_asked_for(self) -> bool {
        match self {
            Self::No => false,
            Self::Draining { .. } | Self::Leaving { .. } | Self::Stopped => true,
        }
    }

    /// Why no request is taken any more, if so.
    pub(super) fn why_not_ready(self) -> Option<String> {
        self.is_asked_for().then(|| STOPPING.to_owned())
    }
}
