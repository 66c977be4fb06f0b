//! What other subjects ask of units and machines.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use os_upgrade_protocol::{Applied, AppliedItem, HostName, ItemKind, ReportedState, UnitReport};
use os_upgrade_scheduler::{GRACE, MachineId, Misfit, Reach, Silence, UnitName, UnitState, judge};

use super::offer::{Admission, MachineOffer};
use super::state::{Machine, Unit};
use crate::config::Rollout;
use crate::slot::SlotState;
use crate::state::State;
use crate::step::Stage;
use crate::view::{Configures, SeenHost, View};

/// What `host` announces that runs units; absent if it does not, announces no valid machine id, or has several applications that report.
pub(crate) fn offer(view: &View, host: &HostName) -> Option<MachineOffer> {
    let seen = view.hosts.get(host).filter(|seen| seen.runs_units.is_some() && !has_two_reporters(seen))?;
    let id = MachineId::new(seen.machine_id.as_deref()?).ok()?;
    let metadata = seen.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(MachineOffer { id, metadata })
}

/// Whether an application of a host runs units, and another one runs units too or takes configuration: both write the report of the host.
fn has_two_reporters(seen: &SeenHost) -> bool {
    let Some(agent) = &seen.runs_units else { return false };
    let is_other = |configures: &Configures| *agent != configures.application;
    !seen.runs_units_refused.is_empty()
        || !seen.configures_refused.is_empty()
        || seen.configures.as_ref().is_some_and(is_other)
}

impl State {
    /// The state in which the unit is: that in which each host is on which it belongs, without lost ones, or the least of them. A host counts
    /// once it reports the item that it is to have.
    pub fn current_state(&self, view: &View, name: &UnitName) -> UnitState {
        let on = self.units.unit(name).into_iter().flat_map(Unit::stays_on);
        let there = on.filter(|(host, _)| !self.is_lost(host));
        let states = there.map(|(host, _)| self.state_on(view, name, host));
        states.min().unwrap_or(UnitState::Inactive)
    }

    fn state_on(&self, view: &View, name: &UnitName, host: &HostName) -> UnitState {
        let item = self.unit_in_force(view, host, name);
        match item.and_then(|item| item.unit.as_ref()).map(|report| report.state) {
            Some(ReportedState::Launched) => UnitState::Launched,
            Some(ReportedState::Loaded) => UnitState::Loaded,
            Some(ReportedState::Inactive) | None => UnitState::Inactive,
        }
    }

