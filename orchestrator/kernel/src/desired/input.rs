//! What follows from what a provider has said, and from what was stored in the stream.

use os_upgrade_protocol::limits::CONFIGURATIONS_MAX;
use os_upgrade_protocol::{HostKey, HostName, ItemId, Revision};
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::HookEvent;

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
    /// The provider's hash of it, sealed under the strongbox key; absent without that key, and of kind `http`.
    pub hash: Option<String>,
}

/// A provider of kind `hooks` has answered to an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredEvent {
    pub(crate) event: HookEvent,
    /// Why it was told of the event.
    pub(crate) cause: u64,
    /// The digest of the host's metadata that it was told.
    pub(crate) metadata: u64,
    /// How often it wants to be asked, in seconds; absent if it has not said that.
    pub(crate) poll_interval: Option<u64>,
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
    let has_room = items.is_none_or(|items| items.contains_key(provider) || items.len() < CONFIGURATIONS_MAX);
    let is_known = state.desired.item(host, provider).is_some_and(|item| item.id == stored.id);
    if !is_wanted || !has_room || is_known || state.enrolment.pinned(host) != Some(&stored.key) {
        return Vec::new();
    }
    let StoredItem { id: item, bytes, key: _, sealed, fingerprint, hash } = stored.clone();
    let (host, provider) = (host.clone(), provider.clone());
    vec![DesiredFact::ItemStored { host, provider, item, bytes, sealed, fingerprint, hash }.into()]
}

/// A provider has nothing for `host` any more. One of kind `hooks` says so with a `null`, which counts whatever `on-removal` says.
pub(crate) fn item_revoked(state: &State, host: &HostName, provider: &ProviderName) -> Vec<Fact> {
    let is_revoked = state.desired.item(host, provider).is_some()
        && state
            .provider_for(provider, host)
            .is_some_and(|it| it.is_hooks() || it.on_removal == OnRemoval::Remove);
    let revoked = || DesiredFact::ItemRevoked { host: host.clone(), provider: provider.clone() };
    is_revoked.then(|| revoked().into()).into_iter().collect()
}

/// The manifest of `host` with `revision` is stored. It matters only if it is still the one that follows from the state.
pub(crate) fn manifest_stored(state: &State, host: &HostName, revision: Revision) -> Vec<Fact> {
    let is_current = state.is_manifest_due(host, revision);
    let stored = || DesiredFact::ManifestStored { host: host.clone(), revision };
    is_current.then(|| stored().into()).into_iter().collect()
}

/// The leader drew a token with which `provider` may call back, and that has this `digest`.
pub(crate) fn hook_token_drawn(state: &State, provider: &ProviderName, digest: &str) -> Vec<Fact> {
    let has_it = state.desired.hooks.get(provider).is_some_and(|known| known.has_token(digest));
    if state.hook_provider(provider).is_none() || has_it {
        return Vec::new();
    }
    vec![DesiredFact::HookTokenDrawn { provider: provider.clone(), digest: digest.to_owned() }.into()]
}

/// A provider has answered to an event of `host`. That matters if it was still to be told of that, or wants to be asked at another interval.
pub(crate) fn hook_answered(
    state: &State,
    provider: &ProviderName,
    host: &HostName,
    answered: AnsweredEvent,
) -> Vec<Fact> {
    let Some(device) = state.hook_device(provider, host) else { return Vec::new() };
    let AnsweredEvent { event, cause, metadata, poll_interval } = answered;
    let was_pending = device.pending.get(&event) == Some(&cause);
    let is_other_interval = poll_interval.is_some() && poll_interval != device.poll_interval;
    if !was_pending && !is_other_interval {
        return Vec::new();
    }
    // When it was asked does not matter.
    let cause = if event == HookEvent::DevicePoll { 0 } else { cause };
    let (provider, host) = (provider.clone(), host.clone());
    vec![DesiredFact::HookAnswered { provider, host, event, cause, metadata, poll_interval }.into()]
}
