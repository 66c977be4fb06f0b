//! Why an entry of the reboot queue is not progressing.

use chrono::{DateTime, Utc};
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use super::choose::{NotReady, QueueBlocker};
use crate::as_text::as_text;
use crate::node::NodeProgress;
use crate::reason::Reason;

/// Why an entry of the reboot queue is not progressing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum EntryBlocker {
    /// It has backed off.
    BackedOff {
        /// Until when it does not start again.
        #[serde(skip)]
        until: DateTime<Utc>,
        /// Why it has, if that was recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// Another entry comes first.
    Behind {
        /// That entry.
        #[serde(serialize_with = "as_text")]
        index: u64,
    },
    /// Its Kubernetes node is being drained or uncordoned.
    NodeUnderWay(NodeProgress),
    /// Its command has not been seen in the control stream yet.
    CommandUnsent,
    /// Its worker has not answered. A boot that hangs ends when an operator gives it up.
    ReplyAwaited {
        /// When its command was sent.
        #[serde(skip)]
        since: DateTime<Utc>,
    },
    /// The operator's command is being run.
    CommandRuns {
        #[serde(skip)]
        since: DateTime<Utc>,
    },
    /// The operator's command has begun the reboot, and the host is not back. A boot that hangs ends when an operator gives it up.
    BootAwaited {
        #[serde(skip)]
        since: DateTime<Utc>,
    },
    /// Whether the operator's command has begun the reboot is not known, and it is not run again.
    AttemptUnknown {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        #[serde(skip)]
        since: DateTime<Utc>,
    },
    /// Whether the operator's command has begun the reboot is not known, and it is run again later.
    RetryAwaited {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        #[serde(skip)]
        since: DateTime<Utc>,
        /// When it is run again, if the host is ready in its old boot then.
        #[serde(skip)]
        at: DateTime<Utc>,
    },
    /// It was cancelled after the operator's command was run, which is undone if the host has not rebooted by then.
    CancelAwaited {
        #[serde(skip)]
        until: DateTime<Utc>,
    },
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
    /// Its slot was not granted so far.
    #[serde(untagged)]
    Slot(Reason),
    /// It cannot start, ignoring the rest of the queue.
    #[serde(untagged)]
    NotReady(NotReady),
    /// No entry can start.
    #[serde(untagged)]
    Queue(QueueBlocker),
}

impl EntryBlocker {
    /// The word for it: that of the cause, if it has one of its own.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotReady(why) => why.into(),
            Self::Queue(by) => by.kind(),
            Self::Slot(reason) => reason.kind(),
            Self::BackedOff { .. }
            | Self::Behind { .. }
            | Self::NodeUnderWay(_)
            | Self::CommandUnsent
            | Self::ReplyAwaited { .. }
            | Self::CommandRuns { .. }
            | Self::BootAwaited { .. }
            | Self::AttemptUnknown { .. }
            | Self::RetryAwaited { .. }
            | Self::CancelAwaited { .. }
            | Self::CheckAwaited { .. }
            | Self::NoCommand
            | Self::Failed { .. } => self.into(),
        }
    }

    /// The reason that it holds.
    pub(crate) const fn reason_mut(&mut self) -> Option<&mut Reason> {
        match self {
            Self::BackedOff { reason, .. } => reason.as_mut(),
            Self::Slot(reason)
            | Self::AttemptUnknown { reason, .. }
            | Self::RetryAwaited { reason, .. }
            | Self::CheckAwaited { reason }
            | Self::Failed { reason } => Some(reason),
            Self::NotReady(_)
            | Self::Queue(_)
            | Self::Behind { .. }
            | Self::NodeUnderWay(_)
            | Self::CommandUnsent
            | Self::ReplyAwaited { .. }
            | Self::CommandRuns { .. }
            | Self::BootAwaited { .. }
            | Self::CancelAwaited { .. }
            | Self::NoCommand => None,
        }
    }

    /// Every kind of its own.
    pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
        let others = ["not-ready", "queue", "slot"];
        let own = Self::VARIANTS.iter().filter(move |kind| !others.contains(kind)).copied();
        own.chain(QueueBlocker::kinds())
    }
}
