//! Whether an instance leads, as the one that is asked knows. Without a leader it shows what was last known.

use os_upgrade_api_types::routes::cluster::{self, ClusterState, InstanceState};

use crate::output::Output;
use crate::rest::Client;

/// Why what is shown may be out of date; absent if an instance leads and is ready.
pub(crate) fn trouble(cluster: &ClusterState<'_>) -> Option<String> {
    let ClusterState { leader, instances, .. } = cluster;
    let why = |instance: &InstanceState<'_>| instance.not_ready_reason.as_ref().map(ToString::to_string);
    let Some(leader) = leader else {
        let why = instances.iter().find_map(why).map(|why| format!(" ({why})"));
        return Some(format!("no instance leads{}: nothing goes on", why.unwrap_or_default()));
    };
    let why = instances.iter().find(|one| one.instance == *leader).and_then(why)?;
    Some(format!("{leader} leads and is not ready ({why})"))
}

/// Says that what follows was last known, if no instance leads. What cannot be read is left out: it is only a note.
pub(crate) async fn note_last_known(client: &Client, output: Output) {
    if !output.is_for_people() || output.is_quiet() {
        return;
    }
    let read = client.read(&cluster::READ).await;
    if let Some(trouble) = read.ok().and_then(|cluster| trouble(&cluster)) {
        output.aside(&os_upgrade_protocol::text::sanitized(&format!("{trouble}; last known:")));
    }
}
