//! After the faults, in some worlds: nights in which a command goes wrong on one host in each run. Every other host is upgraded within
//! three of them, as long as the bad host leaves a slot to it.

use std::collections::BTreeSet;

use os_upgrade_calendar::Duration;
use os_upgrade_kernel::config::{Rollout, UnreachablePolicy};
use os_upgrade_kernel::{Config, HostStatus, LockProvider, OnFailure, Request, Run, Settings};
use os_upgrade_protocol::{Action, GroupName, HostName};

use super::World;
use crate::agenda::Item;
use crate::host::Host;
use crate::steer_plan::{Ailment, BadHost};
use crate::time::SECOND;

/// A host that is well is upgraded within so many runs.
const RUNS: usize = 3;
/// Longer than a host takes to prepare, to upgrade, and to boot: nothing is slow without faults.
const STEP_MAX: Duration = Duration::from_secs(5 * 60);

impl World {
    /// Holds the nights, if there are any, and makes the bad host well again. Returns whether that succeeded.
    pub(super) fn nights_with_a_bad_host(&mut self) -> bool {
        let bad = self.plan.steer.as_ref().and_then(|steer| steer.bad_host);
        // What keeps the node of a bad host keeps other nodes waiting.
        let Some(bad) = bad.filter(|_| self.plan.cluster.is_none() && !self.is_rolled_back) else {
            return true;
        };
        let host = &mut self.hosts[bad.index];
        host.ailment = Some((bad.action, bad.ailment));
        let reboots = host.reboots;
        if bad.action == Action::Reboot {
            host.reboots = 1_000;
        }
        let name = host.name.clone();
        self.trace.record(self.now, || format!("NIGHTS: {name} is bad: {:?} {:?}", bad.action, bad.ailment));
        if !self.until_granted("the nights' configuration is accepted", Self::config_of_nights) {
            return false;
        }
        let mut upgraded = BTreeSet::new();
        // In the worst case hosts go one after the other, and each takes all of its steps.
        let timeout = 60 + 60 * 5 * self.hosts.len() as u64;
        for _ in 0..RUNS {
            let is_well = |host: &Host| host.ailment.is_none();
            if !self.until("every host that is well is seen", |world| world.sees_hosts(is_well))
                || !self.until_granted("a night's run is accepted", |world| world.trigger_for(timeout))
                || !self.until("a night's run has ended", World::is_at_rest)
            {
                return false;
            }
            upgraded.extend(self.upgraded_in_last_run());
        }
        self.check_nobody_starved(bad, &upgraded);
        let host = &mut self.hosts[bad.index];
        (host.ailment, host.reboots) = (None, reboots);
        if host.is_up {
            host.kill();
            let boot = host.boot;
            self.after(SECOND, Item::StartWorker { host: bad.index, boot });
        }
        self.free_hung_hosts();
        self.until_granted("the configuration after the nights is accepted", Self::config_without_windows)
    }

    /// A configuration in which neither a failure nor a silent host stops a run, with the planned time-outs where they are long enough.
    fn config_of_nights(&mut self) -> Request {
        let planned = &self.plan.config.rollout;
        let rollout = Rollout {
            max_failures: u32::MAX.into(),
            unreachable: UnreachablePolicy::Skip,
            prepare_timeout: planned.prepare_timeout.map(|_| STEP_MAX),
            upgrade_timeout: planned.upgrade_timeout.map(|_| STEP_MAX),
            boot_timeout: STEP_MAX,
            expected_duration: planned.expected_duration,
            ..self.base_config().rollout
        };
        Self::put_config(Config { rollout, ..self.base_config() })
    }

    fn upgraded_in_last_run(&self) -> Vec<HostName> {
        let run = self.leader().and_then(|leader| leader.state().last_run.as_ref());
        let hosts = run.into_iter().flat_map(Run::hosts);
        hosts.filter(|(_, host)| host.status == HostStatus::Upgraded).map(|(name, _)| name.clone()).collect()
    }

    fn check_nobody_starved(&mut self, bad: BadHost, upgraded: &BTreeSet<HostName>) {
        let Some(state) = self.leader().map(|leader| leader.state().clone()) else { return };
        let Some(config) = &state.config else { return };
        let rollout = &config.rollout;
        // Without these, nobody is upgraded before all have answered `prepare`.
        let waits_for_all = rollout.max_preparing.is_none() && rollout.retries.is_none();
        // A worker whose handler hangs does not answer in the next run either.
        let is_awaited = bad.ailment == Ailment::Hangs;
        if waits_for_all && is_awaited && rollout.prepare_timeout.is_none() {
            return;
        }
        let group =
            |host: &Host| host.group.clone().unwrap_or_else(|| self.plan.settings.default_group.clone());
        let of_bad = group(&self.hosts[bad.index]);
        // Of these, only the slots of the embedded semaphores may have been changed since.
        let planned = &self.plan.settings;
        let slots = match planned.provider {
            LockProvider::Embedded => &state.settings.groups,
            LockProvider::External => &planned.groups,
        };
        // It may hold one since before the nights, and may never get as far as to give it back.
        let holds = state.slots.contains_key(&self.hosts[bad.index].name);
        let is_open = |of_host: &GroupName| {
            let is_kept = of_bad == *of_host && holds && keeps_slot(bad, of_host, planned);
            slots.get(of_host).is_some_and(|slots| *slots > u32::from(is_kept))
        };
        let starved = self
            .hosts
            .iter()
            .filter(|host| host.ailment.is_none() && is_open(&group(host)) && !upgraded.contains(&host.name));
        let starved: Vec<&HostName> = starved.map(|host| &host.name).collect();
        self.checker.check_starved(&starved, RUNS, &state);
    }
}

/// Whether a slot of `bad` counts against other hosts of its group.
fn keeps_slot(bad: BadHost, group: &GroupName, settings: &Settings) -> bool {
    match (bad.action, bad.ailment) {
        (Action::Prepare, _) | (Action::Upgrade | Action::Reboot, Ailment::Hangs) => true,
        (Action::Upgrade | Action::Reboot, Ailment::Fails) => {
            let is_uncounted =
                settings.provider == LockProvider::Embedded && settings.failed.contains_key(group);
            settings.on_failure == OnFailure::Hold && !is_uncounted
        }
    }
}
