//! What happens to a host in a run.

use os_upgrade_protocol::{Action, ApplicationName, GroupName, HostName};
use serde::{Deserialize, Serialize};

use crate::config::LockProvider;
use crate::reason::Reason;

/// A host in the list of a run's start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Enlisted {
    /// Its name.
    pub host: HostName,
    /// The application that serves it.
    pub application: ApplicationName,
    /// The group whose slot it needs.
    pub group: GroupName,
    /// Why it is left out, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Reason>,
}

/// What happens to a host in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum HostEvent {
    /// Its command stands in the control stream.
    CommandSent {
        /// What it asks.
        action: Action,
        /// 1 for the first.
        attempt: u32,
        /// Its sequence.
        sequence: u64,
    },
    /// It answered `done` to `prepare`.
    Prepared,
    /// It has to wait for a slot.
    Waiting {
        /// Why.
        reason: Reason,
    },
    /// Its turn is taken back; it waits like the others.
    TurnLost,
    /// It holds a slot, so `upgrade` is to be sent.
    SlotGranted {
        /// The group it is of.
        group: GroupName,
        /// Who granted it.
        provider: LockProvider,
    },
    /// It answered `reboot-required`, so `reboot` is to be sent.
    RebootRequired,
    /// It is through.
    Upgraded,
    /// It failed.
    Failed {
        /// Why.
        reason: Reason,
    },
    /// It did not come to an end in time.
    TimedOut {
        /// At what.
        reason: Reason,
    },
    /// It was never started.
    Cancelled {
        /// Why not.
        reason: Reason,
    },
}

impl HostEvent {
    /// The event's name, as in its JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Who caused it, where an operator did.
    pub fn actor(&self) -> Option<&str> {
        if let Self::TimedOut { reason } | Self::Cancelled { reason } = self { reason.actor() } else { None }
    }
}
