//! What becomes true of which hosts take part.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostKey, HostName};
use serde::{Deserialize, Serialize};

use crate::about::{About, AuditList, OwnerRef, Part};
use crate::left_out::is_default;

/// Something that has become true of which hosts take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EnrolmentFact {
    /// Hosts take part in every run that starts from here on.
    HostsApproved {
        /// The hosts, by name.
        hosts: Vec<HostName>,
        /// Who approved them.
        actor: String,
    },
    /// What is for the host is sealed to this key from here on.
    KeyPinned {
        host: HostName,
        key: HostKey,
        /// Who approved it; absent if it was the first one of a host that the settings approve.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A host no longer takes part. What follows in the active run is a separate fact.
    HostWithdrawn {
        host: HostName,
        /// Who withdrew it.
        actor: String,
        /// The operator's reason.
        reason: String,
        /// Whether the decisions about the host are forgotten, as if there had been none.
        #[serde(default, skip_serializing_if = "is_default")]
        forgotten: bool,
    },
    /// A host is gone: decisions about it, and what it has announced, are forgotten.
    HostRemoved {
        host: HostName,
        /// Who removed it.
        actor: String,
        /// The operator's reason.
        reason: String,
        /// The sequence of its last announcement; 0 if it had announced nothing.
        announced: u64,
    },
    /// What was stored of a removed host has been deleted.
    HostPurged { host: HostName },
    /// A host begins nothing for now, or its deferral has another end or reason from here on. What follows in the active run is a
    /// separate fact.
    HostDeferred {
        host: HostName,
        /// Who deferred it.
        actor: String,
        /// The operator's reason.
        reason: String,
        /// When that ends by itself; absent if it lasts until an operator ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
    },
    /// A host is no longer deferred.
    DeferralEnded {
        host: HostName,
        /// Who ended it; absent if its end had come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl EnrolmentFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::HostsApproved { actor, .. } => About::by(actor).in_list(AuditList::Enrolment),
            Self::HostWithdrawn { host, actor, .. }
            | Self::HostRemoved { host, actor, .. }
            | Self::HostDeferred { host, actor, .. } => {
                let about = About { actor: Some(actor), ..About::host(OwnerRef::None, host) };
                about.in_list(AuditList::Enrolment)
            }
            Self::KeyPinned { host, actor, .. } | Self::DeferralEnded { host, actor, .. } => {
                let about = About { actor: actor.as_deref(), ..About::host(OwnerRef::None, host) };
                about.in_list(AuditList::Enrolment)
            }
            Self::HostPurged { host } => About::host(OwnerRef::None, host),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::HostsApproved { .. }
            | Self::KeyPinned { .. }
            | Self::HostWithdrawn { .. }
            | Self::HostRemoved { .. }
            | Self::HostPurged { .. }
            | Self::HostDeferred { .. }
            | Self::DeferralEnded { .. } => &[],
        }
    }
}
