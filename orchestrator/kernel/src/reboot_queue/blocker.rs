//! Why an entry of the reboot queue is not progressing.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use strum::{IntoStaticStr, VariantNames};

use super::choose::{NotReady, QueueBlocker};
use crate::node::NodeProgress;
use crate::reason::Reason;

/// Why an entry of the reboot queue is not progressing.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum EntryBlocker {
    /// It has backed off.
    BackedOff {
        /// Until when it does not start again.
        until: DateTime<Utc>,
        /// Why it has, if that was recorded.
        reason: Option<Reason>,
    },
    /// It cannot start, ignoring the rest of the queue.
    NotReady(NotReady),
    /// No entry can start.
    Queue(QueueBlocker),
    /// Another entry comes first.
    Behind(u64),
    /// Its slot was not granted so far.
    Slot(Reason),
    /// Its Kubernetes node is being drained or uncordoned.
    NodeUnderWay(NodeProgress),
    /// Its command has not been seen in the control stream yet.
    CommandUnsent,
    /// Its worker has not answered. A boot that hangs ends when an operator gives it up.
    ReplyAwaited(DateTime<Utc>),
    /// The operator's command is being run.
    CommandRuns(DateTime<Utc>),
    /// The operator's command has begun the reboot, and the host is not back. A boot that hangs ends when an operator gives it up.
    BootAwaited(DateTime<Utc>),
    /// Whether the operator's command has begun the reboot is not known, and it is not run again.
    AttemptUnknown {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        since: DateTime<Utc>,
    },
    /// Whether the operator's command has begun the reboot is not known, and it is run again later.
    RetryAwaited {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        since: DateTime<Utc>,
        /// When it is run again, if the host is ready in its old boot then.
        at: DateTime<Utc>,
    },
    /// It was cancelled after the operator's command was run, which is undone if the host has not rebooted by then.
    CancelAwaited(DateTime<Utc>),
    /// Whether the operator's command has begun the reboot is not known. The host is in another boot, and the boot check has not said
    /// that this counts.
    CheckAwaited {
        /// Why it is not known.
        reason: Reason,
    },
    /// The host is to be rebooted by a command, and the settings have none any more.
    NoCommand,
    /// Its worker answered with an error, or the operator's command failed.
    Failed {
        /// What went wrong.
        reason: Reason,
    },
}

impl EntryBlocker {
    /// The word for it in the API: that of the cause, if it has one of its own.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotReady(why) => why.into(),
            Self::Queue(by) => by.kind(),
            Self::BackedOff { .. }
            | Self::Behind(_)
            | Self::Slot(_)
            | Self::NodeUnderWay(_)
            | Self::CommandUnsent
            | Self::ReplyAwaited(_)
            | Self::CommandRuns(_)
            | Self::BootAwaited(_)
            | Self::AttemptUnknown { .. }
            | Self::RetryAwaited { .. }
            | Self::CancelAwaited(_)
            | Self::CheckAwaited { .. }
            | Self::NoCommand
            | Self::Failed { .. } => self.into(),
        }
    }

    /// Every kind.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let own = Self::VARIANTS.iter().filter(|kind| !["not-ready", "queue"].contains(kind)).copied();
        // An entry can have backed off, and so can all of them.
        own.chain(QueueBlocker::kinds()).collect::<BTreeSet<_>>().into_iter()
    }
}
