//! A simulated stream with its consumer and controller, a disk, a host, and a worker that may die between any two actions,
//! with independent checks. Stream, consumer and controller may be rolled back together to an earlier moment.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{self as protocol, ApplicationName, Command, CommandId, HostName, RunId, subject};
use os_upgrade_worker_rules::consumer::{ConsumerState, Plan, last_sequence_at_open, plan};
use os_upgrade_worker_rules::state_file::ANSWERS_MAX;
use os_upgrade_worker_rules::{
    Action, Activity, BootId, Call, DeliverFrom, Event, HandlerCall, HandlerResult, Loaded, LogMessage, Now,
    OutgoingReply, Phase, Position, RebootCall, Received, StateFile, Upgraded, WorkerConfig, WorkerLogic,
};

/// A command in the stream.
#[derive(Clone)]
struct Sent {
    action: protocol::Action,
    not_after: Option<DateTime<Utc>>,
    run: Option<RunId>,
    id: Option<CommandId>,
    position: Position,
}

/// What a command is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Id(CommandId),
    Position(u64, DateTime<Utc>),
}

impl Sent {
    fn identity(&self) -> Identity {
        let Position { sequence, published } = self.position;
        self.id.clone().map_or(Identity::Position(sequence, published), Identity::Id)
    }
}

/// The machine of stream and controller.
#[derive(Clone, Default)]
struct Machine {
    last_sequence: u64,
    commands: BTreeMap<u64, Sent>,
    /// The commands whose replies are in the stream.
    replied: BTreeSet<u64>,
    consumer: Option<Consumer>,
    /// How many commands of an action the controller knows to have sent in a run.
    attempts: BTreeMap<(u8, protocol::Action), u32>,
}

/// The worker's consumer: at most one command is delivered and not acknowledged.
#[derive(Clone)]
struct Consumer {
    delivered: u64,
    floor: u64,
    pending: Option<u64>,
    count: u64,
}

impl Machine {
    fn next(&self) -> Option<&Sent> {
        let consumer = self.consumer.as_ref()?;
        match consumer.pending {
            Some(pending) => self.commands.get(&pending),
            None => self.commands.range(consumer.delivered + 1..).next().map(|(_, sent)| sent),
        }
    }

    /// Delivers the next command, or again the one that is not acknowledged. Also returns how often.
    fn deliver(&mut self) -> Option<(Sent, u64)> {
        let sent = self.next()?.clone();
        let consumer = self.consumer.as_mut()?;
        consumer.count = if consumer.pending.is_some() { consumer.count + 1 } else { 1 };
        consumer.delivered = sent.position.sequence;
        consumer.pending = Some(sent.position.sequence);
        Some((sent, consumer.count))
    }

    /// Takes an acknowledgement, which names a sequence only.
    fn ack(&mut self, sequence: u64) {
        if let Some(consumer) = &mut self.consumer
            && consumer.pending.take_if(|pending| *pending == sequence).is_some()
        {
            consumer.floor = consumer.delivered;
        }
    }

    fn has(&self, position: Position) -> bool {
        self.commands.get(&position.sequence).is_some_and(|sent| sent.position == position)
    }
}

/// How the execution of an action ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    Succeeds,
    Fails,
    /// The action is carried out, but its confirmation is lost and a failure is reported.
    AnswerLost,
}

