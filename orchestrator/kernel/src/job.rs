//! Jobs: work in systems outside of the bus. What is to be done there is an effect of the state, so that a crash loses
//! none; what became of it comes back as an input.
//!
//! A system is a variant of [`System`], of [`Job`] and of [`JobDone`]; what is to be done there is said in
//! `effects.rs`, and what follows from what was done, in a file of `decide/`.

use os_upgrade_protocol::{GroupName, HostName};
use serde::{Deserialize, Serialize};

/// A system outside of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum System {
    /// A FleetLock server.
    LockServer,
}

/// Something to do in a system outside of the bus. Doing it twice does no harm; what tells one from another is its
/// whole value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Something about a host's slot.
    Slot(SlotJob),
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobDone {
    /// What a lock server said.
    Slot(SlotJob, LockOutcome),
}

impl Job {
    /// Where it is to be done.
    pub const fn system(&self) -> System {
        match self {
            Self::Slot(_) => System::LockServer,
        }
    }

    /// The host it is about. Of the jobs about one host only one is under way in a system, so that a contrary one waits
    /// for its return.
    pub const fn host(&self) -> &HostName {
        match self {
            Self::Slot(job) => &job.host,
        }
    }

    /// Whether it gives back what another has taken. Such jobs go first.
    pub const fn is_release(&self) -> bool {
        match self {
            Self::Slot(job) => match job.order {
                SlotOrder::Lock => false,
                SlotOrder::Unlock => true,
            },
        }
    }

    /// What it takes from, or gives back to, if that may have nothing left: who would take waits until a release that
    /// is due there has been tried.
    pub const fn pool(&self) -> Option<&GroupName> {
        match self {
            Self::Slot(job) => Some(&job.group),
        }
    }

    /// The job without an answer, for this reason.
    pub fn unanswered(self, detail: &str) -> JobDone {
        match self {
            Self::Slot(job) => JobDone::Slot(job, LockOutcome::Unreachable { detail: detail.to_owned() }),
        }
    }
}

impl JobDone {
    /// What was to be done.
    pub fn job(&self) -> Job {
        match self {
            Self::Slot(job, _) => Job::Slot(job.clone()),
        }
    }

    /// Whether the system has said yes or no; otherwise it is asked again soon.
    pub const fn is_answer(&self) -> bool {
        match self {
            Self::Slot(_, outcome) => match outcome {
                LockOutcome::Granted | LockOutcome::Denied { .. } => true,
                LockOutcome::Unreachable { .. } | LockOutcome::Protocol { .. } => false,
            },
        }
    }
}

/// A question to a lock server about a host's slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotJob {
    /// What is asked for.
    pub order: SlotOrder,
    /// The host.
    pub host: HostName,
    /// Its group.
    pub group: GroupName,
}

/// What a lock server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotOrder {
    /// A slot, FleetLock's `pre-reboot`.
    Lock,
    /// To take it back, `steady-state`.
    Unlock,
}

/// What came of asking a lock server. Only `Granted` is a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LockOutcome {
    /// 200.
    Granted,
    /// A 4xx or 5xx with a FleetLock error.
    Denied {
        /// The error's `kind`.
        lock_kind: String,
        /// The error's `value`.
        value: String,
    },
    /// No answer: connect, TLS, timeout.
    Unreachable {
        /// What went wrong.
        detail: String,
    },
    /// Any other answer.
    Protocol {
        /// What was answered.
        detail: String,
    },
}
