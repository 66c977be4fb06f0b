//! What happens on hosts: workers' processes, handlers, reboots.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use os_upgrade_protocol::{
    Action as CommandAction, Command, Hint, HostName, Outcome, Reply, Versions, header,
};
use os_upgrade_shell::inventory::WorkerMessage;
use os_upgrade_worker_rules::consumer::{DeliverFrom, Plan, SavedState, last_sequence_at_open, plan};
use os_upgrade_worker_rules::{
    self as rules, Action, BootId, Call, DesiredEvent, HandlerCall, HandlerResult, Loaded, LogMessage,
    OutgoingReply, Phase, RebootCall, Received, StateFile, Upgraded,
};

use super::World;
use crate::agenda::{Item, Worker};
use crate::bug::Bug;
use crate::bus::Delivery;
use crate::checker::Begun;
use crate::describe;
use crate::fault::Fault;
use crate::host::{PlainWork, Process};
use crate::peer::Peer;
use crate::request::{Answers, Request, RequestKind, WorkerRequest};
use crate::steer_plan::Ailment;
use crate::time::{MILLI, MINUTE, Micros, SECOND, beginning, span};

/// How long a worker waits for the bus.
const TIMEOUT: Micros = 5 * SECOND;
/// The time between two heartbeats of a worker.
const HEARTBEAT: Micros = 10 * SECOND;

impl World {
    pub(super) fn start_worker(&mut self, index: usize, boot: u32) {
        let host = &self.hosts[index];
        if host.boot != boot || !host.is_up || host.process.is_some() {
            return;
        }
        if host.disk.is_some() && host.sdk && self.occurs(Fault::WorkerStateLost) {
            self.hosts[index].disk = None;
            self.checker.worker_state_lost(index);
        }
        let host = &mut self.hosts[index];
        host.start();
        let (name, process) = (host.name.clone(), host.process_count);
        self.trace.record(self.now, || format!("{name} worker starts, process {process}"));
        let loaded = match &host.disk {
            None => Loaded::Nothing,
            Some(bytes) => match StateFile::parse(bytes, &host.name) {
                Ok(file) => Loaded::File(Box::new(file)),
                Err(error) => Loaded::Corrupt { error: error.to_string() },
            },
        };
        let boot_id = BootId(host.boot_id());
        let loaded = self.sabotage_loaded(index, loaded);
        self.enqueue(index, rules::Event::Started { loaded, boot_id });
        self.start_desired(index);
        self.start_agent(index);
        for what in [Worker::Tick, Worker::Heartbeat, Worker::Open] {
            self.after(SECOND, Item::Worker { host: index, process, what });
        }
    }

    pub(super) fn in_worker(&mut self, index: usize, process: u32, what: Worker) {
        let host = &mut self.hosts[index];
        if host.process_count != process || host.process.is_none() {
            return;
        }
        match what {
            Worker::Tick => {
                let idle = host.sdk().is_none_or(|sdk| *sdk.logic.activity() == rules::Activity::Idle);
                let pause = if idle { 8 * SECOND } else { SECOND };
                self.at(pause, Item::Worker { host: index, process, what });
                self.enqueue(index, rules::Event::Tick);
                self.enqueue_desired(index, DesiredEvent::Tick);
            }
            Worker::Heartbeat => {
                self.at(HEARTBEAT, Item::Worker { host: index, process, what });
                self.heartbeat(index);
            }
            Worker::Step => self.step_worker(index),
            Worker::Open => self.open(index),
            Worker::Pull => self.pull(index),
            Worker::Event(event) => self.enqueue(index, event),
            Worker::Return { request, event } => {
                if host.sdk().is_some_and(|sdk| sdk.waiting.remove(&request).is_some()) {
                    self.enqueue(index, event);
                }
            }
            Worker::TimeOut { request } => {
                if let Some(event) = host.sdk().and_then(|sdk| sdk.waiting.remove(&request)) {
                    self.enqueue(index, event);
                }
            }
            Worker::Hint(hint) => self.hint_arrives(index, &hint),
            Worker::ReadManifest { again } => self.manifest_is_due(index, again),
            Worker::Desired(event) => self.enqueue_desired(index, event),
            Worker::DesiredStep => self.step_desired(index),
            Worker::AgentBeats => self.agent_beats(index),
            Worker::AgentDone(step) => self.agent_done(index, step),
            Worker::PlainDone { sequence } => self.plain_worker_done(index, sequence),
        }
    }

