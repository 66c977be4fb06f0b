//! What came of a drain.

use chrono::{DateTime, Utc};

use super::super::error::Error;
use super::super::mark::Standing;
use super::super::plan::{Controller, PodRef};
use super::super::rights::Right;

/// Why a pod that has to go is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It was not its turn.
    NotTried,
    /// It is being evicted or deleted, and was not seen to terminate yet.
    Requested,
    /// It is terminating.
    Terminating {
        /// When it was to be gone.
        until: DateTime<Utc>,
    },
    /// Its job is running.
    JobRunning,
    /// A budget does not allow its eviction.
    Budget {
        /// The budgets that select it. Empty if they have changed since, or could not be read.
        budgets: Vec<String>,
        /// The server's message, which names the budget too.
        message: String,
        /// Why the budgets could not be read, such as a missing right.
        unread: Option<Error>,
    },
    /// A budget counts the pods that controllers want, and none of those that it selects has a controller with a known number
    /// of pods. Such a budget allows no eviction until somebody changes it.
    UncountedPods {
        /// The budget.
        budget: String,
    },
    /// Several budgets select it. Kubernetes evicts no such pod, however long somebody waits.
    SeveralBudgets {
        /// The budgets.
        budgets: Vec<String>,
    },
    /// Something else, such as an admission webhook, refuses.
    Denied {
        /// The HTTP status.
        status: u16,
        /// Its message.
        message: String,
    },
    /// This client may not evict it, or not delete it.
    MissingRight {
        /// The right that is missing in its namespace.
        right: Right,
        /// The server's message.
        detail: String,
    },
    /// Its namespace is being deleted, and it has not begun to terminate.
    NamespaceEnds,
    /// The last request about it failed.
    Failed(Error),
}

impl Reason {
    /// Whether the other reason is of the same kind, whatever the messages say.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Whether a drain does not begin for this reason. What a dry run says of admission webhooks is none: it is refused where one
    /// of them does not support dry runs.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Budget { .. }
            | Self::UncountedPods { .. }
            | Self::SeveralBudgets { .. }
            | Self::MissingRight { .. } => true,
            Self::NotTried
            | Self::Requested
            | Self::Terminating { .. }
            | Self::JobRunning
            | Self::Denied { .. }
            | Self::NamespaceEnds
            | Self::Failed(_) => false,
        }
    }

    /// Whether waiting does not help.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::SeveralBudgets { .. })
    }
}

/// A pod that has to go and is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingPod {
    /// The pod.
    pub pod: PodRef,
    /// Its controller, if it has any.
    pub controller: Option<Controller>,
    /// Why it is there.
    pub reason: Reason,
    /// Since when, as far as this drain has seen; absent if it was not tried.
    pub since: Option<DateTime<Utc>>,
}

/// How a drain ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainOutcome {
    /// A fresh list showed no pod that has to go.
    Drained,
    /// Pods stay however long it takes. When the drain began, a job was running, or the dry run under the cordon was refused, and
    /// nothing was evicted. Or all pods that are left are of several budgets.
    Blocked,
    /// Pods were left when the time was up.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// This instance does not lead any more.
    NotLeading,
    /// The node is not cordoned for the claim, or not any more.
    NotCordoned(Standing),
    /// What is on the node is not known.
    Unknown(Error),
}

/// What came of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct DrainReport {
    /// How it ended.
    pub outcome: DrainOutcome,
    /// The pods of the last list that have to go.
    pub remaining: Vec<RemainingPod>,
    /// Pods of this project on the node, which stay.
    pub own: Vec<PodRef>,
    /// Number of evictions that were granted.
    pub evicted: usize,
    /// Number of pods that were deleted after a budget's refusal.
    pub deleted: usize,
}
