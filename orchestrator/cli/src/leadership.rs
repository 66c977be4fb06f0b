//! Whether an instance leads, as the one that is asked knows. Without a leader it shows what was last known.

use os_upgrade_api_types::routes::cluster;
use os_upgrade_console::rows::cluster::trouble;
use os_upgrade_protocol::text::sanitized;

use crate::output::Output;
use crate::rest::Client;

/// Says that what follows was last known, if no instance leads. What cannot be read is left out: it is only a note.
pub(crate) async fn note_last_known(client: &Client, output: Output) {
    if !output.has_asides() {
        return;
    }
    let read = client.read(&cluster::READ).await;
    if let Some(trouble) = read.ok().and_then(|cluster| trouble(&cluster)) {
        output.aside(&sanitized(&format!("{trouble}; last known:")));
    }
}