    /// An orchestrator sends a hint. It may be lost, as nothing relies on it.
    pub(super) fn send_hint(&mut self, name: &HostName, hint: &Hint) {
        let Some(index) = self.hosts.iter().position(|host| host.name == *name) else { return };
        self.outside
            .record(self.now, || format!("hint {name} {}", String::from_utf8_lossy(&hint.to_payload())));
        if self.is_linked(Peer::Host(index)) && !self.occurs(Fault::MessageLost) {
            let (latency, process) = (self.latency(), self.hosts[index].process_count);
            self.at(latency, Item::Worker { host: index, process, what: Worker::Hint(hint.clone()) });
        }
    }

    /// A hint reaches a worker: its handler for that run may stop and reply that it did.
    fn hint_arrives(&mut self, index: usize, hint: &Hint) {
        let heeds = self.rng.bool();
        let Some(sdk) = self.hosts[index].sdk() else { return };
        let Some(current) = sdk.logic.state().current.clone() else { return };
        if !heeds || hint.run.is_none() || current.run != hint.run {
            return;
        }
        let stopped = "the run was stopped".to_owned();
        let result = match current.phase {
            Phase::Preparing => HandlerResult::Prepare(Err(stopped)),
            Phase::Upgrading { .. } => HandlerResult::Upgrade(Err(stopped)),
            Phase::Checking => HandlerResult::Health(Err(stopped)),
            Phase::Rebooting { .. } | Phase::Answered { .. } => return,
        };
        let sequence = current.position.sequence;
        self.enqueue(index, rules::Event::HandlerFinished { sequence, result });
    }

    fn heartbeat(&mut self, index: usize) {
        if !self.is_linked(Peer::Host(index)) {
            return;
        }
        for instance in 0..self.instances.len() {
            if self.is_linked(Peer::Instance(instance)) {
                let boot = self.instances[instance].boot;
                let host = &self.hosts[index];
                let sends_time = host.sdk && self.bug != Some(Bug::HostTimesUnread);
                let time = sends_time.then(|| self.clock_of_host(index));
                let heartbeat = WorkerMessage::Heartbeat { host: host.name.clone(), time, units: false };
                let event = os_upgrade_shell::instance::Event::Worker(heartbeat);
                let what = super::Process::Event(event);
                self.after(MILLI, Item::Process { instance, boot, what });
            }
        }
    }

    /// The worker checks its consumer, and creates it again if needed.
    fn open(&mut self, index: usize) {
        let name = self.hosts[index].name.clone();
        if !self.is_linked(Peer::Host(index)) {
            return;
        }
        let last_sequence = self.bus.control_len();
        let saved = self.hosts[index].sdk().map_or_else(SavedState::default, |sdk| sdk.logic.state().into());
        let existing = self.bus.consumer(&name);
        let planned = match (self.hosts[index].sdk, existing) {
            _ if self.bug == Some(Bug::ConsumerFromTheBeginning) => Plan::Make(DeliverFrom::Sequence(1)),
            // A plain worker uses the existing consumer.
            (false, Some(_)) => Plan::Keep,
            (_, existing) => plan(existing, saved, last_sequence),
        };
        if let Plan::Make(from) = planned {
            self.trace.record(self.now, || format!("{name} makes its consumer: {from:?}"));
            self.bus.make_consumer(&name, from);
        }
        self.hosts[index].reads = true;
        self.hosts[index].last_sequence_at_open = last_sequence_at_open(existing, last_sequence);
        self.hosts[index].connection += 1;
        // What was delivered over an earlier connection is left to its next delivery.
        if let Some(sdk) = self.hosts[index].sdk() {
            sdk.mailbox.retain(|event| !matches!(event, rules::Event::CommandReceived(_)));
            sdk.mailbox.push_front(rules::Event::Reconnected);
            self.schedule_step(index);
        }
        self.announce(index);
        self.desired_connected(index);
        self.agent_connected(index);
        self.pull(index);
    }

    /// A worker that is connected announces the boot of its host, if it announces any.
    pub(super) fn announce(&mut self, index: usize) {
        let host = &self.hosts[index];
        if !host.announces_boot {
            return;
        }
        self.bus.announce(&host.name, host.boot);
        for instance in
            (0..self.instances.len()).filter(|of| self.is_linked(Peer::Instance(*of))).collect::<Vec<_>>()
        {
            let (boot, latency) = (self.instances[instance].boot, self.latency());
            let what = super::Process::Announced { host: index };
            self.at(latency, Item::Process { instance, boot, what });
        }
    }

