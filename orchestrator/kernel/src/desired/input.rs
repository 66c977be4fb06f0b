//! What follows from what a provider has said, and from what was stored in the stream.

use os_upgrade_protocol::limits::ITEMS_MAX;
use os_upgrade_protocol::{HostKey, HostName, ItemId, Revision};
use os_upgrade_provider_rules::ProviderName;

use super::fact::DesiredFact;
use crate::config::OnRemoval;
use crate::fact::Fact;
use crate::state::State;

/// An item that was sealed and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    pub id: ItemId,
    /// How many bytes it has, sealed.
    pub bytes: u64,
    /// The key to which it was sealed.
    pub key: HostKey,
    /// What it was sealed for.
    pub sealed: Revision,
    /// A value that is the same for the same content, file and key of the host.
    pub fingerprint: Option<String>,
}

/// A provider gave something for `host`, which is stored. It counts for nothing if the host is not to have it any more, or has another key.
pub(crate) fn item_stored(
    state: &State,
    host: &HostName,
    provider: &ProviderName,
    stored: &StoredItem,
) -> Vec<Fact> {
    let is_wanted = state.provider_for(provider, host).is_some();
    let items = state.desired.hosts.get(host).map(|host| &host.items);
    let has_room = items.is_none_or(|items| items.contains_key(provider) || items.len() < ITEMS_MAX);
    let is_known = state.desired.item(host, provider).is_some_and(|item| item.id == stored.id);
    if !is_wanted || !has_room || is_known || state.enrolment.pinned(host) != Some(&stored.key) {
        return Vec::new();
    }
    let StoredItem { id: item, bytes, key: _, sealed, fingerprint } = stored.clone();
    let (host, provider) = (host.clone(), provider.clone());
    vec![DesiredFact::ItemStored { host, provider, item, bytes, sealed, fingerprint }.into()]
}

/// A provider has nothing for `host` any more.
pub(crate) fn item_revoked(state: &State, host: &HostName, provider: &ProviderName) -> Vec<Fact> {
    let is_revoked = state.desired.item(host, provider).is_some()
        && state.provider_for(provider, host).is_some_and(|it| it.on_removal == OnRemoval::Remove);
    let revoked = || DesiredFact::ItemRevoked { host: host.clone(), provider: provider.clone() };
    is_revoked.then(|| revoked().into()).into_iter().collect()
}

/// The manifest of `host` with `revision` is stored. It matters only if it is still the one that follows from the state.
pub(crate) fn manifest_stored(state: &State, host: &HostName, revision: Revision) -> Vec<Fact> {
    let is_current = state.is_manifest_due(host, revision);
    let stored = || DesiredFact::ManifestStored { host: host.clone(), revision };
    is_current.then(|| stored().into()).into_iter().collect()
}
