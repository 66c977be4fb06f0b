//! What becomes true of what hosts are to have.

use os_upgrade_protocol::{HostName, ItemId, Revision};
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{Failure, ProviderName};
use serde::{Deserialize, Serialize};

use crate::about::{About, AuditList, OwnerRef, Part};

/// Something that has become true of what hosts are to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum DesiredFact {
    /// What a provider gave for a host is sealed and stored, and the host is to have it from here on.
    ItemStored {
        host: HostName,
        provider: ProviderName,
        /// The item's id.
        item: ItemId,
        /// How many bytes it has, sealed.
        bytes: u64,
        /// What it was sealed for.
        sealed: Revision,
        /// A value that is the same for the same content, file and key of the host; only who has the strongbox key can compute it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fingerprint: Option<String>,
        /// The provider's hash of it, sealed under the strongbox key; absent without that key, and of kind `http`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// A host is to have nothing of a provider any more, as the provider says.
    ItemRevoked { host: HostName, provider: ProviderName },
    /// The manifest that follows from the state is stored, and what it no longer names is deleted.
    ManifestStored { host: HostName, revision: Revision },
    /// An operator wants a provider to be asked at once.
    PollRequested {
        provider: ProviderName,
        /// About which host; absent if about all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostName>,
        /// Who wants that.
        actor: String,
    },
    /// Hosts are told again what they are to have, after a restoration or because one had something newer.
    DeliveryResumed {
        /// The host; absent if all are told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostName>,
        /// The epoch of the manifests from here on, unless a later restoration has a greater one.
        epoch: u64,
        /// Who resumed it.
        actor: String,
    },
    /// Hosts have something from before the last restoration, and the site knows of nothing that they are to have: they are to have nothing.
    UnknownItemsFound { hosts: Vec<HostName> },
    /// No host gets an answer of a provider any more.
    ProviderFailed {
        provider: ProviderName,
        /// A host about which it was asked.
        host: HostName,
        /// How that failed.
        failure: Failure,
    },
    /// A provider that had failed answers again.
    ProviderRecovered { provider: ProviderName },
    /// A leader drew a token with which a provider may call back.
    HookTokenDrawn {
        provider: ProviderName,
        /// The token's SHA-256, in hex.
        digest: String,
    },
    /// A provider may not call back with the tokens that it has.
    HookTokensRevoked {
        provider: ProviderName,
        /// Who wants that.
        actor: String,
    },
    /// A provider has answered to an event of a host.
    HookAnswered {
        provider: ProviderName,
        host: HostName,
        event: HookEvent,
        /// Why it was told of the event; 0 of a poll.
        cause: u64,
        /// The digest of the host's metadata that it was told.
        metadata: u64,
        /// How often it wants to be asked from here on, in seconds; absent if it has not said that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        poll_interval: Option<u64>,
    },
    /// Hosts have other metadata than the provider was told.
    HookMetadataChanged { provider: ProviderName, hosts: Vec<HostName> },
    /// A provider has called back: it has something new for hosts.
    CallbackReceived { provider: ProviderName, hosts: Vec<HostName> },
}

impl DesiredFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::ItemStored { host, .. }
            | Self::ItemRevoked { host, .. }
            | Self::ManifestStored { host, .. }
            | Self::HookAnswered { host, .. } => About::host(OwnerRef::None, host),
            Self::PollRequested { host, actor, .. } | Self::DeliveryResumed { host, actor, .. } => {
                let about = About { actor: Some(actor), host: host.as_ref(), ..About::default() };
                about.in_list(AuditList::Enrolment)
            }
            Self::HookTokensRevoked { actor, .. } => About::by(actor).in_list(AuditList::Enrolment),
            Self::UnknownItemsFound { .. }
            | Self::ProviderFailed { .. }
            | Self::ProviderRecovered { .. }
            | Self::HookTokenDrawn { .. }
            | Self::HookMetadataChanged { .. }
            | Self::CallbackReceived { .. } => About::default(),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::ItemStored { .. }
            | Self::ItemRevoked { .. }
            | Self::ManifestStored { .. }
            | Self::PollRequested { .. }
            | Self::DeliveryResumed { .. }
            | Self::UnknownItemsFound { .. }
            | Self::ProviderFailed { .. }
            | Self::ProviderRecovered { .. }
            | Self::HookTokenDrawn { .. }
            | Self::HookTokensRevoked { .. }
            | Self::HookAnswered { .. }
            | Self::HookMetadataChanged { .. }
            | Self::CallbackReceived { .. } => &[],
        }
    }
}
