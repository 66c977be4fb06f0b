//! What operators do about units, at good moments and bad ones; what instances hear of agents and say of units; and what must be true in the
//! end.

use std::collections::BTreeMap;

use os_upgrade_kernel::fact::UnitFact;
use os_upgrade_kernel::{Fact, Machine, MachineOffer, Request, State, Unit, UnitOperation, View};
use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::{UnitName, UnitState};
use os_upgrade_shell::instance::{Event, Instance as Logic};
use os_upgrade_shell::inventory::WorkerMessage;
use os_upgrade_shell::journal::codec::Message;

use super::World;
use super::sabotage::record_in;
use crate::agenda::Item;
use crate::bug::Bug;
use crate::checker::SeenMachine;
use crate::fault::Fault;
use crate::peer::Peer;
use crate::time::{MINUTE, Micros, SECOND};
use crate::unit_plan::{HALLS, PlannedFile, Wants, machine_id};

/// For so long it is watched in the end that nothing happens.
const STILL_FOR: Micros = 2 * MINUTE;

impl World {
    /// An operator does something about a unit, or agents fall silent.
    pub(super) fn act_on_units(&mut self) {
        let Some(plan) = self.plan.units.clone().filter(|_| self.faults_enabled) else { return };
        let every = 2 * plan.act_every * self.slowdown();
        self.after(every, Item::ActOnUnits);
        let PlannedFile { unit, contents, .. } = self.rng.choice(&plan.files).expect("not empty").clone();
        let index = self.rng.usize(..self.instances.len());
        let host = self.rng.usize(..self.hosts.len());
        match self.rng.u32(..20) {
            0..=8 => {
                let (state, replaces) = (self.draw_state(), self.rng.bool());
                self.request(index, put(unit, Some(contents), state, replaces));
            }
            9..=12 => {
                let state = self.draw_state();
                self.request(index, put(unit, None, state, false));
            }
            13 => {
                let destroy = UnitOperation::Destroy { name: unit, expected: None };
                self.request(index, Request::new("operator", destroy).into());
            }
            14..=16 => self.agents_fall_silent(),
            17 => {
                self.hosts[host].hall = self.rng.u32(1..=HALLS);
                self.announce_again(host);
            }
            _ => {
                let approval = self.approval_with_key(host);
                self.request(index, approval);
            }
        }
    }

    fn draw_state(&mut self) -> UnitState {
        match self.rng.u32(..6) {
            0 => UnitState::Loaded,
            1 => UnitState::Inactive,
            _ => UnitState::Launched,
        }
    }

    /// One agent hangs for a while, or more than half do.
    fn agents_fall_silent(&mut self) {
        let agents: Vec<usize> = self.agents().map(|(host, _)| host).collect();
        let (fault, count) = if self.rng.bool() {
            (Fault::AgentsSilent, agents.len() / 2 + 1)
        } else {
            (Fault::AgentSilent, 1)
        };
        if agents.is_empty() || !self.occurs(fault) {
            return;
        }
        let until = self.now + self.rng.u64(20 * SECOND..4 * MINUTE);
        let first = self.rng.usize(..agents.len());
        for host in agents.iter().cycle().skip(first).take(count) {
            if let Some(agent) = &mut self.hosts[*host].agent {
                agent.hangs_until = until;
            }
            self.trace.record(self.now, || format!("the agent of h{host} hangs until {} s", until / SECOND));
        }
    }

    /// The machines that these of the hosts announce, as an operator sees them who looks at the hosts themselves.
    pub(super) fn offers(&self, hosts: impl IntoIterator<Item = usize>) -> BTreeMap<HostName, MachineOffer> {
        let offer = |index: usize| {
            let host = &self.hosts[index];
            let hall = (host.hall > 0).then(|| ("hall".to_owned(), host.hall.to_string()));
            let offer = MachineOffer { id: machine_id(index), metadata: hall.into_iter().collect() };
            host.agent.is_some().then(|| (host.name.clone(), offer))
        };
        hosts.into_iter().filter_map(offer).collect()
    }

    /// The event as an instance gets it, after the checker has seen what is heard of an agent.
    pub(super) fn hear_agent(&mut self, index: usize, mut event: Event) -> Event {
        if let Event::Worker(WorkerMessage::Heartbeat { host, units, .. }) = &mut event
            && *units
        {
            let writer = (Peer::Instance(index), self.instances[index].boot);
            self.checker.agent_heard(writer, host);
            *units = self.bug != Some(Bug::AgentUnheard) || *host != self.hosts[0].name;
        }
        self.sabotage_reported_ids(index, event)
    }

