//! The world: everything that is simulated, and what happens in it, one item after the other.

mod act;
mod act_on_delivery;
mod act_on_units;
mod agents;
mod arrive;
mod calls;
mod cluster;
mod contend;
mod delivery;
mod desired_worker;
mod faults;
mod heal;
mod hooks;
mod instances;
mod nights;
mod queue;
mod reboot_command;
mod rollback;
mod sabotage;
mod sabotage_cluster;
mod sabotage_delivery;
mod sabotage_hooks;
mod sabotage_queue;
mod sabotage_units;
mod steer;
mod work;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use os_upgrade_kernel::OnFailure;
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_shell::instance::Instance as Logic;

use crate::agenda::{Agenda, Item, Process, Worker};
use crate::bug::Bug;
use crate::bus::Bus;
use crate::checker::Checker;
use crate::cluster::Cluster;
use crate::cluster_plan;
use crate::command_plan;
use crate::command_run::CommandRun;
use crate::corpus;
use crate::delivery_plan;
use crate::fault::Fault;
use crate::hook_provider::{HookProviders, SabotagedCalls};
use crate::host::Host;
use crate::instance::Instance;
use crate::locks::LockServer;
use crate::machine::Machine;
use crate::operator::Operators;
use crate::outage_plan;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::provider::Words;
use crate::queue_plan;
use crate::request::{Answer, Request};
use crate::steer_plan;
use crate::time::{MILLI, Micros, SECOND, beginning, span};
use crate::trace::{Recording, Trace};
use crate::unit_plan;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) plan: Plan,
    pub(crate) bug: Option<Bug>,
    pub(crate) now: Micros,
    pub(crate) agenda: Agenda,
    pub(crate) bus: Bus,
    pub(crate) bus_up: bool,
    /// The clock of the bus minus the right time.
    pub(crate) bus_clock: TimeDelta,
    /// Until when the bus is away, if it is away for hours.
    pub(crate) away_until: Micros,
    /// Until when some reads of the streams are stale.
    pub(crate) stale_until: Micros,
    pub(crate) locks: LockServer,
    /// The Kubernetes cluster, if the world has one.
    pub(crate) cluster: Option<Cluster>,
    /// The runs of the operator's commands that go on, by their requests.
    commands: BTreeMap<u64, CommandRun>,
    /// What providers say that hosts are to have.
    words: Words,
    /// What those of kind `hooks` know besides.
    hook_providers: HookProviders,
    sabotaged_calls: SabotagedCalls,
    /// The instances that had been heard when it was first decided to trim the journal to a sequence. One that is heard later begins
    /// with the snapshot there.
    heard: BTreeMap<u64, Vec<usize>>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) operators: Operators,
    pub(crate) checker: Checker,
    /// The machine of bus and orchestrators at an earlier moment.
    saved: Option<Machine>,
    /// Whether the machine was put back to that moment.
    pub(crate) is_rolled_back: bool,
    /// The run that was active then, if it had long to go.
    remembered: Option<RunId>,
    /// Whether faults still happen.
    pub(crate) faults_enabled: bool,
    pub(crate) faults: BTreeMap<Fault, u64>,
    pub(crate) steps: u64,
    pub(crate) requests: u64,
    pub(crate) trace: Trace,
    /// What an outsider sees.
    pub(crate) outside: Trace,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, recording: Recording) -> Self {
        let mut rng = Rng::with_seed(seed);
        let plan = draw_plan(seed, bug, &mut rng);
        let hosts: Vec<Host> =
            plan.hosts.iter().enumerate().map(|(index, host)| Host::new(index, host)).collect();
        let names: Vec<HostName> = hosts.iter().map(|host| host.name.clone()).collect();
        let mut settings = plan.settings.clone();
        if bug == Some(Bug::SlotFreedOnFailure) {
            settings.on_failure = OnFailure::Release;
        }
        if bug == Some(Bug::FailedCounted) {
            settings.failed.clear();
        }
        if bug == Some(Bug::UnreachableUnlimited) {
            settings.reboot.unreachable_max = u32::MAX;
        }
        let mut world = Self {
            checker: Checker::new(&plan, names),
            locks: LockServer::new(plan.settings.groups.clone()),
            cluster: plan.settings.kubernetes.as_ref().map(|_| Cluster::new(plan.nodes())),
            instances: (0..plan.instances).map(|index| Instance::new(index, &settings)).collect(),
            commands: BTreeMap::new(),
            words: Words::default(),
            hook_providers: HookProviders::default(),
            sabotaged_calls: SabotagedCalls::default(),
            heard: BTreeMap::new(),
            operators: Operators::default(),
            rng,
            bug,
            now: 0,
            agenda: Agenda::new(),
            bus: Bus::default(),
            bus_up: true,
            bus_clock: TimeDelta::zero(),
            away_until: 0,
            stale_until: 0,
            hosts,
            saved: None,
            is_rolled_back: false,
            remembered: None,
            faults_enabled: true,
            faults: BTreeMap::new(),
            steps: 0,
            requests: 0,
            trace: Trace::wanted(recording == Recording::Trace),
            outside: Trace::wanted(recording == Recording::Outside),
            plan,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.trace.record(0, || format!("{:#?}", self.plan));
        for instance in 0..self.instances.len() {
            self.after(SECOND, Item::Start { instance });
        }
        for host in 0..self.hosts.len() {
            self.after(SECOND, Item::StartWorker { host, boot: 0 });
        }
        let (act, fault) = (self.plan.act_every, self.plan.fault_every);
        self.after(act, Item::Act);
        if let Some(queue) = &self.plan.queue {
            let every = queue.act_every;
            self.after(every, Item::ActOnQueue);
        }
        if let Some(steer) = &self.plan.steer {
            let every = steer.act_every;
            self.after(every, Item::Steer);
        }
        self.after(fault, Item::Fault);
        if let Some(outage) = &self.plan.outage {
            let at = outage.at;
            self.at(at, Item::Outage);
        }
        self.begin_cluster();
        self.begin_delivery();
        self.begin_units();
        for client in 0..self.plan.clients.len() {
            let every = self.plan.client_every;
            self.after(every, Item::Client { client });
        }
    }

    /// The time by the clock of the bus.
    pub(crate) fn time(&self) -> DateTime<Utc> {
        beginning() + span(self.now) + self.bus_clock
    }

    /// Schedules `item` at a random time within `most` from now.
    pub(crate) fn after(&mut self, most: Micros, item: Item) {
        let delay = self.rng.u64(..=most);
        self.agenda.schedule(self.now + delay, item);
    }

    /// Schedules `item` after `delay`.
    pub(crate) fn at(&mut self, delay: Micros, item: Item) {
        self.agenda.schedule(self.now + delay, item);
    }

    /// Draws the time that a message takes.
    pub(crate) fn latency(&mut self) -> Micros {
        if self.occurs(Fault::MessageSlow) {
            return self.rng.u64(..4 * SECOND);
        }
        self.rng.u64(50..=self.plan.latency.max(MILLI))
    }

    /// Draws whether `fault` happens on this occasion.
    pub(crate) fn occurs(&mut self, fault: Fault) -> bool {
        let rate = self.plan.rate(fault);
        let occurs = self.faults_enabled && rate > 0 && self.rng.u32(..1_000) < rate;
        if occurs {
            self.count(fault);
        }
        occurs
    }

    pub(crate) fn count(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
        let now = self.now;
        self.trace.record(now, || format!("FAULT: {fault}"));
    }

    /// Takes the next item off the agenda; returns whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let Some((at, item)) = self.agenda.next() else { return false };
        self.steps += 1;
        self.now = at;
        self.checker.now = at;
        self.happen(item);
        true
    }

    fn happen(&mut self, item: Item) {
        match item {
            Item::Process { instance, boot, what } => self.in_process(instance, boot, what),
            Item::Start { instance } => self.start(instance),
            Item::Resume { instance, boot } => self.resume(instance, boot),
            Item::Arrive(request) => self.arrive(*request),
            Item::Worker { host, process, what } => self.in_worker(host, process, what),
            Item::StartWorker { host, boot } => self.start_worker(host, boot),
            Item::Reboot { host, boot, command } => self.reboot(host, boot, command),
            Item::RebootByCommand { host, boot, job } => self.reboot_by_command(host, boot, &job),
            Item::CommandActs { request } => self.command_acts(request),
            Item::CommandEnds { request } => self.command_ends(request),
            Item::CommandDeposed { request } => self.command_is_deposed(request),
            Item::Booted { host } => self.booted(host),
            Item::LinkBack(peer) => self.link_back(peer),
            Item::BusBack => self.bus_back(),
            Item::RollBack => self.roll_back(),
            Item::LocksBack => self.locks.is_up = true,
            Item::ClocksCorrected => self.correct_clocks(),
            Item::Outage => self.lose_power_and_time(),
            Item::TimeBack => self.correct_all_clocks(),
            Item::Act => self.act(),
            Item::ActOnQueue => self.act_on_queue(),
            Item::Steer => self.steer(),
            Item::ActOnDelivery => self.act_on_delivery(),
            Item::ActOnHooks => self.act_on_hooks(),
            Item::ActOnUnits => self.act_on_units(),
            Item::LookAtNodes => self.look_at_nodes(),
            Item::ActOnCluster => self.act_on_cluster(),
            Item::ClusterBack => self.cluster_back(),
            Item::NodeMade { host } => self.node_made(&host),
            Item::KubeletLost { host, boot } => self.kubelet_lost(host, boot),
            Item::KubeletUp { host, boot } => self.kubelet_up(host, boot),
            Item::LateNodeWrite { job, version } => self.late_node_write(&job, version),
            Item::Client { client } => self.client_acts(client),
            Item::Fault => self.fault(),
        }
    }

    /// Whether messages pass between `peer` and the bus.
    pub(crate) fn is_linked(&self, peer: Peer) -> bool {
        self.bus_up
            && match peer {
                Peer::Instance(instance) => self.instances[instance].linked,
                Peer::Host(host) => self.hosts[host].linked,
            }
    }

    pub(crate) fn leader(&self) -> Option<&Logic> {
        self.instances.iter().filter_map(|instance| instance.logic.as_ref()).find(|logic| logic.is_leading())
    }

    /// Sends the answer to `request` back.
    pub(crate) fn answer(&mut self, request: &Request, answer: Answer) {
        if self.occurs(Fault::AnswerLost) {
            return;
        }
        let latency = self.latency();
        let id = request.id;
        match (request.from, answer) {
            (Peer::Instance(instance), Answer::Instance(event)) => {
                let what = Process::Return { request: id, event };
                self.at(latency, Item::Process { instance, boot: request.process, what });
            }
            (Peer::Host(host), Answer::Worker(event)) => {
                let what = Worker::Return { request: id, event };
                self.at(latency, Item::Worker { host, process: request.process, what });
            }
            (Peer::Instance(_), Answer::Worker(_)) | (Peer::Host(_), Answer::Instance(_)) => {
                unreachable!("a request is answered in the terms of its sender")
            }
        }
    }
}

