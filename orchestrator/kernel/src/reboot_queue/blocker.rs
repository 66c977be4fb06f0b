//! Why an entry of the reboot queue is not progressing.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::time;
use strum::{IntoStaticStr, VariantNames};

use super::choose::{NotReady, QueueBlocker};
use crate::node::NodeProgress;
use crate::reason::Reason;

/// Why an entry of the reboot queue is not progressing. `Display` gives the clause for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum EntryBlocker {
    /// It has backed off.
    #[error("{}; it is tried again from {} on", reason.as_ref().map_or("it could not be told to reboot".to_owned(), Reason::to_string), time::format(*until))]
    BackedOff {
        /// Until when it does not start again.
        until: DateTime<Utc>,
        /// Why it has, if that was recorded.
        reason: Option<Reason>,
    },
    /// It cannot start, whatever becomes of the others.
    #[error("{0}")]
    NotReady(NotReady),
    /// No entry can start.
    #[error("{0}")]
    Queue(QueueBlocker),
    /// Another entry comes first.
    #[error("entry {0} comes first")]
    Behind(u64),
    /// Its slot was not granted so far.
    #[error("{0}")]
    Slot(Reason),
    /// Its Kubernetes node is being drained or uncordoned.
    #[error("{0}")]
    NodeUnderWay(NodeProgress),
    /// Its command has not been seen in the control stream yet.
    #[error("its reboot command is about to be sent")]
    CommandUnsent,
    /// Its worker has not answered. A boot that hangs ends when an operator gives it up.
    #[error("its worker has not answered reboot since {}", time::format(*.0))]
    ReplyAwaited(DateTime<Utc>),
    /// The operator's command is being run.
    #[error("the reboot command is being run since {}", time::format(*.0))]
    CommandRuns(DateTime<Utc>),
    /// The operator's command has begun the reboot, and the host is not back. A boot that hangs ends when an operator gives it up.
    #[error("the reboot command succeeded at {}, and the host is not back", time::format(*.0))]
    BootAwaited(DateTime<Utc>),
    /// Whether the operator's command has begun the reboot is not known, and it is not run again.
    #[error(
        "{reason}; unknown since {}; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry",
        time::format(*since)
    )]
    AttemptUnknown {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        since: DateTime<Utc>,
    },
    /// Whether the operator's command has begun the reboot is not known, and it is run again later.
    #[error(
        "{reason}; unknown since {}; it is run again from {} on if the host is ready in its old boot",
        time::format(*since), time::format(*at)
    )]
    RetryAwaited {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        since: DateTime<Utc>,
        /// When it is run again, if the host is ready in its old boot then.
        at: DateTime<Utc>,
    },
    /// It was cancelled after the operator's command was run, which is undone if the host has not rebooted by then.
    #[error(
        "cancelled while its host was to reboot: what was begun is undone from {} on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry",
        time::format(*.0)
    )]
    CancelAwaited(DateTime<Utc>),
    /// Whether the operator's command has begun the reboot is not known. The host is in another boot, and the boot check has not said
    /// that this counts.
    #[error("{reason}; the host is in another boot, and boot-check-command has not confirmed it")]
    CheckAwaited {
        /// Why it is not known.
        reason: Reason,
    },
    /// The host is to be rebooted by a command, and the settings have none any more.
    #[error(
        "[reboot] reboot-command is not set any more; set it, or remove the entry with `os-upgrade reboot-queue cancel`"
    )]
    NoCommand,
    /// Its worker answered with an error, or the operator's command failed.
    #[error("{reason}; {}", ends_by(reason))]
    Failed {
        /// What went wrong.
        reason: Reason,
    },
}

/// How an operator ends an entry that has failed.
const fn ends_by(reason: &Reason) -> &'static str {
    if matches!(reason, Reason::RebootCommandNotStarted { .. }) {
        "`os-upgrade reboot-queue cancel` undoes what was begun, and removes the entry"
    } else if matches!(reason, Reason::RebootCommandFailed { .. }) {
        "`os-upgrade reboot-queue cancel` undoes what was begun if the host stays in its boot; once the host is looked after, \
         `give-up` removes the entry"
    } else {
        "once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry"
    }
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
