//! A simulated stream, disk, host and worker that may die between any two actions, with independent checks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{self as protocol, ApplicationName, Command, HostName, subject};
use os_upgrade_worker_rules::{
    Action, Activity, BootId, Call, Event, HandlerCall, HandlerResult, Loaded, OutgoingReply, Phase,
    RebootCall, Received, StateFile, Upgraded, WorkerConfig, WorkerLogic,
};

/// A command in the stream.
struct Sent {
    action: protocol::Action,
    not_after: Option<DateTime<Utc>>,
    run: Option<String>,
    published: DateTime<Utc>,
    deliveries: u64,
    acked: bool,
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
    stream: BTreeMap<u64, Sent>,
    todo: VecDeque<Action>,
    handler: Option<HandlerCall>,
    reboot: Option<RebootCall>,
    /// A save has failed at some time, so a reply may contain an outcome that is not on disk.
    save_failed: bool,
    // State of the checks.
    replies: BTreeMap<u64, Vec<u8>>,
    begun: BTreeSet<u64>,
    upgrades_started: BTreeSet<u64>,
    prepared: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let host = HostName::new("h1").unwrap();
        let mut world = Self {
            logic: logic(&host),
            host,
            now: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
            boot: 1,
            disk: None,
            stream: BTreeMap::new(),
            todo: VecDeque::new(),
            handler: None,
            reboot: None,
            save_failed: false,
            replies: BTreeMap::new(),
            begun: BTreeSet::new(),
            upgrades_started: BTreeSet::new(),
            prepared: false,
        };
        world.start();
        world
    }

    pub(crate) fn send(&mut self, action: protocol::Action, seconds: Option<i64>, run: Option<u8>) {
        let sequence = self.stream.len() as u64 + 1;
        self.stream.insert(
            sequence,
            Sent {
                action,
                not_after: seconds.map(|seconds| self.now + TimeDelta::seconds(seconds)),
                run: run.map(|number| format!("r{number}")),
                published: self.now,
                deliveries: 0,
                acked: false,
            },
        );
    }

    /// The consumer delivers the first command that is not acknowledged, possibly again.
    pub(crate) fn deliver(&mut self) {
        let Some((sequence, sent)) = self.stream.iter_mut().find(|(_, sent)| !sent.acked) else {
            return;
        };
        sent.deliveries += 1;
        let received = Received {
            sequence: *sequence,
            published: sent.published,
            delivered: sent.deliveries,
            last_sequence_at_open: 0,
            subject: subject::command(&self.host),
            ack_subject: format!("ack.{sequence}.{}", sent.deliveries),
            run_header: sent.run.clone(),
            payload: Command::for_host(sent.action, self.host.clone(), sent.not_after).to_payload(),
        };
        self.take(Event::CommandReceived(received));
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
    }

    fn take(&mut self, event: Event) {
        let actions = self.logic.handle(self.now, event);
        for action in &actions {
            self.check_time(action);
        }
        self.todo.extend(actions);
    }

    /// Nothing is started after its `not-after`; work that may have been started before is finished.
    fn check_time(&self, action: &Action) {
        let starts = |call: &HandlerCall| match call.call {
            Call::Prepare => true,
            Call::Upgrade => !call.resume,
            Call::Health => false,
        };
        let sequence = if let Action::Run(call) = action
            && starts(call)
        {
            call.sequence
        } else if let Action::Reboot(call) = action {
            call.sequence
        } else {
            return;
        };
        let late = self.stream[&sequence].not_after.is_some_and(|not_after| self.now > not_after);
        assert!(!late, "after its not-after: {action:?}");
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
                self.check_reboot(&call);
                self.reboot = Some(call);
            }
            Action::Reply(reply) => self.reply(reply, execution),
            Action::Ack { sequence, subject } => {
                if execution != Execution::Fails {
                    self.check_ack(sequence, &subject);
                    self.stream.get_mut(&sequence).unwrap().acked = true;
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
            let payload = reply.payload.clone();
            let first = self.replies.entry(sequence).or_insert(reply.payload);
            assert!(self.save_failed || *first == payload, "two answers to command {sequence}");
        }
        let error = "injected failure".to_owned();
        self.take(match execution {
            Execution::Succeeds => Event::ReplyStored { sequence },
            Execution::Fails | Execution::AnswerLost => Event::ReplyFailed { sequence, error },
        });
    }

    fn run(&mut self, call: HandlerCall) {
        self.begun.insert(call.sequence);
        if call.call == Call::Upgrade && !call.resume {
            let first = self.upgrades_started.insert(call.sequence);
            assert!(first, "upgrade {} was started twice", call.sequence);
            assert!(self.prepared, "upgrade {} without a prepare", call.sequence);
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

    fn check_reboot(&mut self, call: &RebootCall) {
        self.begun.insert(call.sequence);
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
        assert!(subject.starts_with(&format!("ack.{sequence}.")));
        let sent = &self.stream[&sequence];
        // A prepare that was cut off before its `not-after` passed is dropped.
        let dropped = sent.action == protocol::Action::Prepare
            && sent.not_after.is_some_and(|not_after| self.now > not_after);
        assert!(
            !self.begun.contains(&sequence) || self.replies.contains_key(&sequence) || dropped,
            "command {sequence} was acknowledged before its reply was stored"
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
            } else if self.stream.values().any(|sent| !sent.acked) {
                self.deliver();
            } else {
                break;
            }
        }
        assert_eq!(*self.logic.activity(), Activity::Idle);
        assert!(self.stream.values().all(|sent| sent.acked), "a command is stuck");
        for (sequence, sent) in &self.stream {
            if self.begun.contains(sequence) && sent.action != protocol::Action::Prepare {
                assert!(self.replies.contains_key(sequence), "{sequence} was not answered");
            }
        }
    }
}

fn logic(host: &HostName) -> WorkerLogic {
    WorkerLogic::new(WorkerConfig {
        host: host.clone(),
        application: ApplicationName::new("app").unwrap(),
        reboot_wait: TimeDelta::seconds(60),
    })
}
