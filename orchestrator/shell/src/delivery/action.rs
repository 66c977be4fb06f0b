//! What delivery asks the driver to do, and what becomes of it.

use std::sync::Arc;

use os_upgrade_kernel::{ConfigProvider, ManifestOrder, StoredItem};
use os_upgrade_protocol::{DesiredFence, HostKey, HostName, Manifest, Revision};
use os_upgrade_provider_rules::{Reply, Ticket, Validator};

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

/// Something for the driver to carry out. Each is answered with its outcome and the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deliver {
    /// Put this fence in place of an earlier one.
    Fence { epoch: u64, fence: DesiredFence },
    /// Publish a manifest under the fence at this sequence, then delete the items that it no longer names, and tell the host. What is older than
    /// `since`, the first fence of this leadership, is of no use unless the manifest names it.
    Manifest { epoch: u64, fence: u64, since: u64, order: ManifestOrder, manifest: Manifest },
    /// Ask a provider. What it gives is sealed and stored under the fence at this sequence, unless its fingerprint is the one that is known.
    Ask { epoch: u64, fence: u64, question: Box<ProviderQuestion> },
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// A fence was answered.
    Fenced { epoch: u64, outcome: DesiredFenced },
    /// The publish of a manifest was answered: stored only if what it no longer names is also deleted.
    ManifestPublished { epoch: u64, order: ManifestOrder, outcome: DesiredStored },
    /// A provider was asked.
    ProviderAnswered { epoch: u64, ticket: Ticket, reply: ProviderReply },
}

/// What to ask a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderQuestion {
    pub ticket: Ticket,
    pub provider: Arc<ConfigProvider>,
    pub host: HostName,
    /// The key to which what it gives is sealed.
    pub key: HostKey,
    /// What it is sealed for.
    pub sealed: Revision,
    /// That of the content received last.
    pub validator: Option<Validator>,
    /// That of the item which the host is to have.
    pub fingerprint: Option<String>,
}

/// A provider's reply: the content is the item that was made of it, or nothing if it is what the host is to have anyway.
pub type ProviderReply = Reply<Option<StoredItem>>;