    fn pull(&mut self, index: usize) {
        let host = &self.hosts[index];
        let (name, process) = (host.name.clone(), host.process_count);
        if !host.reads || !self.is_linked(Peer::Host(index)) {
            return;
        }
        // A plain worker works on one command at a time, and asks for the next when it has finished.
        if matches!(host.process, Some(Process::Plain(Some(_)))) {
            return;
        }
        let pull = |world: &mut Self, delay| {
            world.at(delay, Item::Worker { host: index, process, what: Worker::Pull });
        };
        let Some(delivery) = self.bus.deliver(&name, self.now) else {
            if let Some(at) = self.bus.redelivery(&name)
                && at > self.now
            {
                pull(self, at - self.now + MILLI);
            }
            return;
        };
        let now = self.now;
        self.trace.record(now, || format!("{name} is given command {}", delivery.sequence));
        self.checker.delivered(delivery.sequence);
        if self.occurs(Fault::DeliveredTwice) {
            self.delivered(index, &delivery);
        }
        self.delivered(index, &delivery);
        // The worker always asks for more.
        if let Some(at) = self.bus.redelivery(&name).filter(|at| *at > self.now) {
            pull(self, at - self.now + MILLI);
        }
    }

    fn delivered(&mut self, index: usize, delivery: &Delivery) {
        let stored = &delivery.stored;
        let is_rolled_back = self.is_rolled_back;
        if let (Some(Bug::AnsweredOnce), true, Some(sdk)) =
            (self.bug, is_rolled_back, self.hosts[index].sdk())
            && sdk.logic.state().answers.iter().any(|answer| answer.id == stored.id)
        {
            return self.ack(index, delivery.sequence, &delivery.generation.to_string());
        }
        let ids_unread = is_rolled_back && self.bug == Some(Bug::IdsUnread);
        if self.hosts[index].sdk {
            let received = Received {
                sequence: delivery.sequence,
                published: stored.time,
                delivered: delivery.count,
                last_sequence_at_open: self.hosts[index].last_sequence_at_open,
                connection: self.hosts[index].connection,
                subject: stored.subject.clone(),
                ack_subject: delivery.generation.to_string(),
                run_header: stored.id.as_ref().map(|id| id.run.to_string()),
                id_header: stored.id.as_ref().filter(|_| !ids_unread).map(ToString::to_string),
                payload: self.sabotage_payload(index, &stored.payload),
            };
            return self.enqueue(index, rules::Event::CommandReceived(received));
        }
        let Ok(command) = Command::parse(&stored.payload) else { return };
        let work = PlainWork {
            sequence: delivery.sequence,
            generation: delivery.generation,
            action: command.action(),
            not_after: command.not_after(),
            leave: match command {
                Command::Reboot { boot_id, .. } => boot_id,
                Command::Prepare { .. } | Command::Upgrade { .. } => None,
            },
        };
        let ailment = self.hosts[index].ailment_in(work.action);
        if let Some(Process::Plain(at_work @ None)) = &mut self.hosts[index].process {
            *at_work = Some(work);
            if ailment == Some(Ailment::Hangs) {
                return;
            }
            let (time, process) = (self.handler_time(), self.hosts[index].process_count);
            let what = Worker::PlainDone { sequence: delivery.sequence };
            self.at(time, Item::Worker { host: index, process, what });
        }
    }

    /// Puts `event` into the worker's mailbox.
    pub(super) fn enqueue(&mut self, index: usize, event: rules::Event) {
        let Some(sdk) = self.hosts[index].sdk() else { return };
        sdk.mailbox.push_back(event);
        self.schedule_step(index);
    }

    fn schedule_step(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let process = host.process_count;
        let Some(sdk) = host.sdk() else { return };
        if !std::mem::replace(&mut sdk.step_is_due, true) {
            self.after(MILLI, Item::Worker { host: index, process, what: Worker::Step });
        }
    }

