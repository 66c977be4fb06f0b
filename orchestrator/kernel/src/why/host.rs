//! What keeps a host, as far as that follows from the current state and view. `explain.rs` finds it.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, ApplicationName, GroupName, HostName};
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use crate::as_text::as_text;
use crate::in_seconds::in_seconds_if_any;
use crate::node::NodeProgress;
use crate::reason::{LockRefusal, Reason};
use crate::reboot_queue::EntryStatus;
use crate::run::LateAnswer;
use crate::start::UsedWindow;

/// Why a host is not progressing, as far as that follows from the current state and view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum HostBlocker {
    /// Its command has not been seen in the control stream yet.
    CommandUnsent { action: Action },
    /// Its command has been sent and not been answered.
    ReplyAwaited { action: Action },
    /// No upgrade begins before every host is prepared.
    HostsUnprepared {
        /// How many hosts are not prepared.
        hosts: usize,
    },
    /// As many hosts are being prepared, or are prepared and have not begun, as the rollout allows.
    HostsPreparing {
        /// How many those are.
        hosts: usize,
    },
    /// Its turn has not come.
    TurnAwaited,
    /// As many hosts are under way as the rollout allows.
    HostUnderWay {
        /// The first host under way.
        host: HostName,
    },
    /// Another host of its group gets the next slot.
    HostFirst {
        /// The other host.
        host: HostName,
        /// Why the other host is not progressing.
        by: Reason,
    },
    /// A host that is not under way holds a slot of the group.
    SlotStuck {
        /// The host that holds the slot.
        host: HostName,
        /// Why that host is stuck.
        reason: Reason,
    },
    /// A command of an earlier run may still appear.
    EarlierCommand,
    /// Its earlier slot is being released.
    EarlierSlot {
        /// Why its lock server has not released it so far; absent if it has not refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<LockRefusal>,
        /// When its lock server, which has released it, is asked once more; absent unless it may carry out an earlier
        /// request until then.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_seconds_if_any")]
        again_at: Option<DateTime<Utc>>,
    },
    /// The reboot queue is at work on it.
    RebootUnderWay {
        #[serde(serialize_with = "as_text")]
        index: u64,
        status: EntryStatus,
        /// Why its host is not back, if its worker has answered with an error.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// Its Kubernetes node is being drained or uncordoned.
    NodeUnderWay {
        /// How far that is.
        #[serde(flatten)]
        node: NodeProgress,
    },
    /// Its Kubernetes node has stayed cordoned since its host failed or was given up.
    NodeCordoned { host: HostName },
    /// It was approved after the run had skipped it.
    ApprovedLate,
    /// It had not announced itself when the run started.
    AppearedLate,
    /// An operator withdrew it while it is under way.
    LeavesAfterRun,
    /// It sends heartbeats, and none has arrived for too long.
    Silent,
    /// It is not known yet whether it still sends heartbeats.
    HeartbeatAwaited,
    /// Its clock is so wrong that its worker may consider a command expired.
    WorkerClockSkew {
        /// The worker's clock minus the bus's, in seconds.
        seconds: i64,
    },
    /// No worker has announced itself on it.
    NotAnnounced,
    /// It has no worker of a configured application.
    NotServed,
    /// It has a worker of a configured application, which does not count because too many others are announced on it.
    ApplicationRefused { application: ApplicationName },
    /// No run is active. Its `until` is the start of the next automatic run, if there is one.
    NoRun,
    /// The open window starts no further run.
    WindowUsed(UsedWindow),
    /// It holds a slot outside of runs.
    SlotHeld {
        group: GroupName,
        /// The entry of the reboot queue for which it got the slot; absent if a run got it.
        #[serde(skip)]
        entry: Option<u64>,
        /// When it got the slot, in whole seconds.
        #[serde(skip)]
        since: DateTime<Utc>,
        /// Why it did not succeed in the last run; absent if it did or was not in it.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        /// What its worker answered after that run; absent if it answered nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        late_answer: Option<LateAnswer>,
        /// The host itself, if it keeps the slot; absent if the slot is given back once its node is uncordoned.
        #[serde(skip)]
        kept_by: Option<HostName>,
    },
    /// The slot that it holds outside of runs is being released.
    SlotReleasing {
        group: GroupName,
        /// Why its lock server has not released it so far; absent if it has not refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<LockRefusal>,
        /// When its lock server, which has released it, is asked once more; absent unless it may carry out an earlier
        /// request until then.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_seconds_if_any")]
        again_at: Option<DateTime<Utc>>,
    },
}

impl HostBlocker {
    /// The reason that it holds.
    pub(super) const fn reason_mut(&mut self) -> Option<&mut Reason> {
        match self {
            Self::HostFirst { by, .. } => Some(by),
            Self::SlotStuck { reason, .. } => Some(reason),
            Self::RebootUnderWay { reason, .. } | Self::SlotHeld { reason, .. } => reason.as_mut(),
            Self::CommandUnsent { .. }
            | Self::ReplyAwaited { .. }
            | Self::HostsUnprepared { .. }
            | Self::HostsPreparing { .. }
            | Self::TurnAwaited
            | Self::HostUnderWay { .. }
            | Self::EarlierCommand
            | Self::EarlierSlot { .. }
            | Self::NodeUnderWay { .. }
            | Self::NodeCordoned { .. }
            | Self::ApprovedLate
            | Self::AppearedLate
            | Self::LeavesAfterRun
            | Self::Silent
            | Self::HeartbeatAwaited
            | Self::WorkerClockSkew { .. }
            | Self::NotAnnounced
            | Self::NotServed
            | Self::ApplicationRefused { .. }
            | Self::NoRun
            | Self::WindowUsed(_)
            | Self::SlotReleasing { .. } => None,
        }
    }
}
