//! Items: got from the stream, opened and read.

use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{Content, HostName, Item, subject};
use os_upgrade_sealing::{PrivateKey, SealedFor};

use crate::bus::Bus;
use crate::configuration::Secret;

/// The content of `item` for `host`.
///
/// # Errors
/// It is not in the stream, or not sealed to `key` for what the manifest says of it.
pub(super) async fn get(bus: &Bus, key: &PrivateKey, host: &HostName, item: &Item) -> Result<Secret, String> {
    let subject = subject::desired_item(host, &item.id);
    let sealed = bus.get(subject::DESIRED_STREAM, &subject).await;
    let sealed = sealed.map_err(|error| format!("the item cannot be read: {error}"))?;
    let sealed = sealed.ok_or_else(|| "the item is not in the stream".to_owned())?;
    let sealed_for = SealedFor { host, kind: item.kind, name: &item.name, revision: item.sealed };
    let opened = key
        .open(&sealed_for, &sealed)
        .map_err(|error| format!("the item cannot be opened with the key {}: {error}", key.public()))?;
    let content = Content::parse(&opened);
    content.map(Secret).map_err(|error| format!("the item's content is malformed: {}", with_causes(&error)))
}