    /// The worker handles one event, or carries out one action: it may be killed between any two.
    fn step_worker(&mut self, index: usize) {
        let (now, monotonic) = (self.clock_of_host(index), span(self.now));
        let Some(sdk) = self.hosts[index].sdk() else { return };
        sdk.step_is_due = false;
        if let Some((decided, action)) = sdk.todo.pop_front() {
            self.carry_out_for(index, action, decided);
        } else if let Some(event) = sdk.mailbox.pop_front() {
            let read = rules::Now { wall: now, monotonic };
            let actions = sdk.logic.handle(read, event.clone());
            sdk.todo.extend(actions.into_iter().map(|action| (now, action)));
            let name = &self.hosts[index].name;
            self.trace.record_of(self.now, name, '<', || describe::worker_event(&event));
        }
        if self.hosts[index].sdk().is_some_and(|sdk| !sdk.todo.is_empty() || !sdk.mailbox.is_empty()) {
            self.schedule_step(index);
        }
    }

    fn clock_of_host(&self, index: usize) -> DateTime<Utc> {
        beginning() + span(self.now) + self.hosts[index].clock
    }

    /// Carries out an action that was decided at that time.
    fn carry_out_for(&mut self, index: usize, action: Action, decided: DateTime<Utc>) {
        let name = &self.hosts[index].name;
        self.trace.record_of(self.now, name, '>', || describe::worker_action(&action));
        match action {
            Action::SaveState(file) => self.save(index, &file),
            Action::Run(call) => self.run_handler(index, &call, decided),
            Action::Reboot(call) => self.begin_reboot(index, &call, decided),
            Action::Reply(reply) => self.reply(index, reply),
            Action::Ack { sequence, subject } => self.ack(index, sequence, &subject),
            Action::InProgress { subject } => {
                let generation = subject.parse().unwrap_or(0);
                self.send_worker_request(index, WorkerRequest::InProgress { generation }, None);
            }
            Action::ReadVersions => {
                let (running, published) = (Ok(Versions::default()), Ok(None));
                self.enqueue(index, rules::Event::VersionsRead { running, published });
            }
            // Its end is saved later, if at all.
            Action::Log(LogMessage::Dropped { sequence, .. }) => self.checker.dropped(sequence, decided),
            Action::PublishVersions { .. } | Action::Log(_) => {}
        }
    }

    fn save(&mut self, index: usize, file: &StateFile) {
        let event = if self.occurs(Fault::SaveFails) {
            rules::Event::StateSaveFailed { error: "no space left on device".to_owned() }
        } else {
            if self.bug != Some(Bug::StateFileNotKept) {
                self.hosts[index].disk = Some(file.to_bytes());
            }
            rules::Event::StateSaved
        };
        if let Some(sdk) = self.hosts[index].sdk() {
            // Its outcome is handled before anything else, as the executor does.
            sdk.mailbox.push_front(event);
        }
    }

    fn handler_time(&mut self) -> Micros {
        if self.occurs(Fault::HandlerHangs) {
            return self.rng.u64(MINUTE..10 * MINUTE);
        }
        self.rng.u64(MILLI..self.plan.handler_max)
    }

    fn run_handler(&mut self, index: usize, call: &HandlerCall, wall: DateTime<Utc>) {
        let resume = call.resume && self.bug != Some(Bug::ResumedAsNew);
        let begun = Begun { sequence: call.sequence, call: call.call, run: call.run.clone(), resume, wall };
        self.checker.handler_begun(index, &begun);
        let time = self.handler_time();
        let host = &self.hosts[index];
        let ailment = match call.call {
            Call::Prepare => host.ailment_in(CommandAction::Prepare),
            Call::Upgrade => host.ailment_in(CommandAction::Upgrade),
            Call::Health => None,
        };
        if ailment == Some(Ailment::Hangs) {
            return;
        }
        let (process, boot, sequence) = (host.process_count, host.boot, call.sequence);
        if call.call == Call::Upgrade && self.occurs(Fault::UpgradeReboots) {
            // The upgrade is resumed after the boot.
            return self.after(time, Item::Reboot { host: index, boot, command: None });
        }
        let fails = self.occurs(Fault::HandlerFails) || ailment == Some(Ailment::Fails);
        let failed = fails.then(|| "no luck".to_owned());
        let reboots = self.hosts[index].reboots;
        let result = match (call.call, failed) {
            (Call::Prepare, failed) => HandlerResult::Prepare(failed.map_or(Ok(()), Err)),
            (Call::Health, failed) => HandlerResult::Health(failed.map_or(Ok(()), Err)),
            (Call::Upgrade, Some(error)) => HandlerResult::Upgrade(Err(error)),
            (Call::Upgrade, None) if self.rng.u32(..1_000) < reboots => {
                HandlerResult::Upgrade(Ok(Upgraded::RebootRequired))
            }
            (Call::Upgrade, None) => HandlerResult::Upgrade(Ok(Upgraded::Done)),
        };
        let event = rules::Event::HandlerFinished { sequence, result };
        self.at(time, Item::Worker { host: index, process, what: Worker::Event(event) });
    }

