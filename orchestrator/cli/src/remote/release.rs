//! How an operator releases the slot of a host that will not give it back.

use os_upgrade_api_types::routes::slots;
use os_upgrade_kernel::reason::quoted;
use os_upgrade_shell::text::sanitized;
use serde_json::Value;

use crate::output::Output;
use crate::rest::Client;

/// The command that releases the slot of `id` in `group`, to be copied.
pub(super) fn command(group: &str, id: &str) -> String {
    format!("os-upgrade lock release --group={} --id={} --reason=TEXT", quoted(group), quoted(id))
}

/// Says that `host`, which was given up, keeps its slot, if it does.
pub(super) async fn note_kept_slot(client: &Client, host: &str, output: Output) {
    if let Some(group) = slot_of(client, host).await {
        let (shown, release) = (sanitized(&group), command(&group, host));
        output.note(&format!(
            "it keeps its slot of group {shown} until its worker reports that it is done. If that never happens, look after \
             the host, and then:\n{release}"
        ));
    }
}

/// The group whose slot `host` holds. `None` also if that cannot be read: it is only for a note.
async fn slot_of(client: &Client, host: &str) -> Option<String> {
    let slots = client.call(&slots::READ).await.ok()?;
    let holds = |group: &&Value| {
        let holders = group["holders"].as_array();
        holders.is_some_and(|holders| holders.iter().any(|holder| holder["id"] == host))
    };
    let group = slots["groups"].as_array()?.iter().find(holds)?;
    group["group"].as_str().map(ToOwned::to_owned)
}
