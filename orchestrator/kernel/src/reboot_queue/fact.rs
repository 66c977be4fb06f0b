//! What becomes true of the reboot queue.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::entry::EntryEvent;
use crate::about::{About, AuditList, OwnerRef, Part};

/// Something that has become true of the reboot queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum QueueFact {
    /// Hosts are to reboot: an entry of the reboot queue each, in this order.
    RebootsQueued {
        hosts: Vec<HostName>,
        /// Who queued them.
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When the maintenance window opened in which they were queued without an operator, because they need a reboot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<DateTime<Utc>>,
    },
    /// Something happened to an entry of the reboot queue.
    Reboot {
        index: u64,
        host: HostName,
        /// What happened.
        event: EntryEvent,
    },
    /// From here on entries of the reboot queue start, or no longer do.
    #[serde(rename = "reboot-queue-switched")]
    #[strum(serialize = "reboot-queue-switched")]
    Switched {
        /// Whether they start.
        enabled: bool,
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Entries of the reboot queue that have backed off may start again at once.
    #[serde(rename = "reboot-backoff-reset")]
    #[strum(serialize = "reboot-backoff-reset")]
    BackoffReset { actor: String },
}

impl QueueFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Reboot { host, event, .. } => {
                let (actor, command) = (event.actor(), event.command());
                About { actor, command, ..About::host(OwnerRef::None, host) }.in_list(AuditList::Reboots)
            }
            Self::RebootsQueued { actor, .. }
            | Self::Switched { actor, .. }
            | Self::BackoffReset { actor } => About::by(actor).in_list(AuditList::Reboots),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::Reboot { .. } => &[Part::Commands],
            Self::RebootsQueued { .. } | Self::Switched { .. } | Self::BackoffReset { .. } => &[],
        }
    }
}
