//! Metrics of the reboot queue, with the meaning of CKE's.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_kernel::reboot_queue::{Entry, EntryStatus};
use os_upgrade_kernel::{State as Site, View, needs_operator};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::{gauge, number};

/// The most hosts with a metric of their own, each of which has as many series as there are statuses.
const NODES_MAX: usize = 500;

/// Describes the queue at `now`.
pub(super) fn describe(registry: &mut Registry, site: &Site, view: &View, now: DateTime<Utc>) {
    let queue = &site.reboot_queue;
    let entries = || queue.entries.values();
    let count = |count: usize| gauge(number(count));
    let of_queue = registry.sub_registry_with_prefix("os_upgrade_reboot_queue");
    let enabled = !queue.disabled;
    of_queue.register("enabled", "Whether entries of the reboot queue may start", gauge(enabled.into()));
    let running = enabled && !queue.entries.is_empty();
    of_queue.register(
        "running",
        "Whether the reboot queue is enabled and has entries",
        gauge(running.into()),
    );
    of_queue.register("entries", "Entries of the reboot queue", count(queue.entries.len()));
    let items = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for status in EntryStatus::ALL {
        let in_status = entries().filter(|entry| entry.status == status).count();
        items.get_or_create(&[("status", status.as_str())]).set(number(in_status));
    }
    of_queue.register("items", "Entries of the reboot queue, by status", items);
    let needs_operator = |(index, entry): &(&u64, &Entry)| needs_operator(site, view, (**index, entry), now);
    let failed = queue.entries.iter().filter(needs_operator);
    let help = "Entries whose worker answered reboot with an error, whose reboot command failed, or of which nobody knows that: each \
                waits for an operator";
    of_queue.register("failed", help, count(failed.count()));
    let rebooting = entries().filter(|entry| entry.status == EntryStatus::Rebooting);
    let longest = rebooting.map(|entry| (now - entry.last_transition).num_seconds().max(0)).max();
    let help = "For how long the entry that has been rebooting for the longest time has been; 0 without one";
    of_queue.register("oldest_rebooting_seconds", help, gauge(longest.unwrap_or(0)));
    describe_nodes(registry, site);
}

/// The status of each host with an entry: labels `node` and `status`, 1 for the status that it has and 0 for the others. Of
/// several entries of a host the first counts: the others follow it.
fn describe_nodes(registry: &mut Registry, site: &Site) {
    let mut seen = OrdSet::new();
    let firsts = site.reboot_queue.entries.values().filter(|entry| seen.insert(&entry.host).is_none());
    let (under_way, others): (Vec<&Entry>, Vec<&Entry>) =
        firsts.partition(|entry| entry.status.is_under_way());
    let family = Family::<[(&'static str, String); 2], Gauge>::default();
    for entry in under_way.into_iter().chain(others).take(NODES_MAX) {
        for status in EntryStatus::ALL {
            let labels = [("node", entry.host.to_string()), ("status", status.as_str().to_owned())];
            family.get_or_create(&labels).set((entry.status == status).into());
        }
    }
    let help = "Whether the first entry of a host has this status, for at most 500 hosts with entries, those under way first";
    registry.register("os_upgrade_node_reboot_status", help, family);
}
