//! What delivery asks the driver to do, and what becomes of it.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use os_upgrade_kernel::{ConfigProvider, ManifestOrder, StoredItem};
use os_upgrade_protocol::{DesiredFence, HostKey, HostName, ItemId, Manifest, Revision};
use os_upgrade_provider_rules::hooks::{DeviceMetadata, HookEvent};
use os_upgrade_provider_rules::{ProviderName, Reply, Ticket, Validator};
use uuid::Uuid;

use crate::inventory::HostVersions;

/// The largest versions of a host that a provider is told, in bytes: a request may be about many hosts.
const VERSIONS_BYTES_MAX: usize = 32 * 1024;

/// What became of a fence in the stream of what hosts are to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredFenced {
    /// It is stored, with this sequence.
    Stored(u64),
    /// A later leader has put its own, so this instance does not lead any more.
    Superseded,
    /// The stream is another site's.
    CrossedSite { site: String },
    /// It may be stored or not: to be tried again.
    Unknown,
}

/// What became of an item or a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesiredStored {
    /// It is stored, with this sequence.
    Stored(u64),
    /// The fence is no longer the last one: it is certainly not stored.
    Fenced,
    /// It may be stored or not. Only after another fence it can no longer become so.
    Unknown,
}

/// Something for the driver to carry out. Each is answered with its outcome, and the epoch if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deliver {
    /// Put this fence in place of an earlier one.
    Fence { epoch: u64, fence: DesiredFence },
    /// Publish a manifest under the fence at this sequence, then delete the items that it no longer names, and tell the host. Before it, under
    /// the same fence, publish the items of kind `unit` that it names and that may not be stored yet. What is older than `since`, the first
    /// fence of this leadership, is of no use unless the manifest names it.
    Manifest {
        epoch: u64,
        fence: u64,
        since: u64,
        order: ManifestOrder,
        manifest: Manifest,
        units: Vec<(ItemId, Bytes)>,
    },
    /// Ask a provider. What it gives is sealed and stored under the fence at this sequence, unless its fingerprint is the one that is known.
    Ask { epoch: u64, fence: u64, question: Box<ProviderQuestion> },
    /// Draw a token with which a provider of kind `hooks` may call back. Only its digest comes back; the token stays in memory.
    DrawToken { provider: ProviderName },
    /// Tell a provider of kind `hooks` of these events, in one request: each question has a [`ProviderQuestion::hook`], and all are to the same
    /// provider. Each is answered on its own, and what is given for it is stored, as with [`Self::Ask`].
    Call { epoch: u64, fence: u64, questions: Vec<ProviderQuestion> },
}

impl Deliver {
    /// The same, with the `versions` of hosts among what a provider is told of them, unless they are many.
    pub(crate) fn with_versions(mut self, versions: &OrdMap<HostName, HostVersions>) -> Self {
        let Self::Call { questions, .. } = &mut self else { return self };
        for ProviderQuestion { host, hook, .. } in questions {
            let (Some(hook), Some(known)) = (hook, versions.get(host)) else { continue };
            let json = serde_json::to_string(&known.versions).unwrap_or_default();
            if (1..=VERSIONS_BYTES_MAX).contains(&json.len()) {
                hook.metadata.annotations.insert("os-upgrade/versions".to_owned(), json);
            }
        }
        self
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// A fence was answered.
    Fenced { epoch: u64, outcome: DesiredFenced },
    /// The publish of a manifest was answered: stored only if its units are, and what it no longer names is deleted.
    ManifestPublished { epoch: u64, order: ManifestOrder, outcome: DesiredStored },
    /// A provider was asked.
    ProviderAnswered { epoch: u64, ticket: Ticket, reply: ProviderReply },
    /// A token was drawn: its SHA-256, in hex.
    TokenDrawn { provider: ProviderName, digest: String },
}

/// What to ask a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderQuestion {
    pub ticket: Ticket,
    pub provider: Arc<ConfigProvider>,
    pub host: HostName,
    /// The key to which what it gives is sealed; of no use for an `ON_ENROLLMENT_REQUEST`, after which nothing is.
    pub key: HostKey,
    /// What it is sealed for.
    pub sealed: Revision,
    /// That of the content received last.
    pub validator: Option<Validator>,
    /// That of the item which the host is to have.
    pub fingerprint: Option<String>,
    /// What a provider of kind `hooks` is told; absent for the others.
    pub hook: Option<HookQuestion>,
}

/// An event of a host that a provider of kind `hooks` is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookQuestion {
    pub event: HookEvent,
    /// The number that tells events of one kind apart.
    pub cause: u64,
    /// The same for whoever tells of the same event.
    pub uuid: Uuid,
    pub metadata: DeviceMetadata,
    /// That of the metadata.
    pub digest: u64,
    /// The SHA-256 of the token with which the provider may call back, in hex.
    pub token: String,
    /// What the provider gave for the host; absent unless the host reports to have it.
    pub applied: Option<AppliedHash>,
}

/// An item that a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedHash {
    pub item: ItemId,
    /// The hash of its configuration, sealed; absent if there was no key to seal it with.
    pub hash: Option<String>,
}

/// A provider's reply: the content is the item that was made of it, or nothing if it is what the host is to have anyway.
pub type ProviderReply = Reply<Option<StoredItem>>;
