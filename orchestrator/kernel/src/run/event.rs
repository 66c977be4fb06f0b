//! What happens to a host in a run.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{Action, ApplicationName, GroupName, HostName};
use serde::{Deserialize, Serialize};

use crate::about::AboutCommand;
use crate::config::LockProvider;
use crate::left_out::is_default;
use crate::reason::Reason;

/// A host in the list with which a run starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Enlisted {
    /// The host's name.
    pub host: HostName,
    /// The worker application that serves it.
    pub application: ApplicationName,
    /// The group whose slot it needs.
    pub group: GroupName,
    /// Why it is skipped; absent when it takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Reason>,
    /// Whether its heartbeat was awaited, so that it may be off.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unheard: bool,
}

/// What happens to a host in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(HostStep),
    derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum HostEvent {
    /// Its command was seen in the control stream.
    CommandSent {
        action: Action,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The command's sequence in the control stream.
        sequence: u64,
    },
    /// Its turn to be prepared has come, so `prepare` must be sent.
    PrepareBegan,
    /// Its worker answered `prepare` with an error, and it is prepared again.
    PrepareFailed {
        /// When it may be prepared again.
        until: DateTime<Utc>,
        /// What its worker answered.
        reason: Reason,
    },
    /// It answered `done` to `prepare`.
    Prepared,
    /// It waits for a slot.
    Waiting {
        /// What it waits for.
        reason: Reason,
    },
    /// It lost its turn and waits like the other prepared hosts.
    TurnLost,
    /// It holds a slot, so `upgrade` must be sent, after a drain of its node if it has one.
    SlotGranted {
        group: GroupName,
        /// Who granted the slot.
        provider: LockProvider,
        /// Whether its node is drained before it is upgraded.
        #[serde(default, skip_serializing_if = "is_default")]
        drain: bool,
    },
    /// Its node is drained, so `upgrade` must be sent.
    Drained,
    /// The drain of its node was given up; it does not start again before `until`.
    BackedOff {
        /// When it may start again.
        until: DateTime<Utc>,
        /// Why its drain was given up.
        reason: Reason,
    },
    /// It has not answered `upgrade` in time: the run counts it as failed and goes on without it, and its step goes on while the run lives.
    Overdue {
        /// The rollout's `upgrade-timeout`.
        after: Duration,
    },
    /// It answered `done` to its last command, and its node is to be uncordoned.
    Recovering,
    /// It answered `reboot-required`, so `reboot` must be sent.
    RebootRequired,
    Upgraded,
    Failed {
        /// The reason, as it is journaled.
        reason: Reason,
    },
    /// It did not finish in time, or was given up.
    TimedOut {
        /// The reason, as it is journaled.
        reason: Reason,
    },
    /// It turned out to be off.
    Skipped {
        /// The reason, as it is journaled.
        reason: Reason,
    },
    /// An operator took it out of the run before its upgrade was sent.
    Cancelled {
        /// What the operator did.
        reason: Reason,
    },
    /// Its turn to be upgraded never came, or came to nothing.
    NotReached {
        /// What it last waited for.
        reason: Reason,
    },
}

impl HostEvent {
    /// The event's name, as in its JSON.
    pub fn name(&self) -> &'static str {
        HostStep::from(self).into()
    }

    /// The operator, if one caused it.
    pub fn actor(&self) -> Option<&str> {
        if let Self::TimedOut { reason } | Self::Cancelled { reason } = self { reason.actor() } else { None }
    }

    /// The command that was seen in the control stream.
    pub(super) const fn command(&self) -> Option<AboutCommand> {
        match self {
            Self::CommandSent { action, sequence, .. } => {
                Some(AboutCommand { sequence: *sequence, seen: Some(*action) })
            }
            Self::PrepareBegan
            | Self::PrepareFailed { .. }
            | Self::Prepared
            | Self::Waiting { .. }
            | Self::TurnLost
            | Self::SlotGranted { .. }
            | Self::Drained
            | Self::BackedOff { .. }
            | Self::Overdue { .. }
            | Self::Recovering
            | Self::RebootRequired
            | Self::Upgraded
            | Self::Failed { .. }
            | Self::TimedOut { .. }
            | Self::Skipped { .. }
            | Self::Cancelled { .. }
            | Self::NotReached { .. } => None,
        }
    }
}
