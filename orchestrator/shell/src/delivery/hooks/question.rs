//! What a provider is told of an event.

use os_upgrade_kernel::{ConfigProvider, ItemState, State, View};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::{HookEvent, event_uuid};

use crate::delivery::action::{AppliedHash, HookQuestion};

/// What `provider` is told of an event of `host`. It may call back with the token that has the digest `token`.
pub(super) fn hook_question(
    (state, view): (&State, &View),
    provider: &ConfigProvider,
    host: &HostName,
    (event, cause): (HookEvent, u64),
    token: &str,
) -> HookQuestion {
    let name = &provider.name;
    let is_applied = state.item_state(view, host, name) == ItemState::Applied;
    // What is for a file that the provider named before is not applied. A provider that was told its hash would say that nothing is new, and
    // the other file would never get the content.
    let item = if is_applied { state.desired.item(host, name) } else { None };
    HookQuestion {
        event,
        cause,
        uuid: event_uuid(name, host, event, state.epoch(), cause),
        metadata: state.hook_device_metadata(view, provider, host),
        digest: view.metadata_digest(host),
        token: token.to_owned(),
        applied: item.map(|item| AppliedHash { item: item.id.clone(), hash: item.hash.clone() }),
    }
}