/// What `seed` decides before anything happens. What was added later has a stream of random numbers of its own, so that worlds without it
/// stay what they were.
fn draw_plan(seed: u64, bug: Option<Bug>, rng: &mut Rng) -> Plan {
    let mut plan = Plan::draw(rng);
    let mut of_queue = queue_plan::stream(seed);
    let has_queue = match bug {
        Some(bug) => bug.is_of_queue() || bug.is_of_cluster(),
        None => of_queue.u32(..5) < 3 && !corpus::is_older_than_the_queue(seed),
    };
    if has_queue {
        plan = plan.with_queue(&mut of_queue);
    }
    let mut of_cluster = cluster_plan::stream(seed);
    let has_cluster = match bug {
        Some(bug) => bug.is_of_cluster(),
        None => has_queue && of_cluster.u32(..5) < 2 && !corpus::is_older_than_the_cluster(seed),
    };
    if has_cluster {
        plan = plan.with_cluster(&mut of_cluster);
    }
    let mut of_command = command_plan::stream(seed);
    let has_command = match bug {
        Some(bug) => bug.is_of_command(),
        None => has_queue && of_command.u32(..5) < 2 && !corpus::is_older_than_the_command(seed),
    };
    if has_command {
        plan = plan.with_command(&mut of_command);
    }
    let mut of_outage = outage_plan::stream(seed);
    let has_outage = match bug {
        Some(bug) => bug == Bug::RecordTimesUnread,
        None => of_outage.u32(..6) == 0 && !corpus::is_older_than_the_outage(seed),
    };
    if has_outage {
        plan = plan.with_outage(&mut of_outage);
    }
    let mut of_steering = steer_plan::stream(seed);
    let is_steered = match bug {
        Some(bug) => bug.is_of_steering(),
        None => of_steering.u32(..5) < 2 && !corpus::is_older_than_steering(seed),
    };
    if is_steered {
        plan = plan.with_steering(&mut of_steering);
    }
    let mut of_delivery = delivery_plan::stream(seed);
    let has_delivery = match bug {
        Some(bug) => bug.is_of_delivery() || bug.is_of_units(),
        None => of_delivery.u32(..5) < 2 && !corpus::is_older_than_delivery(seed),
    };
    if has_delivery {
        plan = plan.with_delivery(&mut of_delivery);
    }
    let mut of_forgetting = delivery_plan::forgetting_stream(seed);
    // What came later changes nothing in the worlds of earlier bugs.
    let is_later = bug.is_none() && !corpus::is_older_than_forgetting(seed);
    if has_delivery && is_later && of_forgetting.u32(..5) < 3 {
        plan = plan.with_forgetting(&mut of_forgetting);
    }
    let mut of_hooks = delivery_plan::hooks_stream(seed);
    let has_hooks = match bug {
        Some(bug) => bug.is_of_hooks(),
        None => has_delivery && of_hooks.u32(..2) == 0 && !corpus::is_older_than_hooks(seed),
    };
    if has_hooks {
        plan = plan.with_hooks(&mut of_hooks);
    }
    let mut of_units = unit_plan::stream(seed);
    let has_units = match bug {
        Some(bug) => bug.is_of_units(),
        None => has_delivery && of_units.u32(..2) == 0 && !corpus::is_older_than_units(seed),
    };
    if has_units {
        plan = plan.with_units(&mut of_units);
    }
    match bug {
        Some(bug) => plan.with_bug(bug),
        None => plan,
    }
}
