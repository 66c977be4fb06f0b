//! Metrics of hosts. None has a series for each host: there may be thousands.

use os_upgrade_kernel::{KeyState, NOT_REACHED_RUNS, Reachability, SeenHost};
use os_upgrade_site::published_state::PublishedState;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::{gauge, number};
use crate::resources::hosts;

/// Describes the hosts that have announced themselves: how many there are by enrolment and by reachability, how many need
/// a reboot, and how many were not helped by one.
pub(super) fn describe(registry: &mut Registry, published: &PublishedState) {
    let family = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for (enrolment, count) in hosts::by_enrolment(published) {
        family.get_or_create(&[("enrolment", enrolment)]).set(number(count));
    }
    registry.register("os_upgrade_hosts", "Hosts that have announced themselves", family);
    let deferred = gauge(number(published.state.enrolment.deferred.len()));
    registry.register("os_upgrade_hosts_deferred", "Hosts that operators have deferred", deferred);
    let family = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for state in Reachability::ALL {
        let count = published.view.hosts.values().filter(|seen| seen.reachability == state).count();
        family.get_or_create(&[("state", state.as_str())]).set(number(count));
    }
    let help = "Hosts that have announced themselves, by whether their heartbeats arrive; those that send none are unknown";
    registry.register("os_upgrade_hosts_reachability", help, family);
    let family = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for state in KeyState::ALL {
        family.get_or_create(&[("state", state.as_str())]).set(number(hosts::with_key(published, state)));
    }
    let help = "Hosts that take configuration, by whether their key is approved, waits for approval, or is another than the approved one";
    registry.register("os_upgrade_hosts_keys", help, family);
    let mut describe = |name: &str, help: &str, says: fn(&SeenHost) -> bool| {
        let count = published.view.hosts.values().filter(|seen| says(seen)).count();
        registry.register(name, help, gauge(number(count)));
    };
    let required = "Hosts that need a reboot, as their workers say";
    describe("os_upgrade_hosts_reboot_required", required, |seen| seen.reboot_required.is_some());
    let ineffective = "Hosts on which a reboot has not brought what it should have, as their workers say";
    describe("os_upgrade_hosts_reboot_ineffective", ineffective, |seen| seen.reboot_ineffective.is_some());
}

/// Describes how long hosts have gone without an upgrade.
pub(super) fn describe_successes(registry: &mut Registry, published: &PublishedState) {
    let help =
        format!("Hosts that take part and have not been reached in any of the last {NOT_REACHED_RUNS} runs");
    registry.register("os_upgrade_hosts_not_reached", help, gauge(number(hosts::not_reached(published))));
    if let Some((oldest, _)) = hosts::oldest_success(published) {
        let help = "When the host that takes part and was upgraded longest ago was upgraded, in seconds since 1970; hosts that \
                    never were do not count";
        registry.register(
            "os_upgrade_oldest_host_success_timestamp_seconds",
            help,
            gauge(oldest.timestamp()),
        );
    }
}
