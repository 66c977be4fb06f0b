//! Slots that hosts hold, or may hold, on behalf of runs, and the fence that says which of their commands may still appear.
//! Slots outlive the run that took them.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, RunId};
use serde::{Deserialize, Serialize};

use crate::config::LockProvider;

/// A host's slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slot {
    /// The group it is of.
    pub group: GroupName,
    /// Who granted it, and must be asked to take it back.
    pub provider: LockProvider,
    /// How it stands.
    pub standing: Standing,
    /// Since when it stands so.
    pub since: DateTime<Utc>,
    /// Since when it had been held, for one that is on its way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<DateTime<Utc>>,
    /// The run that asked for it last.
    pub run: RunId,
    /// The last command of the step it was taken for: `done` to this very command releases it, however late.
    pub command: Option<SentCommand>,
    /// Whether any command of the step it was taken for has ever stood in the stream, in this run or in the ones
    /// before in which it was held: if so, the host may be at work, and only its `done` shows that it is not.
    pub begun: bool,
    /// For a slot whose run ended before its command was seen in the stream: the fence of that time. Once a newer
    /// fence has been read past, the command can no longer appear, and a slot whose step has not begun is released.
    pub unsent_at_fence: Option<u64>,
}

impl Slot {
    /// Whether a host of `group` can use it, when `provider` is who grants slots now.
    pub(crate) fn fits(&self, group: &GroupName, provider: LockProvider) -> bool {
        self.provider == provider && self.group == *group
    }

    /// Whether a command of a run that has ended may still appear for it, given the fence in force.
    pub fn may_see_late_command(&self, fence: Option<&Fence>) -> bool {
        let passed = fence.filter(|fence| fence.passed).map_or(0, |fence| fence.sequence);
        self.unsent_at_fence.is_some_and(|unsent| passed <= unsent)
    }
}

/// The fence under which commands are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fence {
    /// Its sequence in the control stream.
    pub sequence: u64,
    /// The instance whose it is.
    pub leader: String,
    /// Whether everything before it has been read.
    pub passed: bool,
}

/// How a slot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Asked for at a lock server: it may be held, until the server has said what is.
    Requested,
    /// Held.
    Held,
    /// No longer needed; the lock server has not confirmed its release yet.
    Releasing {
        /// Why it is given back.
        why: ReleaseCause,
    },
}

/// A command that stands in the control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SentCommand {
    /// What it asks.
    pub action: Action,
    /// Its sequence in the stream.
    pub sequence: u64,
}

impl SentCommand {
    /// Whether a reply to `action`, standing at `sequence`, answers this command. A reply that does not say which
    /// command it answers counts if it is about the same action and came later.
    pub fn answered_by(self, action: Action, in_reply_to: Option<u64>, sequence: u64) -> bool {
        self.action == action
            && match in_reply_to {
                Some(command) => command == self.sequence,
                None => sequence > self.sequence,
            }
    }
}

/// Why a slot is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseCause {
    /// The host is through.
    Upgraded,
    /// The host failed or fell silent, and the setting says to release.
    Failed,
    /// The command for which it was taken was never sent.
    NeverSent,
    /// It was asked for and is not needed any more.
    NotNeeded,
    /// `done` came at last, after the host had been given up.
    LateDone,
    /// An operator said so.
    Operator,
}

impl ReleaseCause {
    /// The word in the history.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
