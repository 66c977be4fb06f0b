//! What the Kubernetes nodes of hosts wait for. The state has it, and the history of runs does not.

use std::collections::BTreeMap;

use os_upgrade_api_types::routes::state;
use serde::Deserialize;

use super::view::Host;
use crate::rest::Client;

/// What is read of the state.
const FIELDS: &str = "hosts/hostname,hosts/why,hosts/blockers/kind";

/// The part of the state that is read.
#[derive(Debug, Deserialize)]
struct State {
    #[serde(default)]
    hosts: Vec<Seen>,
}

/// What the state says of a host.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    pub(super) hostname: String,
    why: String,
    blockers: Vec<Blocker>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Blocker {
    kind: String,
}

impl Seen {
    /// What its node waits for, if that keeps it.
    fn node(self) -> Option<String> {
        let is_node = self.blockers.first().is_some_and(|blocker| blocker.kind == "node-under-way");
        is_node.then_some(self.why)
    }
}

/// Adds to each of `hosts` that is at work what its node waits for.
pub(super) fn add(hosts: &mut [Host], seen: Vec<Seen>) {
    let named = |seen: Seen| Some((seen.hostname.clone(), seen.node()?));
    let mut nodes: BTreeMap<String, String> = seen.into_iter().filter_map(named).collect();
    for host in hosts.iter_mut().filter(|host| host.is_under_way()) {
        host.node = nodes.remove(&host.hostname);
    }
}

/// The same, as far as the state can be read.
pub(super) async fn read(client: &Client, hosts: &mut [Host]) {
    if !hosts.iter().any(Host::is_under_way) {
        return;
    }
    // Without it, the rest is still true.
    if let Ok(State { hosts: seen }) = client.read(state::READ.call().with("fields", FIELDS)).await {
        add(hosts, seen);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_nodes_under_way_are_added() {
        let seen = json!([
            { "hostname": "h01", "why": "its node is being drained", "blockers": [{ "kind": "node-under-way" }] },
            { "hostname": "h02", "why": "its turn has not come", "blockers": [{ "kind": "turn-awaited" }] },
            { "hostname": "h03", "why": "its node is being uncordoned", "blockers": [{ "kind": "node-under-way" }] },
            { "hostname": "h04" },
        ]);
        let host = |(name, status): (&str, &str)| Host {
            hostname: name.to_owned(),
            status: status.to_owned(),
            ..Host::default()
        };
        // The third one's part in this run is over.
        let hosts = [("h01", "draining"), ("h02", "upgrading"), ("h03", "timed-out"), ("h04", "recovering")];
        let mut hosts = hosts.map(host);
        add(&mut hosts, serde_json::from_value(seen).unwrap());
        let nodes = hosts.map(|host| host.node);
        assert_eq!(nodes, [Some("its node is being drained".to_owned()), None, None, None]);
    }
}