    fn begin_reboot(&mut self, index: usize, call: &RebootCall, wall: DateTime<Utc>) {
        self.checker.reboot_begun(index, call.sequence, wall);
        let (process, boot) = (self.hosts[index].process_count, self.hosts[index].boot);
        let fails = self.hosts[index].ailment_in(CommandAction::Reboot) == Some(Ailment::Fails);
        if !fails && !self.occurs(Fault::RebootFails) {
            let command = Some(call.sequence);
            self.after(5 * SECOND, Item::Reboot { host: index, boot, command });
        }
        let result = if fails || self.occurs(Fault::HandlerFails) { Err("no".to_owned()) } else { Ok(()) };
        let event = rules::Event::RebootReturned { sequence: call.sequence, result };
        self.after(SECOND, Item::Worker { host: index, process, what: Worker::Event(event) });
    }

    fn reply(&mut self, index: usize, reply: OutgoingReply) {
        let sequence = reply.sequence;
        let header = |name| {
            let header = reply.headers.iter().find(|(header, _)| *header == name);
            header.map(|(_, value)| value.clone())
        };
        let answers = Answers { command: header(header::IN_REPLY_TO), run: header(header::RUN) };
        let what = WorkerRequest::Reply { sequence, payload: Bytes::from(reply.payload), answers };
        if self.bug == Some(Bug::AckBeforeReply) {
            let state = self.hosts[index].sdk().and_then(|sdk| sdk.logic.state().current.clone());
            if let Some(current) = state {
                self.ack(index, sequence, &current.ack_subject);
            }
        }
        let error = "no answer".to_owned();
        self.send_worker_request(index, what, Some(rules::Event::ReplyFailed { sequence, error }));
    }

    fn ack(&mut self, index: usize, sequence: u64, subject: &str) {
        let generation = subject.parse().unwrap_or(0);
        let error = "no answer".to_owned();
        let fallback = rules::Event::AckFailed { sequence, error };
        self.send_worker_request(index, WorkerRequest::Ack { generation, sequence }, Some(fallback));
    }

    /// Sends a request of a worker; `fallback` is the event if no answer arrives.
    fn send_worker_request(&mut self, index: usize, request: WorkerRequest, fallback: Option<rules::Event>) {
        self.requests += 1;
        let (id, process) = (self.requests, self.hosts[index].process_count);
        if let Some(fallback) = fallback
            && let Some(sdk) = self.hosts[index].sdk()
        {
            sdk.waiting.insert(id, fallback);
            let what = Worker::TimeOut { request: id };
            self.at(TIMEOUT, Item::Worker { host: index, process, what });
        }
        // Nothing is passed to the client while it is disconnected: it would be sent late.
        if self.is_linked(Peer::Host(index)) {
            let from = Peer::Host(index);
            let what = RequestKind::Worker(request);
            self.send(Request { id, from, process, what, sent: self.now, timeout: TIMEOUT });
        }
    }

    fn plain_worker_done(&mut self, index: usize, sequence: u64) {
        let clock = self.clock_of_host(index);
        let Some(Process::Plain(at_work)) = &mut self.hosts[index].process else { return };
        let Some(work) = at_work.take_if(|work| work.sequence == sequence) else { return };
        let late = work.not_after.is_some_and(|not_after| clock > not_after);
        if self.is_to_leave(index, &work) {
            return self.plain_worker_reboots(index, &work);
        }
        if !late {
            self.plain_worker_replies(index, &work);
        }
        self.plain_worker_goes_on(index, &work);
    }

    /// A plain worker acknowledges its command, and asks for the next one.
    fn plain_worker_goes_on(&mut self, index: usize, work: &PlainWork) {
        let PlainWork { generation, sequence, .. } = *work;
        let ack = WorkerRequest::Ack { generation, sequence };
        self.send_worker_request(index, ack, None);
        let process = self.hosts[index].process_count;
        self.after(SECOND, Item::Worker { host: index, process, what: Worker::Pull });
    }

