//! What the Kubernetes nodes of hosts wait for. The state has it, and the history of runs does not.

use std::borrow::Cow;
use std::collections::BTreeMap;

use os_upgrade_api_types::body::HostOfRun;
use os_upgrade_api_types::routes::runs::HostOfRunInFull;
use os_upgrade_api_types::routes::state::{self, HostState, State};
use os_upgrade_api_types::word::{BlockerKind, Word};
use os_upgrade_console::progress::is_at_work;
use os_upgrade_kernel::HostStatus;

use crate::rest::Client;

/// What is read of the state.
const FIELDS: &str = "hosts/hostname,hosts/why,hosts/blockers/kind";

/// The name of a host in a run, its status, and its reason.
type Reason<'a> = (&'a str, &'a Word<HostStatus>, &'a mut Option<Cow<'static, str>>);

pub(super) fn of_state<'a>(host: &'a mut HostOfRun<'static>) -> Reason<'a> {
    (&host.hostname, &host.status, &mut host.reason.reason)
}

pub(super) fn of_history<'a>(host: &'a mut HostOfRunInFull<'static>) -> Reason<'a> {
    (&host.hostname, &host.status, &mut host.reason)
}

/// Gives each of `hosts` that is at work, and for which the run has recorded no reason, what its node waits for.
pub(super) fn add<'a>(hosts: impl IntoIterator<Item = Reason<'a>>, seen: &[HostState<'_>]) {
    let is_kept = |host: &&HostState<'_>| {
        host.blockers.first().is_some_and(|blocker| blocker.kind() == Some(BlockerKind::NodeUnderWay))
    };
    let nodes: BTreeMap<&str, &str> =
        seen.iter().filter(is_kept).map(|host| (&*host.hostname, &*host.why)).collect();
    for (name, _, reason) in hosts.into_iter().filter(|(_, status, _)| status.is(is_at_work)) {
        if let (None, Some(why)) = (&reason, nodes.get(name)) {
            *reason = Some((*why).to_owned().into());
        }
    }
}

/// The same, as far as the state can be read.
pub(super) async fn read(client: &Client, hosts: &mut [HostOfRunInFull<'static>]) {
    if !hosts.iter().any(|host| host.status.is(is_at_work)) {
        return;
    }
    // Without it, the rest is still true.
    let read = client.read::<State<'_>>(state::READ.call().with("fields", FIELDS)).await;
    if let Ok(State { hosts: Some(seen), .. }) = read {
        add(hosts.iter_mut().map(of_history), &seen);
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
            { "hostname": "h04", "why": "its node is being drained", "blockers": [{ "kind": "node-under-way" }] },
        ]);
        let host = |(name, status, reason): (&str, &str, Option<&str>)| {
            serde_json::from_value(json!({ "hostname": name, "status": status, "reason": reason })).unwrap()
        };
        // The third one's part in this run is over.
        let hosts = [
            ("h01", "draining", None),
            ("h02", "upgrading", None),
            ("h03", "timed-out", None),
            ("h04", "draining", Some("no space")),
        ];
        let mut hosts: [HostOfRun<'_>; 4] = hosts.map(host);
        let seen: Vec<HostState<'_>> = serde_json::from_value(seen).unwrap();
        add(hosts.iter_mut().map(of_state), &seen);
        let reasons = hosts.map(|host| host.reason.reason);
        assert_eq!(reasons, [Some("its node is being drained".into()), None, None, Some("no space".into())]);
    }
}
