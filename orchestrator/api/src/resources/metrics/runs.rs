//! Metrics of runs: the active one, and how runs and their hosts have ended.

use std::collections::BTreeMap;

use os_upgrade_kernel::{HostStatus, Run, RunResult, Trigger};
use os_upgrade_store::{TARGETED, Totals};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::{gauge, number};

/// The ends of hosts that are counted: of the others a run has not tried to upgrade them.
const HOST_ENDS: [HostStatus; 3] = [HostStatus::Upgraded, HostStatus::Failed, HostStatus::TimedOut];

/// Describes the active run.
pub(super) fn describe(registry: &mut Registry, run: Option<&Run>) {
    registry.register("os_upgrade_run_active", "Whether a run is active", gauge(run.is_some().into()));
    let hosts = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    for status in HostStatus::ALL {
        let count = run.map_or(0, |run| run.count(status));
        hosts.get_or_create(&[("status", status.as_str())]).set(number(count));
    }
    registry.register("os_upgrade_run_hosts", "Hosts of the active run, by status; 0 without one", hosts);
}

/// Describes how runs and hosts have ended, as the history of this instance knows. Series that begin with 0 let
/// `increase()` see the first end.
pub(super) fn describe_totals(registry: &mut Registry, totals: &Totals) {
    let runs = Family::<[(&'static str, String); 2], Counter>::default();
    let labels =
        |result: &str, trigger: &str| [("result", result.to_owned()), ("trigger", trigger.to_owned())];
    for result in RunResult::ALL {
        for trigger in Trigger::KINDS.iter().chain([&TARGETED]) {
            drop(runs.get_or_create(&labels(result.as_str(), trigger)));
        }
    }
    let mut ends = BTreeMap::new();
    for run in &totals.runs {
        runs.get_or_create(&labels(&run.result, &run.trigger_kind)).inc_by(run.total);
        // How a run of chosen hosts ended says nothing of the site.
        if run.trigger_kind != TARGETED {
            let end = ends.entry(run.result.as_str()).or_insert(run.last_ended_at);
            *end = run.last_ended_at.max(*end);
        }
    }
    let help =
        "Runs that ended since the history of this instance began, over restarts and beyond what is pruned";
    registry.register("os_upgrade_runs", help, runs);

    let last = Family::<[(&'static str, String); 1], Gauge>::default();
    for (result, end) in &ends {
        last.get_or_create(&[("result", (*result).to_owned())]).set(end.timestamp());
    }
    let help = "When the last run of the whole site with this result ended, in seconds since 1970";
    registry.register("os_upgrade_last_run_end_timestamp_seconds", help, last);
    if let Some(end) = ends.get(RunResult::Completed.as_str()) {
        let help = "When the last run of the whole site that completed ended, in seconds since 1970; absent if none has";
        registry.register("os_upgrade_last_success_timestamp_seconds", help, gauge(end.timestamp()));
    }

    let hosts = Family::<[(&'static str, String); 1], Counter>::default();
    for status in HOST_ENDS {
        drop(hosts.get_or_create(&[("result", status.as_str().to_owned())]));
    }
    for (status, total) in &totals.hosts {
        hosts.get_or_create(&[("result", status.clone())]).inc_by(*total);
    }
    let help = "Hosts that runs upgraded, or that failed or timed out in one, since the history of this instance began, over \
                restarts and beyond what is pruned";
    registry.register("os_upgrade_host_upgrades", help, hosts);
}