pub(crate) struct World {
    host: HostName,
    pub(crate) now: DateTime<Utc>,
    boot: u32,
    logic: WorkerLogic,
    disk: Option<Vec<u8>>,
    machine: Machine,
    /// The machine at earlier moments.
    earlier: Vec<Machine>,
    was_rolled_back: bool,
    connection: u64,
    last_sequence_at_open: u64,
    todo: VecDeque<Action>,
    handler: Option<HandlerCall>,
    reboot: Option<RebootCall>,
    /// A save has failed at some time, so a reply may contain an outcome that is not on disk.
    save_failed: bool,
    // State of the checks, which is never rolled back.
    sent: BTreeMap<(u64, DateTime<Utc>), Sent>,
    known: BTreeSet<Identity>,
    deliveries: BTreeMap<Identity, u64>,
    /// The last command that was delivered from each sequence.
    delivered: BTreeMap<u64, Identity>,
    dropped: BTreeSet<Identity>,
    replies: BTreeMap<Identity, Vec<u8>>,
    begun: BTreeSet<Identity>,
    upgrades_started: BTreeSet<Identity>,
    prepared: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let host = HostName::new("h1").unwrap();
        let mut world = Self {
            logic: logic(&host),
            host,
            now: beginning(),
            boot: 1,
            disk: None,
            machine: Machine::default(),
            earlier: Vec::new(),
            was_rolled_back: false,
            connection: 0,
            last_sequence_at_open: 0,
            todo: VecDeque::new(),
            handler: None,
            reboot: None,
            save_failed: false,
            sent: BTreeMap::new(),
            known: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            delivered: BTreeMap::new(),
            dropped: BTreeSet::new(),
            replies: BTreeMap::new(),
            begun: BTreeSet::new(),
            upgrades_started: BTreeSet::new(),
            prepared: false,
        };
        world.start();
        world
    }

    /// The controller sends a command. Without a run it is another controller, whose commands have no ids.
    pub(crate) fn send(&mut self, action: protocol::Action, seconds: Option<i64>, run: Option<u8>) {
        let mut machine = self.machine.clone();
        machine.last_sequence += 1;
        let run_id = run.map(|number| RunId::new(&format!("r{number}")).unwrap());
        let id = run.zip(run_id.clone()).map(|(number, run)| {
            let attempt = machine.attempts.entry((number, action)).or_default();
            *attempt += 1;
            CommandId { run, host: self.host.clone(), action, attempt: *attempt }
        });
        let position = Position { sequence: machine.last_sequence, published: self.now };
        let not_after = seconds.map(|seconds| self.now + TimeDelta::seconds(seconds));
        let sent = Sent { action, not_after, run: run_id, id, position };
        // A worker remembers so many answers only.
        if self.was_rolled_back && self.known.len() >= ANSWERS_MAX && !self.known.contains(&sent.identity()) {
            return;
        }
        self.known.insert(sent.identity());
        self.sent.insert((position.sequence, position.published), sent.clone());
        machine.commands.insert(position.sequence, sent);
        self.keep_moment();
        self.machine = machine;
    }

    fn keep_moment(&mut self) {
        if self.known.len() <= ANSWERS_MAX {
            self.earlier.push(self.machine.clone());
        }
    }

    /// The consumer delivers a command, possibly again.
    pub(crate) fn deliver(&mut self) {
        let Some((sent, count)) = self.machine.deliver() else { return };
        let Position { sequence, published } = sent.position;
        *self.deliveries.entry(sent.identity()).or_default() += 1;
        self.delivered.insert(sequence, sent.identity());
        let received = Received {
            sequence,
            published,
            delivered: count,
            last_sequence_at_open: self.last_sequence_at_open,
            connection: self.connection,
            subject: subject::command(&self.host),
            ack_subject: format!("ack.{sequence}.{}.{count}", published.timestamp()),
            run_header: sent.run.map(|run| run.to_string()),
            id_header: sent.id.map(|id| id.to_string()),
            payload: Command::for_host(sent.action, self.host.clone(), sent.not_after).to_payload(),
        };
        self.take(Event::CommandReceived(received));
    }

    /// The machine of stream and controller is rolled back to one of its earlier moments. What is on its way is lost.
    pub(crate) fn roll_back(&mut self, moment: u8) {
        // A worker remembers so many answers only.
        if self.known.len() > ANSWERS_MAX || self.earlier.is_empty() {
            return;
        }
        self.now += TimeDelta::seconds(1);
        self.was_rolled_back = true;
        self.machine = self.earlier[usize::from(moment) % self.earlier.len()].clone();
        let is_request = |action: &Action| matches!(action, Action::Reply(_) | Action::Ack { .. });
        let todo = std::mem::take(&mut self.todo);
        let (lost, kept): (Vec<_>, Vec<_>) = todo.into_iter().partition(is_request);
        self.todo.extend(kept);
        for action in lost {
            let error = "the connection has ended".to_owned();
            if let Action::Ack { sequence, .. } = action {
                self.take(Event::AckFailed { sequence, error });
            } else if let Action::Reply(OutgoingReply { sequence, .. }) = action {
                self.take(Event::ReplyFailed { sequence, error });
            }
        }
        self.open();
        self.take(Event::Reconnected);
    }

    /// The worker opens its consumer over a new connection.
    fn open(&mut self) {
        self.connection += 1;
        let existing = self.machine.consumer.as_ref().map(|consumer| ConsumerState {
            as_configured: true,
            delivered: consumer.delivered,
            ack_floor: consumer.floor,
            pending: usize::from(consumer.pending.is_some()),
            waiting: 0,
        });
        let last = self.machine.last_sequence;
        self.last_sequence_at_open = last_sequence_at_open(existing, last);
        if let Plan::Make(from) = plan(existing, self.logic.state().into(), last) {
            let first = match from {
                DeliverFrom::Sequence(sequence) => sequence,
                DeliverFrom::LastOfSubject => {
                    self.machine.commands.keys().next_back().copied().unwrap_or(last + 1)
                }
            };
            let before = first - 1;
            self.machine.consumer =
                Some(Consumer { delivered: before, floor: before, pending: None, count: 0 });
        }
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
        self.take(Event::Tick);
    }

    /// The process dies and starts again.
    pub(crate) fn crash(&mut self) {
        self.logic = logic(&self.host);
        self.todo.clear();
        self.handler = None;
        self.reboot = None;
        self.start();
    }

    /// The host reboots.
    pub(crate) fn boot(&mut self) {
        self.boot += 1;
        self.crash();
    }

    fn start(&mut self) {
        let loaded = self.disk.as_deref().map_or(Loaded::Nothing, |bytes| {
            Loaded::File(Box::new(StateFile::parse(bytes, &self.host).unwrap()))
        });
        let boot_id = BootId(self.boot.to_string());
        self.take(Event::Started { loaded, boot_id });
        self.open();
    }

    fn take(&mut self, event: Event) {
        let under_way = self.under_way().filter(|_| !matches!(event, Event::CommandReceived(_)));
        let now = Now { wall: self.now, monotonic: self.now - beginning() };
        let actions = self.logic.handle(now, event);
        for action in &actions {
            self.check_time(action);
            if let Action::Log(message) = action {
                self.check_decision(message, under_way.as_ref());
            }
        }
        self.todo.extend(actions);
    }

    /// The command under way.
    fn under_way(&self) -> Option<Sent> {
        let Position { sequence, published } = self.logic.state().current.as_ref()?.position;
        Some(self.sent[&(sequence, published)].clone())
    }

    fn check_decision(&mut self, message: &LogMessage, under_way: Option<&Sent>) {
        if let LogMessage::Dropped { sequence, .. } = message {
            let under_way = under_way.filter(|sent| sent.position.sequence == *sequence);
            let delivered = || self.delivered[sequence].clone();
            let identity = under_way.map_or_else(delivered, Sent::identity);
            self.dropped.insert(identity);
        } else if let LogMessage::AlreadySettled { sequence } = message {
            let identity = &self.delivered[sequence];
            assert!(self.deliveries[identity] > 1, "{identity:?} is new and called settled");
        }
    }

    /// Nothing is started after its `not-after`; work that may have been started before is finished.
    fn check_time(&self, action: &Action) {
        let starts = |call: &HandlerCall| match call.call {
            Call::Prepare => true,
            Call::Upgrade => !call.resume,
            Call::Health => false,
        };
        if matches!(action, Action::Run(call) if starts(call)) || matches!(action, Action::Reboot(_)) {
            let not_after = self.under_way().unwrap().not_after;
            assert!(
                not_after.is_none_or(|not_after| self.now <= not_after),
                "after its not-after: {action:?}"
            );
        }
    }

    /// Carries out the next action.
    pub(crate) fn act(&mut self, execution: Execution) {
        let Some(action) = self.todo.pop_front() else {
            return;
        };
        let error = "injected failure".to_owned();
        match action {
            Action::SaveState(file) => self.save(&file, execution),
            Action::Run(call) => self.run(call),
            Action::Reboot(call) => {
                self.check_reboot();
                self.reboot = Some(call);
            }
            Action::Reply(reply) => self.reply(reply, execution),
            Action::Ack { sequence, subject } => {
                if execution != Execution::Fails {
                    self.check_ack(sequence, &subject);
                    self.keep_moment();
                    self.machine.ack(sequence);
                }
                self.take(match execution {
                    Execution::Succeeds => Event::Acked { sequence },
                    Execution::Fails | Execution::AnswerLost => Event::AckFailed { sequence, error },
                });
            }
            Action::ReadVersions => {
                self.take(Event::VersionsRead { running: Err(error.clone()), published: Err(error) });
            }
            Action::InProgress { .. } | Action::PublishVersions { .. } | Action::Log(_) => {}
        }
    }

    fn save(&mut self, file: &StateFile, execution: Execution) {
        if execution != Execution::Fails {
            self.disk = Some(file.to_bytes());
        }
        if execution == Execution::Succeeds {
            self.take(Event::StateSaved);
        } else {
            self.save_failed = true;
            let error = "injected failure".to_owned();
            self.take(Event::StateSaveFailed { error });
        }
    }

    fn reply(&mut self, reply: OutgoingReply, execution: Execution) {
        let sequence = reply.sequence;
        if execution != Execution::Fails {
            let sent = self.under_way().unwrap();
            let payload = reply.payload.clone();
            let first = self.replies.entry(sent.identity()).or_insert(reply.payload);
            assert!(self.save_failed || *first == payload, "two answers to {:?}", sent.identity());
            self.keep_moment();
            self.machine.last_sequence += 1;
            // The controller may have sent it again to the same sequence, and then takes the reply for that.
            let in_stream = self.machine.commands.get(&sequence);
            if in_stream.is_some_and(|command| command.identity() == sent.identity()) {
                self.machine.replied.insert(sequence);
            }
        }
        let error = "injected failure".to_owned();
        self.take(match execution {
            Execution::Succeeds => Event::ReplyStored { sequence },
            Execution::Fails | Execution::AnswerLost => Event::ReplyFailed { sequence, error },
        });
    }

    fn run(&mut self, call: HandlerCall) {
        let identity = self.under_way().unwrap().identity();
        self.begun.insert(identity.clone());
        if call.call == Call::Upgrade && !call.resume {
            assert!(self.prepared, "{identity:?} without a prepare");
            let first = self.upgrades_started.insert(identity.clone());
            assert!(first, "{identity:?} was started twice");
        }
        if call.call == Call::Upgrade {
            let file = self.on_disk();
            let phase = &file.current.as_ref().unwrap().phase;
            assert!(matches!(phase, Phase::Upgrading { .. }), "not saved: {phase:?}");
            assert_eq!(file.prepared, None);
            self.prepared = false;
        }
        self.handler = Some(call);
    }

    fn check_reboot(&mut self) {
        self.begun.insert(self.under_way().unwrap().identity());
        let file = self.on_disk();
        let due = file.reboot_due.expect("a reboot that no upgrade required");
        assert_eq!(due.boot_id, BootId(self.boot.to_string()), "a second reboot");
        let current = file.current.expect("a reboot that was not saved");
        assert_eq!(current.phase, Phase::Rebooting { boot_id: due.boot_id });
        if let (Some(one), Some(other)) = (due.run, current.run) {
            assert_eq!(one, other, "a reboot for another run's upgrade");
        }
    }

    fn check_ack(&self, sequence: u64, subject: &str) {
        let fields: Vec<&str> = subject.split('.').collect();
        assert_eq!(fields[..2], ["ack", &sequence.to_string()]);
        let published = DateTime::from_timestamp(fields[2].parse().unwrap(), 0).unwrap();
        let sent = &self.sent[&(sequence, published)];
        let identity = sent.identity();
        // A prepare that was cut off before its `not-after` passed is dropped.
        let is_answered = !self.begun.contains(&identity)
            || self.machine.replied.contains(&sequence)
            || self.dropped.contains(&identity);
        assert!(
            is_answered || !self.machine.has(sent.position),
            "{identity:?} was acknowledged before its reply was stored"
        );
    }

    fn on_disk(&self) -> StateFile {
        StateFile::parse(self.disk.as_deref().unwrap(), &self.host).unwrap()
    }

    /// The handler under way returns.
    pub(crate) fn finish(&mut self, well: bool, reboot_required: bool) {
        let outcome = || well.then_some(()).ok_or_else(|| "it broke".to_owned());
        if let Some(call) = self.handler.take() {
            let result = match call.call {
                Call::Prepare => {
                    self.prepared |= well;
                    HandlerResult::Prepare(outcome())
                }
                Call::Upgrade if reboot_required => {
                    HandlerResult::Upgrade(outcome().map(|()| Upgraded::RebootRequired))
                }
                Call::Upgrade => HandlerResult::Upgrade(outcome().map(|()| Upgraded::Done)),
                Call::Health => HandlerResult::Health(outcome()),
            };
            let sequence = call.sequence;
            self.take(Event::HandlerFinished { sequence, result });
        } else if let Some(call) = self.reboot.take() {
            self.take(Event::RebootReturned { sequence: call.sequence, result: outcome() });
        }
    }

    /// From here on nothing fails, so every command must be settled.
    pub(crate) fn heal(&mut self) {
        for _ in 0..10_000 {
            if !self.todo.is_empty() {
                self.act(Execution::Succeeds);
            } else if self.handler.is_some() {
                self.finish(true, false);
            } else if self.reboot.is_some() {
                self.boot();
            } else if *self.logic.activity() != Activity::Idle {
                self.pass(1);
            } else if self.machine.next().is_some() {
                self.deliver();
            } else {
                break;
            }
        }
        assert_eq!(*self.logic.activity(), Activity::Idle);
        assert!(self.machine.next().is_none(), "a command is stuck");
        // Commands before the last one are no longer meant for a worker that has lost its place.
        let last = self.machine.commands.keys().next_back().copied();
        for (sequence, sent) in &self.machine.commands {
            let identity = sent.identity();
            let is_awaited =
                Some(*sequence) == last || !self.was_rolled_back && self.begun.contains(&identity);
            assert!(
                !is_awaited || self.machine.replied.contains(sequence) || self.dropped.contains(&identity),
                "{identity:?} was not answered"
            );
        }
    }
}

fn beginning() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn logic(host: &HostName) -> WorkerLogic {
    WorkerLogic::new(WorkerConfig {
        host: host.clone(),
        application: ApplicationName::new("app").unwrap(),
        reboot_wait: TimeDelta::seconds(60),
    })
}