    /// The checker looks at which machines are lost by what an instance appends.
    pub(super) fn check_losses(&mut self, index: usize, message: &Message) {
        let Some(logic) = self.instances[index].logic.as_ref().filter(|_| self.plan.units.is_some()) else {
            return;
        };
        let Some(record) = record_in(message) else { return };
        let view = logic.inventory().view().clone();
        let mut state = logic.state().clone();
        let writer = (Peer::Instance(index), self.instances[index].boot);
        for fact in &record.facts {
            if let Fact::Unit(UnitFact::MachineLost { host }) = fact {
                let seen = seen_machines(&state, &view);
                self.checker.machine_lost(writer, &message.append_id, host, &seen);
            }
            // That it fits is checked when it is appended.
            let _ = state.apply(record.at, fact);
        }
    }

    /// The checker looks at which units an instance would show as launched.
    pub(super) fn check_launched(&mut self, index: usize) {
        let Some(logic) = self.instances[index].logic.as_ref().filter(|_| self.plan.units.is_some()) else {
            return;
        };
        let (state, view) = (logic.state(), logic.inventory().view());
        let mut shown = Vec::new();
        for (name, unit) in state.units.existing() {
            if state.current_state(view, name) != UnitState::Launched {
                continue;
            }
            for (host, _) in unit.stays_on().filter(|(host, _)| !is_lost(state, host)) {
                let epoch = state.desired_revision(host).epoch;
                if let Some(desired) = state.desired.unit(host, name) {
                    shown.push((host.clone(), name.to_string(), desired.id(epoch)));
                }
            }
        }
        self.checker.launched_shown(shown);
    }

    /// In the end every unit that somebody wants runs where it can, no other does, and nothing more happens. Returns whether that is so.
    pub(super) fn units_settle(&mut self) -> bool {
        let Some(plan) = self.plan.units.clone() else { return true };
        if !self.until_granted("all machines are approved", World::approval_of_keys) {
            return false;
        }
        let mut last: BTreeMap<UnitName, String> = BTreeMap::new();
        for PlannedFile { unit, contents, .. } in plan.files {
            last.insert(unit, contents);
        }
        for (unit, contents) in last {
            let state = if unit.is_template() { UnitState::Inactive } else { UnitState::Launched };
            let request = move |_: &mut Self| put(unit.clone(), Some(contents.clone()), state, true);
            if !self.until_granted("a unit is submitted", request) {
                return false;
            }
        }
        if !self.until_there("settled", Self::unsettled) {
            return false;
        }
        let (facts, until) = (self.checker.unit_facts(), self.now + STILL_FOR);
        while self.now < until && self.checker.is_clean() && self.step() {}
        self.checker.check_still(facts);
        self.checker.is_clean()
    }

    /// What is not as it should be in the end about machines and units.
    fn unsettled(&self, state: &State) -> Option<String> {
        let is_there = |host: &HostName| state.units.machines.contains_key(host) && !is_lost(state, host);
        for (index, agent) in self.agents() {
            let host = &self.hosts[index].name;
            if !is_there(host) {
                return Some(format!("{host} is no machine, or a lost one"));
            }
            for unit in agent.units().keys() {
                let found = state.units.existing().find(|(name, _)| name.as_str() == unit);
                if found.is_none_or(|(_, unit)| unit.stays_on().all(|(other, _)| other != host)) {
                    return Some(format!("{host} has {unit}, which does not belong there"));
                }
            }
        }
        if let Some((name, _)) = state.units.units.iter().find(|(_, unit)| unit.leaves().next().is_some()) {
            return Some(format!("{name} has not stopped where it was taken away"));
        }
        let view = self.leader()?.inventory().view();
        state.units.existing().find_map(|(name, unit)| self.unsettled_unit((state, view), name, unit))
    }

