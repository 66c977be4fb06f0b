//! What happens on hosts that run units: agents send heartbeats, read what their hosts are to have, and have systemd do it.

use os_upgrade_protocol::ItemId;
use os_upgrade_shell::instance::Event;
use os_upgrade_shell::inventory::WorkerMessage;

use super::World;
use crate::agenda::{Item, Process, Worker};
use crate::agent::{Agent, AgentStep};
use crate::fault::Fault;
use crate::peer::Peer;
use crate::time::{MILLI, Micros, SECOND};

/// The time between two heartbeats of an agent, with each of which it looks what its host is to have.
const BEAT: Micros = 5 * SECOND;

impl World {
    /// Some hosts run units.
    pub(super) fn begin_units(&mut self) {
        let Some(units) = self.plan.units.clone() else { return };
        for (index, host) in self.hosts.iter_mut().enumerate() {
            host.hall = units.halls[index];
            host.agent = units.agents[index].then(Box::default);
        }
        self.after(units.act_every, Item::ActOnUnits);
    }

    /// The process of an agent starts with that of its host's worker.
    pub(super) fn start_agent(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let process = host.process_count;
        if let Some(agent) = &mut host.agent {
            agent.start();
            self.after(BEAT, Item::Worker { host: index, process, what: Worker::AgentBeats });
        }
    }

    /// The agent has a new connection.
    pub(super) fn agent_connected(&mut self, index: usize) {
        if let Some(agent) = &mut self.hosts[index].agent {
            agent.reported = None;
            self.agent_reads(index);
        }
    }

    /// The agent tells every instance that it is there, and looks what its host is to have.
    pub(super) fn agent_beats(&mut self, index: usize) {
        let process = self.hosts[index].process_count;
        self.at(BEAT, Item::Worker { host: index, process, what: Worker::AgentBeats });
        if !self.is_linked(Peer::Host(index)) || self.is_hanging(index) {
            return;
        }
        for instance in 0..self.instances.len() {
            if self.is_linked(Peer::Instance(instance)) {
                let boot = self.instances[instance].boot;
                let host = self.hosts[index].name.clone();
                let heartbeat = WorkerMessage::Heartbeat { host, time: None, units: true };
                let what = Process::Event(Event::Worker(heartbeat));
                self.after(MILLI, Item::Process { instance, boot, what });
            }
        }
        self.agent_reads(index);
    }

    fn is_hanging(&self, index: usize) -> bool {
        self.hosts[index].agent.as_ref().is_some_and(|agent| agent.hangs_until > self.now)
    }

    /// The agent reads what its host is to have.
    pub(super) fn agent_reads(&mut self, index: usize) {
        if !self.is_linked(Peer::Host(index)) || self.is_hanging(index) {
            return;
        }
        let host = &mut self.hosts[index];
        let Some(agent) = &mut host.agent else { return };
        if let Some(manifest) = agent.read(self.bus.desired.manifest(&host.name))
            && !self.occurs(Fault::SaveFails)
        {
            let (name, revision) = (self.hosts[index].name.clone(), manifest.revision);
            self.trace.record(self.now, || format!("{name} accepts {:?}", manifest.items));
            if let Some(agent) = &mut self.hosts[index].agent {
                agent.accept(manifest);
            }
            self.checker.units_accepted(&name, revision);
        }
        self.agent_goes_on(index);
    }

    /// The agent reports what has changed, and asks systemd for the next step.
    fn agent_goes_on(&mut self, index: usize) {
        if self.is_hanging(index) {
            return;
        }
        self.report_units(index);
        let host = &self.hosts[index];
        let (name, process) = (host.name.clone(), host.process_count);
        let is_stored = |id: &ItemId| {
            self.is_linked(Peer::Host(index)) && self.bus.desired.unit(&self.hosts[index].name, id).is_some()
        };
        let Some(step) = host.agent.as_ref().and_then(|agent| agent.next_step(is_stored)) else { return };
        self.trace.record(self.now, || format!("{name} begins {step:?}"));
        let begun = self.hosts[index].agent.as_mut().and_then(|agent| agent.begin(&step));
        if let Some(unit) = begun {
            self.checker.unit_begins(&name, &unit);
        }
        let job_max = self.plan.units.as_ref().map_or(SECOND, |units| units.job_max);
        let time = self.rng.u64(MILLI..=job_max);
        self.at(time, Item::Worker { host: index, process, what: Worker::AgentDone(step) });
    }

    /// Systemd has done what the agent has asked for.
    pub(super) fn agent_done(&mut self, index: usize, step: AgentStep) {
        let name = self.hosts[index].name.clone();
        let stored = match &step {
            AgentStep::Load { item } if self.is_linked(Peer::Host(index)) => {
                self.bus.desired.unit(&name, &item.id).cloned()
            }
            AgentStep::Load { .. } | AgentStep::Remove { .. } | AgentStep::Start { .. } => None,
        };
        self.trace.record(self.now, || format!("{name} has done {step:?}"));
        let Some(agent) = &mut self.hosts[index].agent else { return };
        let ended = agent.finish(step, stored);
        for (unit, item) in agent.launched() {
            self.checker.unit_launched(&name, unit, item);
        }
        if let Some(unit) = ended {
            self.checker.unit_ends(&name, &unit);
        }
        self.agent_goes_on(index);
    }

    /// Orchestrators are told what the host has, if they do not know it.
    fn report_units(&mut self, index: usize) {
        if !self.is_linked(Peer::Host(index)) {
            return;
        }
        let host = &mut self.hosts[index];
        let Some(agent) = &mut host.agent else { return };
        let Some(report) = agent.report().filter(|report| agent.reported.as_ref() != Some(report)) else {
            return;
        };
        let (name, payload) = (host.name.clone(), report.to_payload());
        agent.reported = Some(report);
        self.report_arrives(&name, &payload);
    }

    /// The host goes down, and with it its units.
    pub(super) fn units_go_down(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let ended = host.agent.as_deref_mut().map(Agent::go_down).unwrap_or_default();
        for unit in ended {
            self.checker.unit_ends(&host.name, &unit);
        }
    }

    /// The agents of the site, by the indexes of their hosts.
    pub(super) fn agents(&self) -> impl Iterator<Item = (usize, &Agent)> {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter_map(|(index, host)| Some((index, host.agent.as_deref()?)))
    }
}
