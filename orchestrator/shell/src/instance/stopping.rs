//! The phases of stopping.

use std::time::Duration;

/// How long a stopping instance waits for what is under way and for the release of its lease. After that, the remaining
/// callers are told that the outcome is unknown, and the lease expires.
pub const STOP_WITHIN: Duration = Duration::from_millis(2_500);
/// The answer to calls in the meantime.
pub(super) const STOPPING: &str = "the orchestrator is stopping";

/// The phase of stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// No stop was requested.
    No,
    /// It begins nothing new, and waits for what is under way.
    Draining { until: Duration },
    /// It no longer leads, and releases the lease.
    Leaving { until: Duration },
    /// The instance has stopped.
    Stopped,
}

impl Stopping {
    pub(super) fn is_requested(self) -> bool {
        match self {
            Self::No => false,
            Self::Draining { .. } | Self::Leaving { .. } | Self::Stopped => true,
        }
    }

    /// Why no request is accepted; `None` if no stop was requested.
    pub(super) fn reason_not_ready(self) -> Option<String> {
        self.is_requested().then(|| STOPPING.to_owned())
    }
}
