//! What facts change in units and machines, and with that in what hosts are to have.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::{UnitFile, UnitName, UnitState};

use super::fact::UnitFact;
use super::state::{Machine, Standing, Unit, read_requirements};
use crate::state::{ApplyError, State};

impl State {
    pub(crate) fn apply_unit(&mut self, fact: &UnitFact, at: DateTime<Utc>) -> Result<(), ApplyError> {
        match fact {
            UnitFact::Submitted { name, contents, desired, actor } => {
                let file = UnitFile::parse(contents).map_err(|_| ApplyError::UnitFile(name.clone()))?;
                self.unit_submitted(name, file, (*desired, actor), at);
            }
            UnitFact::Wanted { name, state, actor } => {
                if let Some(unit) = self.units.units.get_mut(name) {
                    unit.desired = *state;
                    unit.actor.clone_from(actor);
                    unit.since = at;
                }
                self.renew_items(name);
            }
            UnitFact::Destroyed { name, actor } => {
                if let Some(unit) = self.units.units.get_mut(name) {
                    unit.desired = UnitState::Inactive;
                    unit.destroyed = true;
                    unit.actor.clone_from(actor);
                    unit.since = at;
                }
                self.forget_if_gone(name);
            }
            UnitFact::MachineJoined { host, machine: id, metadata, address, actor: _ } => {
                // Whether its agent is silent does not depend on what was approved.
                let lost_since = self.units.machines.get(host).and_then(|before| before.lost_since);
                let (metadata, address) = (metadata.clone(), address.clone());
                let machine = Machine { id: *id, metadata, address, since: at, lost_since };
                self.units.machines.insert(host.clone(), machine);
                self.each_standing(host, |standing| standing.machine = *id);
            }
            UnitFact::MachineLost { host } => {
                if let Some(machine) = self.units.machines.get_mut(host) {
                    machine.lost_since = Some(at);
                    // It is found once it reports that it follows a manifest that was made after the loss.
                    self.desired.change(host);
                }
                // Nobody waits for the report of a lost machine.
                self.drop_standings(host, |standing| standing.leaving.is_some());
            }
            UnitFact::MachineFound { host } => {
                if let Some(machine) = self.units.machines.get_mut(host) {
                    machine.lost_since = None;
                }
            }
            UnitFact::Placed { unit, hosts } => {
                for host in hosts {
                    self.unit_placed(unit, host);
                }
            }
            UnitFact::Taken { unit, hosts, why: _ } => {
                for host in hosts {
                    self.unit_taken(unit, host);
                }
            }
            UnitFact::Stopped { unit: name, host } => {
                if let Some(unit) = self.units.units.get_mut(name)
                    && unit.on.get(host).is_some_and(|standing| standing.leaving.is_some())
                {
                    unit.on.remove(host);
                }
                self.forget_if_gone(name);
            }
        }
        Ok(())
    }

    /// Where the unit is, it stays, with other contents. Where a destroyed one of that name has not stopped yet, that is still waited for.
    fn unit_submitted(
        &mut self,
        name: &UnitName,
        file: UnitFile,
        (desired, actor): (UnitState, &str),
        at: DateTime<Utc>,
    ) {
        let requirements = read_requirements(name, &file);
        let on = self.units.units.get(name).map(|unit| unit.on.clone()).unwrap_or_default();
        let actor = actor.to_owned();
        let unit = Unit { file, requirements, desired, on, destroyed: false, actor, since: at };
        self.units.units.insert(name.clone(), unit);
        self.renew_items(name);
    }

    /// The hosts on which the unit stays are to have another item of it.
    fn renew_items(&mut self, name: &UnitName) {
        let Some(unit) = self.units.units.get(name) else { return };
        let desired = unit.desired;
        let on: Vec<(HostName, u64)> =
            unit.stays_on().map(|(host, standing)| (host.clone(), standing.placement)).collect();
        for (host, placement) in on {
            let epoch = self.desired_epoch(&host);
            self.desired.run_unit(&host, epoch, name, (desired, placement));
        }
    }