    /// Whether a plain worker is told to leave the present boot of its host.
    fn is_to_leave(&self, index: usize, work: &PlainWork) -> bool {
        let is_present =
            |leave: &String| self.bug == Some(Bug::BootIdIgnored) || *leave == self.hosts[index].boot_id();
        work.leave.as_ref().is_some_and(is_present)
    }

    /// A plain worker keeps nothing on disk: it answers once its command is delivered again, in another boot.
    fn plain_worker_reboots(&mut self, index: usize, work: &PlainWork) {
        let (sequence, boot, clock) = (work.sequence, self.hosts[index].boot, self.clock_of_host(index));
        if self.occurs(Fault::RebootUnanswered) {
            self.hosts[index].unanswered = Some(sequence);
        } else if self.occurs(Fault::RebootFails) {
            self.plain_worker_sends(
                index,
                work,
                &Reply { action: work.action, result: Outcome::error("no") }.to_payload(),
            );
        } else {
            self.checker.reboot_begun(index, sequence, clock);
            return self.after(5 * SECOND, Item::Reboot { host: index, boot, command: Some(sequence) });
        }
        self.plain_worker_goes_on(index, work);
    }

    fn plain_worker_replies(&mut self, index: usize, work: &PlainWork) {
        let reboots = self.hosts[index].reboots;
        let fails = self.hosts[index].ailment_in(work.action) == Some(Ailment::Fails);
        let result = if fails || self.occurs(Fault::HandlerFails) {
            Outcome::error("no luck")
        } else if work.action == CommandAction::Upgrade && self.rng.u32(..1_000) < reboots {
            Outcome::RebootRequired
        } else {
            Outcome::Done
        };
        let mut payload = Reply { action: work.action, result }.to_payload();
        if self.occurs(Fault::WorkerLies) {
            payload = self.lie(work.action);
        }
        let times = 1 + usize::from(self.occurs(Fault::WorkerAnswersTwice));
        for _ in 0..times {
            self.plain_worker_sends(index, work, &payload);
        }
    }

    fn plain_worker_sends(&mut self, index: usize, work: &PlainWork, payload: &[u8]) {
        // One that reboots on request names the command that it answers, always.
        let names = self.rng.bool() || self.hosts[index].reboots_on_request;
        let command = names.then(|| work.sequence.to_string());
        let (answers, payload) = (Answers { command, run: None }, Bytes::copy_from_slice(payload));
        let reply = WorkerRequest::Reply { sequence: work.sequence, payload, answers };
        self.send_worker_request(index, reply, None);
    }

    fn lie(&mut self, action: CommandAction) -> Vec<u8> {
        let other = *self.rng.choice(&CommandAction::ALL).expect("not empty");
        match self.rng.u32(..4) {
            0 => b"{\"action\":\"upgrade\"".to_vec(),
            1 => Reply { action: other, result: Outcome::Done }.to_payload(),
            2 => Reply { action: other, result: Outcome::RebootRequired }.to_payload(),
            _ => Reply { action, result: Outcome::error("a lie") }.to_payload(),
        }
    }

    /// The host goes down and boots again.
    pub(super) fn reboot(&mut self, index: usize, boot: u32, command: Option<u64>) {
        let host = &mut self.hosts[index];
        if host.boot != boot || !host.is_up {
            return;
        }
        let name = host.name.clone();
        self.trace.record(self.now, || format!("{name} goes down"));
        host.kill();
        host.is_up = false;
        self.checker.went_down(index, command);
        self.units_go_down(index);
        self.kubelet_stops(index);
        let never_boots = self.hosts[index].ailment_in(CommandAction::Reboot) == Some(Ailment::Hangs);
        if never_boots || self.occurs(Fault::BootHangs) {
            self.hosts[index].hangs = true;
            // Sometimes somebody comes soon.
            if !never_boots && self.rng.bool() {
                self.after(10 * MINUTE, Item::Booted { host: index });
            }
            return;
        }
        let slow = self.occurs(Fault::SlowBoot);
        let time = if slow { 5 * MINUTE } else { self.plan.boot_max };
        self.after(time, Item::Booted { host: index });
    }

    pub(super) fn booted(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if host.is_up {
            return;
        }
        host.boot += 1;
        host.booted_at = self.now;
        host.is_up = true;
        host.hangs = false;
        let boot = host.boot;
        self.checker.booted(index);
        self.kubelet_starts(index);
        self.trace.record(self.now, || format!("h{index} is up, boot {boot}"));
        self.after(SECOND, Item::StartWorker { host: index, boot });
    }
}
