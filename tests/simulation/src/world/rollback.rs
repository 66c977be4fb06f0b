//! The machine on which the bus and all orchestrators run is put back to an earlier moment, as by a snapshot of its disks.
//! Hosts and the lock server are not.

use chrono::TimeDelta;
use os_upgrade_kernel::RunResult;

use super::World;
use crate::agenda::Item;
use crate::machine::Machine;
use crate::request::RequestKind;
use crate::time::{MINUTE, SECOND, beginning, span};

/// A run that has this long left ends by itself, unless a host is waited for that does not answer. A handler hangs for up to
/// ten minutes, and a boot takes five.
const ENDS_WITHIN: TimeDelta = TimeDelta::hours(1);

impl World {
    /// Saves the disks, to put the machine back to this moment later.
    pub(super) fn save_machine(&mut self) {
        if self.saved.is_some() {
            return;
        }
        self.saved = Some(Machine::of(&self.bus, &self.instances, self.checker.journal()));
        let longest = if self.rng.bool() { 20 * SECOND } else { 3 * MINUTE };
        self.after(longest, Item::RollBack);
    }

    /// Puts the machine back. Hosts go on, and the lock server does.
    pub(super) fn roll_back(&mut self) {
        let Some(saved) = self.saved.take().filter(|_| self.faults_enabled) else { return };
        self.faults_enabled = false;
        self.rolled_back = Some(self.now);
        self.trace.record(self.now, || "the machine is put back".to_owned());
        for instance in &mut self.instances {
            instance.kill();
        }
        // What is on its way to the bus is lost with the connections.
        self.agenda.retain(
            |item| !matches!(item, Item::Arrive(request) if !matches!(request.what, RequestKind::Job(_))),
        );
        self.bus_up = false;
        for peer in self.peers() {
            self.link_lost(peer);
        }
        let journal = saved.put_back(&mut self.bus, &mut self.instances);
        self.checker.rolled_back(journal);
    }

    /// An operator gives back slots of the lock server that were taken after the moment to which the machine was put back.
    pub(super) fn unlock_what_nobody_remembers(&mut self) {
        let Some(state) = self.leader().map(|leader| leader.state().clone()) else { return };
        let is_known = |id: &str| state.slots.keys().any(|host| host.as_str() == id);
        let holders = self.locks.holders().filter(|(_, id)| !is_known(id));
        for (group, id) in holders.map(|(group, id)| (group.clone(), id.clone())).collect::<Vec<_>>() {
            self.locks.unlock(&group, &id);
        }
    }

    /// A run that the machine remembers does not wait for an answer until its end.
    pub(super) fn check_rolled_back_run(&mut self) {
        let Some(rolled_back) = self.rolled_back else { return };
        let run = self.leader().and_then(|leader| leader.state().last_run.clone());
        let Some(run) = run else { return };
        let could_end_by = beginning() + span(rolled_back) + ENDS_WITHIN;
        if run.ended.is_some_and(|ended| ended.result == RunResult::TimedOut) && run.not_after > could_end_by
        {
            self.checker.never_happened("a run ends although the machine was put back", &format!("{run:#?}"));
        }
    }
}
