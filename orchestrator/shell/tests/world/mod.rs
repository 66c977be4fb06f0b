//! A small world in memory: a bus, a lease, workers and clocks around real nodes, with one seed deciding everything.
//!
//! It checks after every step what must always hold, reading only what stands in the streams. It knows crashes of
//! nodes, answers that are lost, messages that are stored late, leases that run out, and time that passes.

mod bus;
mod forwards;
mod rng;
mod stops;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::{Answer, Request, Settings, State};
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, RunId};
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::dispatch::{Dispatch, DispatchSettings, PublishOutcome};
use os_upgrade_shell::journal::append::AppendOutcome;
use os_upgrade_shell::node::{
    Action, Event, Known, Node, NodeSettings, StoreKnowledge, StreamFacts, Streams, Warning,
};

use serde_json::json;

use self::bus::{Bus, CREATED, Publish};
use self::forwards::Forwarded;
pub(crate) use self::rng::Rng;

/// How often things go wrong, in thousandths of the occasions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) crash: u32,
    pub(crate) stop: u32,
    pub(crate) lost_answer: u32,
    pub(crate) lost_message: u32,
    pub(crate) late_message: u32,
    pub(crate) lease_trouble: u32,
    pub(crate) stale_look: u32,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        crash: 0,
        stop: 0,
        lost_answer: 0,
        lost_message: 0,
        late_message: 0,
        lease_trouble: 0,
        stale_look: 0,
    };
}

/// An instance of the orchestrator, up or down.
struct Instance {
    name: String,
    boots: u32,
    node: Option<Node>,
    store: Option<StoreKnowledge>,
    /// The position in the control stream of the last record that the store was given.
    stored_control: u64,
    journal: Option<JournalReader>,
    control: Option<u64>,
}

struct JournalReader {
    next: u64,
    end: u64,
    end_said: bool,
}

/// What a publisher hears of its message.
enum Heard {
    Stored(u64),
    Refused,
    Nothing,
}

/// Something that an instance has begun.
struct Task {
    instance: usize,
    boot: u32,
    action: Action,
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) faults: Faults,
    pub(crate) bus: Bus,
    pub(crate) answers: Vec<(u64, Result<Answer, String>)>,
    pub(crate) steps: u64,
    hosts: Vec<HostName>,
    wall: DateTime<Utc>,
    monotonic: Duration,
    instances: Vec<Instance>,
    tasks: Vec<Task>,
    /// Messages that their publishers have given up on and that may be stored yet.
    late: Vec<Publish>,
    forwards: Vec<Forwarded>,
    /// Calls at a leader whose followers have given up.
    late_ids: BTreeSet<u64>,
    /// How many answers of a leader have reached a follower.
    pub(crate) told: u64,
    /// Calls that have not been answered, with the process that was asked.
    asked: BTreeMap<u64, (usize, u32)>,
    /// When which process was asked to end.
    stops: BTreeMap<(usize, u32), Duration>,
    calls: u64,
    runs: u32,
}

pub(crate) fn application() -> ApplicationName {
    ApplicationName::new("app").unwrap()
}

pub(crate) fn put_config(actor: &str, failures: u32) -> Request {
    let config =
        json!({ "worker-applications": [{ "name": "app" }], "rollout": { "max-failures": failures } });
    let config = serde_json::from_value(config).unwrap();
    Request::PutConfig { config, actor: actor.to_owned(), validate: false }
}

impl World {
    pub(crate) fn new(seed: u64, instances: usize, hosts: usize, faults: Faults) -> Self {
        let instance = |index| Instance {
            name: format!("i{index}"),
            boots: 0,
            node: None,
            store: None,
            stored_control: 0,
            journal: None,
            control: None,
        };
        Self {
            rng: Rng::new(seed),
            faults,
            bus: Bus::default(),
            answers: Vec::new(),
            steps: 0,
            hosts: (0..hosts).map(|index| HostName::new(&format!("h{index}")).unwrap()).collect(),
            wall: CREATED + TimeDelta::hours(1),
            monotonic: Duration::from_secs(1),
            instances: (0..instances).map(instance).collect(),
            tasks: Vec::new(),
            late: Vec::new(),
            forwards: Vec::new(),
            late_ids: BTreeSet::new(),
            told: 0,
            asked: BTreeMap::new(),
            stops: BTreeMap::new(),
            calls: 0,
            runs: 0,
        }
    }