    fn unit_placed(&mut self, name: &UnitName, host: &HostName) {
        let Some(machine) = self.units.machines.get(host).map(|machine| machine.id) else { return };
        let Some(unit) = self.units.units.get_mut(name) else { return };
        self.units.placements += 1;
        let placement = self.units.placements;
        unit.on.insert(host.clone(), Standing { machine, placement, leaving: None });
        let desired = unit.desired;
        let epoch = self.desired_epoch(host);
        self.desired.run_unit(host, epoch, name, (desired, placement));
    }

    /// The unit no longer belongs on `host`, where it may run until that has said otherwise, unless its machine is lost.
    fn unit_taken(&mut self, name: &UnitName, host: &HostName) {
        let epoch = self.desired_epoch(host);
        self.desired.stop_unit(host, epoch, name);
        let revision = self.desired_revision(host);
        let machine = self.units.machines.get(host);
        let is_lost = machine.is_some_and(|machine| machine.lost_since.is_some());
        let Some(unit) = self.units.units.get_mut(name) else { return };
        if is_lost {
            unit.on.remove(host);
        } else if let Some(standing) = unit.on.get_mut(host) {
            standing.leaving.get_or_insert(revision);
        }
        self.forget_if_gone(name);
    }

    /// `host` takes no part any more: it is no machine, and is to have nothing. Its units may run there until it says otherwise, unless it was
    /// lost.
    pub(crate) fn host_withdrawn(&mut self, host: &HostName) {
        let epoch = self.desired_epoch(host);
        self.desired.forget(host, epoch);
        let revision = self.desired_revision(host);
        let machine = self.units.machines.remove(host);
        if machine.is_some_and(|machine| machine.lost_since.is_some()) {
            return self.host_removed(host);
        }
        self.each_standing(host, |standing| {
            standing.leaving.get_or_insert(revision);
        });
    }

    /// `host` is gone, and with it whatever ran there.
    pub(crate) fn host_removed(&mut self, host: &HostName) {
        self.drop_standings(host, |_| true);
    }

    /// The site was restored: hosts may follow manifests that this state does not know. What is to stop there must not be in a manifest of the
    /// new epoch.
    pub(crate) fn units_restored(&mut self) {
        let leaving = self.units.units.values().flat_map(|unit| unit.leaves().map(|(host, _)| host.clone()));
        // These are found once they report that they follow one of the new epoch.
        let lost = self.units.machines.iter().filter(|(_, machine)| machine.lost_since.is_some());
        let hosts: BTreeSet<HostName> = leaving.chain(lost.map(|(host, _)| host.clone())).collect();
        for host in hosts {
            self.desired.change(&host);
            let revision = self.desired_revision(&host);
            self.each_standing(&host, |standing| {
                if let Some(leaving) = &mut standing.leaving {
                    *leaving = revision;
                }
            });
        }
    }

    /// Changes how units are on `host`.
    fn each_standing(&mut self, host: &HostName, change: impl Fn(&mut Standing)) {
        for name in self.units_on(host) {
            if let Some(standing) = self.units.units.get_mut(&name).and_then(|unit| unit.on.get_mut(host)) {
                change(standing);
            }
        }
    }

    /// Units are no longer on `host` that `is_over`.
    fn drop_standings(&mut self, host: &HostName, is_over: impl Fn(&Standing) -> bool) {
        for name in self.units_on(host) {
            if let Some(unit) = self.units.units.get_mut(&name)
                && unit.on.get(host).is_some_and(&is_over)
            {
                unit.on.remove(host);
            }
            self.forget_if_gone(&name);
        }
    }

    fn units_on(&self, host: &HostName) -> Vec<UnitName> {
        let units = self.units.units.iter().filter(|(_, unit)| unit.on.contains_key(host));
        units.map(|(name, _)| name.clone()).collect()
    }

    /// A destroyed unit is forgotten once it runs nowhere.
    fn forget_if_gone(&mut self, name: &UnitName) {
        if self.units.units.get(name).is_some_and(|unit| unit.destroyed && unit.on.is_empty()) {
            self.units.units.remove(name);
        }
    }
}