    /// What `host` says of the unit, if it has the item of it that it is to have: with these contents and this placement.
    pub fn unit_in_force<'a>(
        &self,
        view: &'a View,
        host: &HostName,
        name: &UnitName,
    ) -> Option<&'a AppliedItem> {
        let wanted = self.desired.unit(host, name)?.id(self.desired_epoch(host));
        self.reported_unit(view, host, name).filter(|item| item.id.as_ref() == Some(&wanted))
    }

    /// What `host` says of the unit, if it has it.
    pub(crate) fn reported_unit<'a>(
        &self,
        view: &'a View,
        host: &HostName,
        name: &UnitName,
    ) -> Option<&'a AppliedItem> {
        let is_it = |item: &&AppliedItem| item.kind == ItemKind::Unit && item.name == name.as_str();
        self.reported(view, host)?.items.iter().find(is_it)
    }

    /// What the agent of `host` reports; absent if another application may have written the report that the host has.
    pub(super) fn agent_report<'a>(&self, view: &'a View, host: &HostName) -> Option<&'a Applied> {
        let seen = view.hosts.get(host)?;
        if seen.runs_units.is_none() || has_two_reporters(seen) {
            return None;
        }
        self.reported(view, host)
    }

    /// Whether a lost machine that is heard again has stopped what it lost: its agent follows the newest manifest, and reports no unit that is not
    /// in it.
    pub(super) fn has_stopped_losses(&self, view: &View, host: &HostName) -> bool {
        let belongs = |item: &AppliedItem| match item.kind {
            ItemKind::Unit => {
                UnitName::new(&item.name).is_ok_and(|name| self.desired.unit(host, &name).is_some())
            }
            ItemKind::Configuration | ItemKind::Other => true,
        };
        let newest = self.desired_revision(host);
        let report = self.agent_report(view, host);
        report.is_some_and(|applied| applied.revision >= newest && applied.items.iter().all(belongs))
    }

    /// What the hosts say of the unit on which it is, or may still be.
    pub fn unit_report<'a>(&'a self, view: &'a View, name: &UnitName) -> Vec<(&'a HostName, &'a UnitReport)> {
        let on = self.units.units.get(name).into_iter().flat_map(|unit| unit.on.keys());
        on.filter_map(|host| Some((host, self.reported_unit(view, host, name)?.unit.as_ref()?))).collect()
    }

    /// The machine to which the unit belongs; absent for a global unit, and while it is placed nowhere.
    pub fn target(&self, name: &UnitName) -> Option<&Machine> {
        let unit = self.units.unit(name).filter(|unit| !unit.is_global())?;
        let (host, _) = unit.stays_on().next()?;
        self.units.machines.get(host)
    }

    /// Why the unit cannot be on each of these machines; those on which it can be are absent.
    pub fn why_not_placed(&self, view: &View, name: &UnitName) -> BTreeMap<MachineId, Misfit> {
        self.schedule(view).misfits(name)
    }

    /// Whether `host` is, or could be, a machine; absent if it does not run units and is none.
    pub fn admission<'a>(&'a self, view: &View, host: &HostName) -> Option<Admission<'a>> {
        let offer = offer(view, host);
        let agent = view.hosts.get(host).filter(|seen| seen.runs_units.is_some());
        Some(match (self.units.machines.get(host), offer) {
            (Some(machine), Some(offer)) if machine.id == offer.id => {
                if machine.metadata == offer.metadata {
                    Admission::Joined
                } else {
                    Admission::OtherMetadata(offer)
                }
            }
            (Some(_), announced) => Admission::OtherId { announced },
            (None, Some(offer)) => match self.units.machine(&offer.id) {
                Some((by, machine)) => Admission::Taken { id: machine.id, by },
                None => Admission::Waiting(offer),
            },
            (None, None) if has_two_reporters(agent?) => Admission::TwoReporters,
            (None, None) => Admission::NoId,
        })
    }

    /// The machine ids that several hosts announce or have, and these hosts.
    pub fn contested_machines<'a>(&'a self, view: &'a View) -> BTreeMap<MachineId, BTreeSet<&'a HostName>> {
        let mut hosts: BTreeMap<MachineId, BTreeSet<&HostName>> = BTreeMap::new();
        for (host, machine) in &self.units.machines {
            hosts.entry(machine.id).or_default().insert(host);
        }
        for host in view.hosts.keys() {
            if let Some(offer) = offer(view, host) {
                hosts.entry(offer.id).or_default().insert(host);
            }
        }
        hosts.retain(|_, hosts| hosts.len() > 1);
        hosts
    }

    /// What the silence of each machine's agent means. Lost ones that this leader has never heard are left out: to a leader that has just begun
    /// they have all been silent since the same moment, and would make a mass of the next one.
    pub fn silences(&self, view: &View) -> BTreeMap<MachineId, Silence> {
        let reach =
            |host: &HostName| Reach { silent_for: view.agent_silence(host), grace: self.agent_grace(host) };
        let is_dead =
            |host: &HostName, machine: &Machine| machine.lost_since.is_some() && !view.has_heard_agent(host);
        let machines = self.units.machines.iter().filter(|(host, machine)| !is_dead(host, machine));
        judge(&machines.map(|(host, machine)| (machine.id, reach(host))).collect())
    }

    /// Whether the units of `host` go elsewhere because its agent is silent.
    pub(super) fn is_lost(&self, host: &HostName) -> bool {
        self.units.machines.get(host).is_some_and(|machine| machine.lost_since.is_some())
    }

    /// Whether `host` holds a slot. One that is requested may take long to be granted, and one that is being released counts until
    /// that is confirmed.
    pub(super) fn holds_slot(&self, host: &HostName) -> bool {
        match self.slots.get(host).map(|slot| slot.state) {
            Some(SlotState::Held | SlotState::Releasing { .. }) => true,
            Some(SlotState::Requested) | None => false,
        }
    }

    /// How long the agent of `host` may be silent: while the host is between slot and release, as long as what goes on there may take.
    pub fn agent_grace(&self, host: &HostName) -> Duration {
        if !self.holds_slot(host) && !self.is_at_work(host) {
            return GRACE;
        }
        let of_config = || self.config.as_ref().map(|config| &config.rollout);
        let rollout = self.run.as_ref().map(|run| &run.rollout).or_else(of_config);
        let default = Rollout::default();
        let &Rollout { upgrade_timeout, boot_timeout, .. } = rollout.unwrap_or(&default);
        let phase = match self.step_of(host).map(|step| step.stage) {
            Some(Stage::Drain | Stage::Recover) => self.settings.drain_timeout(),
            Some(Stage::Command) => upgrade_timeout.unwrap_or(boot_timeout).max(boot_timeout),
            Some(Stage::Before | Stage::Slot | Stage::Boot | Stage::Ended) | None => boot_timeout,
        };
        GRACE + Duration::from_secs(phase.as_secs())
    }
}
