//! Slots that hosts hold, or may hold, on behalf of runs, and the fence, which shows which of their commands may still
//! appear. Slots outlive the run that took them.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

use crate::config::LockProvider;
use crate::control::{Fence, SentCommand};
use crate::left_out::is_default;
use crate::owner::Owner;
use crate::reason::{LockRefusal, Reason};

/// For how long a lock server may still carry out a request whose outcome is not known, after it has confirmed a later
/// release.
pub const LATE_REQUEST_MAX: TimeDelta = TimeDelta::seconds(30);

/// A host's slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slot {
    pub group: GroupName,
    /// Who granted it, and where it must be released.
    pub provider: LockProvider,
    /// Whether it is requested, held or being released.
    #[serde(rename = "standing")]
    pub state: SlotState,
    /// When it entered this state.
    pub since: DateTime<Utc>,
    /// When it was granted, if it is being released and had been held before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<DateTime<Utc>>,
    /// Why its lock server has not granted it so far, or not released it: its last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<LockRefusal>,
    /// Whether its lock server may still carry out an earlier request about it, whose outcome is not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_doubt: bool,
    /// When its lock server confirmed its release, if it was in doubt then: [`LATE_REQUEST_MAX`] later it is released once
    /// more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlocked_at: Option<DateTime<Utc>>,
    /// Who requested it last.
    #[serde(rename = "run")]
    pub owner: Owner,
    /// The last command of the step it is held for: `done` to this very command releases it, however late. Absent until
    /// one has been seen in the control stream.
    pub command: Option<SentCommand>,
    /// Whether any command of the step it is held for has been seen in the control stream, in this run or in an earlier
    /// run in which it was held. If so, the host may be at work, and only its `done` shows that it is not.
    pub begun: bool,
    /// Whether its host's worker answered an error to the `upgrade` or `reboot` of the run that it is held for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed: bool,
    /// If its run ended before its command was seen in the stream: the sequence of the fence at that time. Once a newer
    /// fence has been passed, the command can no longer appear, and a slot whose step has not begun is released.
    pub unsent_at_fence: Option<u64>,
}

impl Slot {
    /// Whether a host of `group` can use it when slots are granted by `provider`.
    pub(crate) fn fits(&self, group: &GroupName, provider: LockProvider) -> bool {
        self.provider == provider && self.group == *group
    }

    /// A slot of `group` that is requested at `at` for `owner` from a lock server.
    pub(crate) fn requested(group: &GroupName, owner: &Owner, at: DateTime<Utc>) -> Self {
        Self {
            group: group.clone(),
            provider: LockProvider::External,
            state: SlotState::Requested,
            since: at,
            held_since: None,
            refusal: None,
            in_doubt: false,
            unlocked_at: None,
            owner: owner.clone(),
            command: None,
            begun: false,
            failed: false,
            unsent_at_fence: None,
        }
    }

    /// Why its lock server, which is asked for it, has not granted it.
    pub fn not_granted(&self) -> Reason {
        let asking = || Reason::AskingForSlot { group: self.group.clone() };
        self.refusal.as_ref().map_or_else(asking, |refusal| refusal.reason(&self.group))
    }

    /// Marks it at `at` as to be released by its lock server, perhaps once more.
    pub(crate) fn release_due(&mut self, why: ReleaseCause, at: DateTime<Utc>) {
        if self.unlocked_at.take().is_some() {
            return;
        }
        if self.state == SlotState::Held {
            self.held_since = Some(self.since);
        }
        self.refusal = None;
        self.state = SlotState::Releasing { why };
        self.since = at;
    }

    /// It is requested from its lock server, perhaps though it is held already.
    pub(crate) fn asked(&mut self) {
        if !matches!(self.state, SlotState::Releasing { .. }) {
            self.refusal = None;
        }
    }

    /// The outcome of a request about it is not known, or will not be.
    pub(crate) fn doubted(&mut self) {
        self.in_doubt = true;
        self.unlocked_at = None;
    }

    /// Its lock server confirmed its release at `at`, though it may carry out an earlier request later.
    pub(crate) fn unlocked(&mut self, at: DateTime<Utc>) {
        self.in_doubt = false;
        self.unlocked_at = Some(at);
        self.refusal = None;
    }

    /// When its lock server, which has released it, is asked to do so once more; absent unless that is due later.
    pub fn unlock_again_at(&self) -> Option<DateTime<Utc>> {
        self.unlocked_at.map(|at| at + LATE_REQUEST_MAX)
    }

    /// Whether a command of an ended run may still appear for it under `fence`, the current fence.
    pub fn may_see_late_command(&self, fence: Option<&Fence>) -> bool {
        let passed = fence.filter(|fence| fence.passed).map_or(0, |fence| fence.sequence);
        self.unsent_at_fence.is_some_and(|unsent| passed <= unsent)
    }
}

/// Whether a slot is requested, held or being released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotState {
    /// Requested from a lock server, whose answer is not known: it may be held.
    Requested,
    Held,
    /// No longer needed; the lock server has not confirmed its release yet.
    Releasing {
        /// Why it is released.
        why: ReleaseCause,
    },
}

/// Why a slot is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseCause {
    /// The host is upgraded.
    Upgraded,
    /// The host has rebooted, as an entry of the reboot queue asks for.
    Rebooted,
    /// The host failed or did not answer, and `on-failure` is `release`.
    Failed,
    /// The command for which it was taken was never sent.
    NeverSent,
    /// It was requested, or its host's node was drained, and it is no longer needed.
    NotNeeded,
    /// The drain of the host's node was given up, and is tried again later.
    DrainGivenUp,
    /// The host answered `done` after its part in the run had ended.
    LateDone,
    /// An operator released it.
    Operator,
}

impl ReleaseCause {
    /// The word in the history.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
