//! Metrics of the Kubernetes nodes of hosts.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Node, NodeStage, Reason, State as Site};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::{gauge, number};

/// Describes the nodes at `now`.
pub(super) fn describe(registry: &mut Registry, site: &Site, now: DateTime<Utc>) {
    let stages = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for stage in NodeStage::kinds() {
        let at_stage = site.nodes.values().filter(|node| node.stage.as_str() == stage);
        stages.get_or_create(&[("stage", stage)]).set(number(at_stage.count()));
    }
    let help = "Kubernetes nodes of hosts that are cordoned or being uncordoned, by how far that is";
    registry.register("os_upgrade_nodes", help, stages);

    let of_nodes = registry.sub_registry_with_prefix("os_upgrade_nodes");
    let under_way = || site.nodes.iter().filter(|(host, _)| !site.stays_cordoned(host)).map(|(_, node)| node);
    let oldest = |is_meant: fn(&Node) -> bool| {
        let ages = under_way().filter(|node| is_meant(node)).map(|node| (now - node.since).num_seconds());
        gauge(ages.max().unwrap_or(0).max(0))
    };
    let help = "For how long the drain that has been under way for the longest time has been; 0 without one";
    of_nodes.register("oldest_drain_seconds", help, oldest(is_draining));
    let help = "For how long the node that is being uncordoned for the longest time has been; 0 without one";
    of_nodes.register("oldest_uncordon_seconds", help, oldest(is_uncordoning));
    let kept = site.nodes.keys().filter(|host| site.stays_cordoned(host));
    let help = "Nodes that stay cordoned because their hosts failed: each waits for an operator";
    of_nodes.register("kept_cordoned", help, gauge(number(kept.count())));
    let backed_off = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for reason in given_up(site, now) {
        backed_off.get_or_create(&[("reason", reason.kind())]).inc();
    }
    let help = "Hosts of the active run, and entries of the reboot queue, that wait because the drain of their node was given up, by why it was";
    of_nodes.register("backed_off", help, backed_off);
}

/// Why the drains were given up that are to be tried again after `now`.
fn given_up(site: &Site, now: DateTime<Utc>) -> impl Iterator<Item = &Reason> {
    let hosts = site.run.iter().flat_map(|run| run.hosts().values());
    let waiting = hosts.filter(move |host| !host.status.is_final() && host.is_backed_off(now));
    let entries = site.reboot_queue.entries.values().filter(move |entry| entry.is_backed_off(now));
    waiting.filter_map(|host| host.reason.as_ref()).chain(entries.filter_map(|entry| entry.reason.as_ref()))
}

/// Whether the node is being drained. One that is looked at once more before the reboot has had `since` from before the upgrade,
/// which says nothing of how long that takes.
const fn is_draining(node: &Node) -> bool {
    match node.stage {
        NodeStage::Checking | NodeStage::Evicting => true,
        NodeStage::Drained | NodeStage::Rechecking | NodeStage::Uncordoning { .. } => false,
    }
}

const fn is_uncordoning(node: &Node) -> bool {
    match node.stage {
        NodeStage::Uncordoning { .. } => true,
        NodeStage::Checking | NodeStage::Evicting | NodeStage::Drained | NodeStage::Rechecking => false,
    }
}
