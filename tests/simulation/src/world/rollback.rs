//! The machine on which the bus and all orchestrators run is put back to an earlier moment, as by a snapshot of its disks.
//! Hosts and the lock server are not.

use chrono::TimeDelta;
use os_upgrade_kernel::{Reason, Record, Restoration, RestoreSource, restoration};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::journal::append::ReadBack;
use os_upgrade_shell::journal::codec::{Kind, Message, encode};
use os_upgrade_shell::journal::{AppendId, Tip};

use super::World;
use crate::agenda::Item;
use crate::desired_stream::DesiredStream;
use crate::fault::Fault;
use crate::host::Host;
use crate::machine::Machine;
use crate::request::RequestKind;
use crate::time::{MINUTE, Micros, SECOND, beginning, span};

/// A run that has this long left ends by itself, unless a host is waited for that does not answer. A handler hangs for up to
/// ten minutes, and a boot takes five.
const ENDS_WITHIN: TimeDelta = TimeDelta::hours(1);
/// For how long the machine is away at most.
const AWAY_MAX: Micros = MINUTE;

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
        self.count(Fault::MachineRolledBack);
        (self.faults_enabled, self.is_rolled_back) = (false, true);
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
        self.heard.clear();
        let desired = self.bus.desired.clone();
        let journal = saved.put_back(&mut self.bus, &mut self.instances);
        let run = journal.state().run.as_ref();
        let could_end_by = beginning() + span(self.now) + ENDS_WITHIN;
        self.remembered = run.filter(|run| run.not_after > could_end_by).map(|run| run.id.clone());
        self.checker.rolled_back(journal);
        self.restore_site(desired);
        let back = self.now + self.rng.u64(..AWAY_MAX);
        while self.now < back && self.step() {}
    }

    /// An operator restores the site from what the machine has, if nothing was under way at that moment. Sometimes the stream of what hosts are
    /// to have, `desired`, is not put back, and sometimes it is lost: no backup has it.
    fn restore_site(&mut self, desired: DesiredStream) {
        let Some(delivery) = self.plan.delivery.clone() else { return };
        if delivery.is_restored
            && let Some(message) = self.restoration()
        {
            match self.rng.u32(..4) {
                0 | 1 => {}
                2 => self.bus.desired = desired,
                _ => self.bus.desired = DesiredStream::default(),
            }
            let (time, last) = (self.time(), self.bus.journal_len());
            if let Some(sequence) = self.bus.append(last, &message, time) {
                self.trace.record(self.now, || format!("the site is restored at {sequence}"));
                self.checker.appended(sequence, &message, time);
            }
        }
        let names: Vec<HostName> = self.plan.names().collect();
        self.checker.desired_rolled_back(&self.bus.desired, &names);
    }

    /// The message that restores the site; none while something is under way, which would be for people to look after.
    fn restoration(&self) -> Option<Message> {
        let state = self.checker.journal().state();
        let is_quiet = state.run.is_none()
            && state.slots.is_empty()
            && state.nodes.is_empty()
            && state.reboot_queue.under_way().next().is_none();
        let ReadBack::Found { sequence, append_id: Some(last) } = self.bus.read_back(self.bus.journal_len())
        else {
            return None;
        };
        let restored = Restoration {
            source: RestoreSource::Backup,
            actor: "operator".to_owned(),
            control_kept: true,
            outstanding: Vec::new(),
        };
        let facts = restoration(state, restored);
        let record = Record { at: self.time(), control: state.control, facts };
        let tip = Tip { sequence, append_id: Some(last) };
        let encoded = encode(Kind::Record, &record, &tip, || AppendId::new("restoration"));
        encoded.into_iter().next().filter(|_| is_quiet)
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

    /// In a run that the machine remembers, no host is waited for until its end that has answered. A worker that keeps no
    /// answers, has lost them, or dropped a command by a wrong clock, has none to give again.
    pub(super) fn check_remembered_run(&mut self) {
        if [Fault::WorkerStateLost, Fault::ClockStep].iter().any(|fault| self.plan.rate(*fault) > 0) {
            return;
        }
        let run = self.leader().and_then(|leader| leader.state().last_run.clone());
        let Some(run) = run.filter(|run| self.remembered.as_ref() == Some(&run.id)) else { return };
        let is_silent = |host: &&Host| {
            let reason = run.host(&host.name).and_then(|host| host.reason.as_ref());
            host.sdk && matches!(reason, Some(Reason::NoReply { .. }))
        };
        if let Some(host) = self.hosts.iter().find(is_silent) {
            let what = "a host gives again the answers that were lost";
            self.checker.never_happened(what, &format!("{}\n{run:#?}", host.name));
        }
    }
}
