//! Whether an instance leads, as the one that is asked knows. Without a leader it shows what was last known.

use os_upgrade_api_types::routes::cluster;
use serde::Deserialize;

use crate::output::Output;
use crate::rest::Client;

/// What `GET /v1/state/cluster` answers, without its streams.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Leadership {
    pub(crate) leader: Option<String>,
    instances: Vec<Instance>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Instance {
    instance: String,
    not_ready_reason: Option<String>,
}

impl Leadership {
    /// Why what is shown may be out of date; absent if an instance leads and is ready.
    pub(crate) fn trouble(&self) -> Option<String> {
        let unready = |instance: &&Instance| instance.not_ready_reason.is_some();
        let why = |instance: &Instance| instance.not_ready_reason.clone().unwrap_or_default();
        let Some(leader) = &self.leader else {
            let why = self.instances.iter().find(unready).map(|one| format!(" ({})", why(one)));
            return Some(format!("no instance leads{}: nothing goes on", why.unwrap_or_default()));
        };
        let leader = self.instances.iter().find(|one| one.instance == *leader).filter(unready)?;
        Some(format!("{} leads and is not ready ({})", leader.instance, why(leader)))
    }
}

/// Says that what follows was last known, if no instance leads. What cannot be read is left out: it is only a note.
pub(crate) async fn note_last_known(client: &Client, output: Output) {
    if !output.is_for_people() || output.is_quiet() {
        return;
    }
    let read = client.read::<Leadership>(&cluster::READ).await;
    if let Some(trouble) = read.ok().and_then(|leadership| leadership.trouble()) {
        output.aside(&os_upgrade_shell::text::sanitized(&format!("{trouble}; last known:")));
    }
}