    fn unsettled_unit(&self, (state, view): (&State, &View), name: &UnitName, unit: &Unit) -> Option<String> {
        if unit.desired == UnitState::Inactive {
            return None;
        }
        let on: Vec<&HostName> = unit.stays_on().map(|(host, _)| host).collect();
        let files = &self.plan.units.as_ref()?.files;
        let wants = files.iter().find(|file| file.contents == unit.file.text()).map(|file| &file.wants)?;
        let mut suited = state
            .units
            .machines
            .iter()
            .filter(|(host, machine)| suits(wants, machine) && !state.slots.contains_key(*host));
        if wants.is_global {
            if let Some((host, _)) = suited.find(|(host, _)| !on.contains(host)) {
                return Some(format!("{name} belongs on {host}, and on every machine"));
            }
        } else if on.len() > 1 {
            return Some(format!("{name} is on {on:?}"));
        } else if on.is_empty() {
            let misfits = state.why_not_placed(view, name);
            let is_explained = state.units.machines.values().all(|machine| misfits.contains_key(&machine.id));
            let is_conflict = |file: &PlannedFile| file.wants.conflicts.contains(name);
            let is_alone =
                wants.peer.is_none() && wants.conflicts.is_empty() && !files.iter().any(is_conflict);
            let is_wrong = !is_explained || (is_alone && suited.next().is_some());
            return is_wrong.then(|| format!("{name} is nowhere: {misfits:?}"));
        }
        let runs = |host: &&HostName| {
            let mut agents = self.agents().filter(|(index, _)| self.hosts[*index].name == **host);
            agents.any(|(_, agent)| agent.units().get(name.as_str()).is_some_and(|unit| unit.runs))
        };
        let current = state.current_state(view, name);
        let is_shown = on.is_empty() || current >= unit.desired;
        if !is_shown || (unit.desired == UnitState::Launched && !on.iter().all(runs)) {
            return Some(format!("{name} is to be {} on {on:?}, and is shown as {current}", unit.desired));
        }
        None
    }

    /// The report as an instance reads it that does not look at which items it names.
    fn sabotage_reported_ids(&self, index: usize, event: Event) -> Event {
        let logic = self.instances[index].logic.as_ref().filter(|_| self.bug == Some(Bug::ReportedIdsUnread));
        match (logic, event) {
            (Some(logic), Event::Worker(WorkerMessage::Applied { host, payload })) => {
                let payload = with_wanted_ids(logic, &host, &payload).unwrap_or(payload);
                Event::Worker(WorkerMessage::Applied { host, payload })
            }
            (_, event) => event,
        }
    }
}

/// The machines as an instance sees them, without lost ones that it has not heard since it began to lead: nothing is known of these.
fn seen_machines(state: &State, view: &View) -> BTreeMap<HostName, SeenMachine> {
    let is_at_work = |host: &HostName| {
        state.slots.contains_key(host)
            || state.run.as_ref().is_some_and(|run| run.under_way().contains(host))
            || state.reboot_queue.under_way().any(|(_, entry)| entry.host == *host)
    };
    let seen =
        |host: &HostName| SeenMachine { silent_for: view.agent_silence(host), is_at_work: is_at_work(host) };
    let is_known = |host: &HostName| !is_lost(state, host) || view.has_heard_agent(host);
    let known = state.units.machines.keys().filter(|host| is_known(host));
    known.map(|host| (host.clone(), seen(host))).collect()
}

fn is_lost(state: &State, host: &HostName) -> bool {
    state.units.machines.get(host).is_some_and(|machine| machine.lost_since.is_some())
}

/// Whether a machine is one that a file asks for.
fn suits(wants: &Wants, machine: &Machine) -> bool {
    wants.machine.is_none_or(|id| id == machine.id)
        && wants.hall.is_none_or(|hall| machine.metadata.get("hall") == Some(&hall.to_string()))
}

/// An operator wants a unit to be in a state, with these contents or with those that it has.
fn put(name: UnitName, contents: Option<String>, state: UnitState, replaces: bool) -> Request {
    let put = UnitOperation::Put { name, contents, desired: Some(state), replaces };
    Request::new("operator", put).into()
}

/// A report in which each unit has the item that its host is to have.
fn with_wanted_ids(logic: &Logic, host: &HostName, payload: &[u8]) -> Option<bytes::Bytes> {
    let mut report = os_upgrade_protocol::Applied::parse(payload).ok()?;
    let (state, epoch) = (logic.state(), logic.state().desired_revision(host).epoch);
    for item in &mut report.items {
        let name = UnitName::new(&item.name).ok();
        if let Some(wanted) = name.and_then(|name| state.desired.unit(host, &name).map(|unit| unit.id(epoch)))
        {
            item.id = Some(wanted);
        }
    }
    Some(report.to_payload().into())
}