    /// The committed state, as anyone reads it from the journal.
    pub(crate) fn state(&self) -> &State {
        &self.bus.observer.state
    }

    /// Makes `steps` steps.
    pub(crate) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    /// Makes steps until `done`, without faults; fails after too many.
    pub(crate) fn heal_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        self.faults = Faults::NONE;
        for _ in 0..400_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("never: {what}\n{:#?}", self.state());
    }

    /// Hands a request to every instance that is up; those that do not lead refuse it.
    pub(crate) fn ask(&mut self, request: &Request) -> u64 {
        self.calls += 1;
        for index in 0..self.instances.len() {
            let (call, request) = (self.calls, request.clone());
            self.hand_in(index, Event::Call { call, request });
        }
        self.calls
    }

    /// A request that starts a run of so many seconds.
    pub(crate) fn trigger(&mut self, seconds: u64) -> u64 {
        self.runs += 1;
        let request = Request::Trigger {
            run: RunId::new(&format!("r{}", self.runs)).unwrap(),
            timeout: os_upgrade_kernel::duration::Duration::from_secs(seconds),
            actor: "test".to_owned(),
            validate: false,
        };
        self.ask(&request)
    }

    pub(crate) fn configure(&mut self) -> u64 {
        self.ask(&put_config("test", 0))
    }

    pub(crate) fn leads(&self) -> bool {
        self.instances.iter().any(|instance| instance.node.as_ref().is_some_and(Node::is_leading))
    }

    fn now(&self) -> Now {
        Now { wall: self.wall, monotonic: self.monotonic }
    }

    fn step(&mut self) {
        self.steps += 1;
        let choice = self.rng.below(100);
        match choice {
            0..=1 => self.crash_or_start(),
            2..=9 => self.let_time_pass(),
            10..=24 => self.deliver_journal(),
            25..=44 => self.deliver_control(),
            45..=54 => self.worker_acts(),
            55..=57 => self.store_late_message(),
            58 => self.connection_breaks(),
            _ => self.carry_out_a_task(),
        }
    }

    fn crash_or_start(&mut self) {
        let index = self.rng.index(self.instances.len());
        if self.instances[index].node.is_none() {
            self.start(index);
        } else if self.rng.happens(self.faults.crash) {
            let instance = &mut self.instances[index];
            instance.node = None;
            instance.journal = None;
            instance.control = None;
        } else if self.rng.happens(self.faults.stop) {
            self.stop(index);
        }
    }

    fn start(&mut self, index: usize) {
        let instance = &mut self.instances[index];
        instance.boots += 1;
        let mut settings = Settings::default();
        settings.groups.values_mut().for_each(|slots| *slots = 1);
        instance.node = Some(Node::new(NodeSettings {
            instance: instance.name.clone(),
            nonce: format!("{}-{}", instance.name, instance.boots),
            settings,
            dispatch: DispatchSettings { publishes_max: 4, lock_retry: Duration::from_secs(5) },
            facts_per_snapshot: 20,
            loss_certain_after: Duration::from_secs(20),
            store: instance.store.clone(),
        }));
        for host in self.hosts.clone() {
            let payload = Bytes::from(Announcement::new(host.clone(), application()).to_payload());
            self.hand_in(index, Event::Announced { application: application(), host, payload, at: CREATED });
        }
        self.hand_in(index, Event::InventoryRead);
        self.hand_in(index, Event::Tick);
    }

    fn let_time_pass(&mut self) {
        let millis = 1 + self.rng.below(400);
        self.wall += TimeDelta::milliseconds(i64::from(millis));
        self.monotonic += Duration::from_millis(u64::from(millis));
        self.bus.forget_lease(self.monotonic);
        self.forwards_time_out();
        for index in 0..self.instances.len() {
            self.hand_in(index, Event::Tick);
        }
    }

    fn deliver_journal(&mut self) {
        let index = self.rng.index(self.instances.len());
        let instance = &mut self.instances[index];
        let Some(reader) = &mut instance.journal else { return };
        let event = if let Some(message) = self.bus.journal_at(reader.next) {
            reader.next += 1;
            Event::Journal { sequence: reader.next - 1, message: Ok(message) }
        } else if !reader.end_said && reader.next > reader.end {
            reader.end_said = true;
            Event::JournalEnd
        } else {
            return;
        };
        self.hand_in(index, event);
    }

    fn deliver_control(&mut self) {
        let index = self.rng.index(self.instances.len());
        let instance = &mut self.instances[index];
        let Some(next) = &mut instance.control else { return };
        let Some(raw) = self.bus.control_at(*next) else { return };
        *next += 1;
        self.hand_in(index, Event::Control(raw));
    }

    fn worker_acts(&mut self) {
        let host = self.rng.pick(&self.hosts).clone();
        let roll = self.rng.below(100);
        self.bus.worker_acts(&host, roll, self.wall);
    }

    /// The connection of an instance breaks, and comes back at once or with time.
    fn connection_breaks(&mut self) {
        let index = self.rng.index(self.instances.len());
        if self.rng.happens(self.faults.lost_answer) {
            self.hand_in(index, Event::Connected(false));
        } else {
            self.hand_in(index, Event::Connected(true));
        }
    }

    fn store_late_message(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let index = self.rng.index(self.late.len());
        let late = self.late.swap_remove(index);
        self.bus.store(&late, self.wall);
    }

    fn hand_in(&mut self, index: usize, event: Event) {
        let now = self.now();
        let instance = &mut self.instances[index];
        let Some(node) = &mut instance.node else { return };
        if let Event::Call { call, .. } | Event::Forwarded { call, .. } = &event {
            self.asked.insert(*call, (index, instance.boots));
        }
        node.handle(now, event);
        let actions = node.run(now);
        let boot = instance.boots;
        for action in actions {
            self.begin(index, boot, action);
        }
    }

    fn begin(&mut self, index: usize, boot: u32, action: Action) {
        let end = self.bus.journal_len();
        let instance = &mut self.instances[index];
        match action {
            Action::FollowJournal { from } => {
                instance.journal = Some(JournalReader { next: from, end, end_said: false });
            }
            Action::StopJournal => instance.journal = None,
            Action::ReadControl { from } => instance.control = Some(from),
            Action::StopControl => instance.control = None,
            Action::Answer { call, answer } => {
                self.asked.remove(&call);
                let position = instance.node.as_ref().map_or(0, Node::position);
                if !self.told(call, &answer, position) && !self.late_ids.remove(&call) {
                    self.answers.push((call, answer));
                }
            }
            Action::Project(committed) => {
                if instance.store.as_ref().is_none_or(|store| store.sequence < committed.sequence) {
                    // What the store is given follows what it has, or it could not go on.
                    assert_eq!(committed.before.control, instance.stored_control);
                    instance.stored_control = committed.record.control;
                    instance.store = Some(StoreKnowledge {
                        sequence: committed.sequence,
                        append_id: committed.append_id.clone(),
                        control: committed.record.control,
                        journal_created: CREATED,
                        control_created: CREATED,
                    });
                }
            }
            Action::Warn(Warning::Halted(halt)) => panic!("halted: {halt}"),
            Action::Warn(_) | Action::Account(_) => {}
            Action::Stopped => self.stopped(index, boot),
            Action::Dispatch(Dispatch::Command { ref id, not_after, .. }) => {
                assert!(self.wall < not_after, "S2: {id} is sent after its time");
                self.tasks.push(Task { instance: index, boot, action });
            }
            Action::Inspect(_)
            | Action::Lease(_)
            | Action::Append { .. }
            | Action::ReadJournal { .. }
            | Action::Forward { .. }
            | Action::Dispatch(_) => self.tasks.push(Task { instance: index, boot, action }),
        }
    }

    fn carry_out_a_task(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let index = self.rng.index(self.tasks.len());
        let Task { instance, boot, action } = self.tasks.swap_remove(index);
        if let Action::Forward { call, to, request } = &action {
            return self.pass_on((instance, boot), *call, to, request);
        }
        let event = self.carry_out(&action);
        let alive = self.instances[instance].boots == boot;
        if alive && let Some(event) = event {
            self.hand_in(instance, event);
        }
    }

    /// Does what `action` says, or not; what its instance hears of it.
    fn carry_out(&mut self, action: &Action) -> Option<Event> {
        match action {
            Action::Inspect(known) => {
                Some(Event::Inspected { known: known.clone(), streams: Ok(self.inspect(known)) })
            }
            Action::Lease(wanted) => {
                let outcome = if self.rng.happens(self.faults.lease_trouble) {
                    os_upgrade_shell::lease::LeaseOutcome::Failed
                } else {
                    self.bus.lease(wanted, self.monotonic)
                };
                Some(Event::Lease(outcome))
            }
            Action::ReadJournal { sequence } => {
                Some(Event::ReadBack { sequence: *sequence, found: self.bus.read_back(*sequence) })
            }
            Action::Append { expected, message } => {
                let message = message.clone();
                let append_id = message.append_id.clone();
                let outcome = match self.publish(Publish::Journal { expected: *expected, message }) {
                    Heard::Stored(sequence) => AppendOutcome::Stored { sequence },
                    Heard::Refused | Heard::Nothing => AppendOutcome::Unknown,
                };
                Some(Event::Appended { append_id, outcome })
            }
            Action::Dispatch(Dispatch::Fence { epoch }) => {
                let stored = match self.publish(Publish::Fence) {
                    Heard::Stored(sequence) => Some(sequence),
                    Heard::Refused | Heard::Nothing => None,
                };
                Some(Event::FencePublished { epoch: *epoch, stored })
            }
            Action::Dispatch(Dispatch::Command { epoch, fence, id, not_after }) => {
                let (epoch, id, not_after) = (*epoch, id.clone(), *not_after);
                let outcome =
                    match self.publish(Publish::Command { fence: *fence, id: id.clone(), not_after }) {
                        Heard::Stored(_) => PublishOutcome::Stored,
                        Heard::Refused => PublishOutcome::Fenced,
                        Heard::Nothing => PublishOutcome::Unknown,
                    };
                Some(Event::CommandPublished { epoch, id, not_after, outcome })
            }
            Action::Dispatch(Dispatch::Withdraw { host, sequence }) => {
                let deleted = Some(self.bus.withdraw(host, *sequence));
                Some(Event::Withdrawn { host: host.clone(), sequence: *sequence, deleted })
            }
            Action::Dispatch(Dispatch::Lock { .. } | Dispatch::Unlock { .. })
            | Action::FollowJournal { .. }
            | Action::StopJournal
            | Action::ReadControl { .. }
            | Action::StopControl
            | Action::Answer { .. }
            | Action::Forward { .. }
            | Action::Project(_)
            | Action::Account(_)
            | Action::Warn(_)
            | Action::Stopped => None,
        }
    }

    /// Publishes, unless something goes wrong.
    fn publish(&mut self, message: Publish) -> Heard {
        if self.rng.happens(self.faults.lost_message) {
            return Heard::Nothing;
        }
        if self.rng.happens(self.faults.late_message) {
            self.late.push(message);
            return Heard::Nothing;
        }
        let stored = self.bus.store(&message, self.wall);
        if self.rng.happens(self.faults.lost_answer) {
            return Heard::Nothing;
        }
        stored.map_or(Heard::Refused, Heard::Stored)
    }

    /// Now and then, a server answers that was cut off and does not know of the last messages.
    fn inspect(&mut self, known: &Known) -> Streams {
        let facts = |last_sequence| StreamFacts { created: CREATED, first_sequence: 1, last_sequence };
        let behind =
            if self.rng.happens(self.faults.stale_look) { 1 + u64::from(self.rng.below(5)) } else { 0 };
        let journal = self.bus.journal_len().saturating_sub(behind);
        let control = self.bus.control_len().saturating_sub(behind);
        let sequence = known.journal.sequence;
        let there = (1..=journal).contains(&sequence);
        let at_known = there.then(|| self.bus.journal_at(sequence)).flatten();
        let mark = known.mark.as_ref().filter(|mark| mark.sequence <= control);
        let at_mark = mark.and_then(|mark| self.bus.control_at(mark.sequence));
        Streams {
            journal: Some(facts(journal)),
            control: Some(facts(control)),
            at_known: at_known.map(|message| message.append_id),
            at_mark: at_mark.map(|message| message.subject),
            follow_from: 1,
        }
    }
}

/// How often each host executed `upgrade`, by run.
pub(crate) type Executions = BTreeMap<(String, HostName), u32>;
