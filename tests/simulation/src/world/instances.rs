//! What happens to orchestrators' processes, and how their actions are carried out.

use std::time::Duration;

use os_upgrade_kernel::format::NEWEST;
use os_upgrade_kernel::{Fact, Job, JobDone, LockProvider, NoAnswer};
use os_upgrade_protocol::hint::HintCause;
use os_upgrade_protocol::{Announcement, Hint};
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::dispatch::{Dispatch, PublishOutcome, may_write};
use os_upgrade_shell::forward::encode;
use os_upgrade_shell::instance::{Action, Event, Halt, Instance as Logic, Warning};
use os_upgrade_shell::inventory::WorkerMessage;
use os_upgrade_shell::jobs::{JobReport, StartedJob};
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::append::{AppendOutcome, ReadBack};
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::lease::LeaseOutcome;
use os_upgrade_shell::not_done::NotDone;

use super::World;
use super::sabotage::record_in;
use crate::agenda::{Item, Process};
use crate::bug::Bug;
use crate::bus::CREATED;
use crate::checker::DecisionClock;
use crate::describe;
use crate::fault::Fault;
use crate::host::boot_id;
use crate::instance::{Instance, Reader};
use crate::peer::Peer;
use crate::plan::application;
use crate::request::{Request, RequestKind};
use crate::time::{MILLI, Micros, SECOND, beginning, span};
use crate::unit_plan::machine_id;

/// How long an orchestrator waits for the bus, and for the lock server.
pub(super) const TIMEOUT: Micros = 3 * SECOND;

impl World {
    pub(super) fn start(&mut self, index: usize) {
        if self.instances[index].logic.is_some() {
            return;
        }
        let store = &mut self.instances[index].store;
        let (had, earlier) = (store.reached.is_some(), store.earlier.clone());
        if had && self.occurs(Fault::StoreLost) {
            self.instances[index].store.reached = None;
            self.instances[index].store.newest = None;
            self.checker.store_replaced(index, None);
        } else if had && self.occurs(Fault::StoreOlder) {
            self.checker.store_replaced(index, earlier.as_ref().map(|store| store.sequence));
            self.instances[index].store.reached = earlier;
        }
        // Until the copy is noticed both lead, which a lock server cannot tell.
        let may_copy = self.instances.len() > 1 && self.plan.settings.provider == LockProvider::Embedded;
        if may_copy && self.occurs(Fault::DirectoryCopied) {
            let of = self.rng.usize(..self.instances.len());
            self.instances[index].name = format!("i{of}");
        }
        // Where there are no units, nothing depends on how many kinds of facts about them there are.
        let has_units = self.plan.units.is_some();
        let is_drawn =
            |kind: &&str| has_units || !["unit-", "machine-"].iter().any(|of| kind.starts_with(of));
        let unknown_kind = self
            .occurs(Fault::OlderVersion)
            .then(|| self.rng.choice(Fact::names().filter(is_drawn).collect::<Vec<_>>()).expect("not empty"));
        let instance = &mut self.instances[index];
        instance.unknown_kind = unknown_kind;
        instance.start(&self.plan);
        let boot = instance.boot;
        let version = unknown_kind.map(|kind| format!(", of a version before {kind}")).unwrap_or_default();
        self.trace.record(self.now, || format!("i{index} starts, process {boot}{version}"));
        if !self.is_linked(Peer::Instance(index)) {
            self.deliver_event(index, Event::Connected(false));
        }
        for host in 0..self.hosts.len() {
            let event = self.announcement(host);
            self.deliver_event(index, event);
        }
        self.read_reports(index);
        self.deliver_event(index, Event::Worker(WorkerMessage::AllAnnounced));
        self.in_process(index, boot, Process::Tick);
    }

    fn announcement(&self, index: usize) -> Event {
        let host = &self.hosts[index];
        let mut announcement = Announcement::new(host.name.clone(), application());
        announcement.group.clone_from(&host.group);
        // All workers send heartbeats; not all announce that.
        announcement.heartbeats = host.sdk;
        announcement.reboots_on_request = host.reboots_on_request;
        if host.announces_boot {
            announcement.boot_id = Some(boot_id(self.bus.announced(&host.name)));
        }
        announcement.configures = host.key();
        if host.agent.is_some() {
            announcement.runs_units = true;
            announcement.machine_id = Some(machine_id(index).to_string());
        }
        if host.hall > 0 {
            announcement.labels.insert("hall".to_owned(), host.hall.to_string());
        }
        let payload = announcement.to_payload().into();
        let host = host.name.clone();
        let message =
            WorkerMessage::Announced { application: application(), host, payload, sequence: 1, at: CREATED };
        Event::Worker(message)
    }

    pub(super) fn resume(&mut self, index: usize, boot: u32) {
        let instance = &mut self.instances[index];
        if instance.boot != boot {
            return;
        }
        self.trace.record(self.now, || format!("i{index} goes on"));
        self.checker.kept_until_now();
        for what in instance.paused.take().unwrap_or_default() {
            self.agenda.schedule(self.now, Item::Process { instance: index, boot, what });
        }
    }

    pub(super) fn in_process(&mut self, index: usize, boot: u32, what: Process) {
        let instance = &mut self.instances[index];
        if instance.boot != boot || instance.logic.is_none() {
            return;
        }
        if let Some(later) = &mut instance.paused {
            // Of several missed ticks only one is made up for.
            let is_tick = matches!(what, Process::Tick);
            if !is_tick || !later.iter().any(|earlier| matches!(earlier, Process::Tick)) {
                later.push(what);
            }
            return;
        }
        match what {
            Process::Tick => {
                let tick = self.plan.tick;
                self.at(tick, Item::Process { instance: index, boot, what: Process::Tick });
                self.announce_store(index);
                self.sabotage_queue_tick(index);
                self.check_launched(index);
                self.deliver_event(index, Event::Tick);
            }
            Process::Event(event) => {
                if matches!(event, Event::Connected(true)) {
                    self.checker.reconnected(index);
                    self.read_reports(index);
                }
                self.deliver_event(index, event);
            }
            Process::Announced { host } => {
                if self.is_linked(Peer::Instance(index)) {
                    let event = self.announcement(host);
                    self.deliver_event(index, event);
                }
            }
            Process::Run => self.run_node(index),
            Process::Depart(request) => self.depart(index, *request),
            Process::Return { request, event } => {
                if instance.waiting.remove(&request).is_some() {
                    self.deliver_event(index, event);
                }
            }
            Process::TimeOut { request } => {
                if let Some(event) = instance.waiting.remove(&request) {
                    self.deliver_event(index, event);
                }
            }
            Process::Journal { generation } => self.read_journal(index, generation),
            Process::Control { generation } => self.read_control(index, generation),
            Process::Project => self.project(index),
        }
    }

    /// The time by the clocks of the process.
    pub(super) fn clock_of(&self, index: usize) -> Now {
        let wall = beginning() + span(self.now) + self.instances[index].clock;
        Now { wall, monotonic: Duration::from_micros(self.now) }
    }

    pub(super) fn deliver_event(&mut self, index: usize, event: Event) {
        let now = self.clock_of(index);
        self.trace_event(index, &event);
        if let Event::JobDone { report: JobReport { retry_after: Some(retry_after), done }, .. } = &event {
            let nonce = self.instances[index].nonce();
            self.checker.retry_later(&nonce, done.job().system(), *retry_after);
        }
        self.provider_answered(index, &event);
        let event = self.hear_agent(index, event);
        let Some(event) = self.sabotage_event(index, event) else { return };
        let instance = &mut self.instances[index];
        let nonce = instance.nonce();
        let lost_to_copy = matches!(&event, Event::Lease { outcome: LeaseOutcome::Taken { holder, .. }, .. }
            if holder.instance == instance.name && holder.nonce != nonce);
        let Some(logic) = &mut instance.logic else { return };
        logic.handle(now, event);
        if lost_to_copy && logic.halted().is_none() && self.bus.is_overwritten(&nonce) {
            instance.overwritten += 1;
            self.checker.overwritten(index, instance.overwritten);
        }
        // Sometimes several events are decided together.
        if instance.decision_is_due {
            return;
        }
        if self.rng.u32(..4) == 0 {
            self.instances[index].decision_is_due = true;
            let boot = self.instances[index].boot;
            self.after(2 * MILLI, Item::Process { instance: index, boot, what: Process::Run });
        } else {
            self.run_node(index);
        }
    }

    fn run_node(&mut self, index: usize) {
        let now = self.clock_of(index);
        let instance = &mut self.instances[index];
        instance.decision_is_due = false;
        let Some(logic) = &mut instance.logic else { return };
        let mut actions = logic.run(now);
        self.end_commands_of_deposed(index);
        if self.bug == Some(Bug::ShownBeforeProjected) {
            actions.sort_by_key(|action| !matches!(action, Action::PublishState));
        }
        for action in actions {
            self.carry_out(index, action);
        }
    }

    fn carry_out(&mut self, index: usize, action: Action) {
        self.trace_action(index, &action);
        if let Action::Append { message, .. } = &action {
            let instance = &self.instances[index];
            let is_reliable =
                instance.logic.as_ref().is_some_and(|logic| logic.inventory().view().may_judge_windows());
            self.checker.decided(message, DecisionClock { error: instance.clock, is_reliable });
        }
        match action {
            Action::Inspect(known) => {
                let streams = Err("no answer".to_owned());
                let fallback = Event::Inspected { known: known.clone(), streams };
                let logic = self.instances[index].logic.as_ref();
                if self.bug == Some(Bug::LossSoughtOnce) && logic.is_some_and(Logic::is_leading) {
                    return self.deliver_event(index, fallback);
                }
                self.send_request(index, RequestKind::Inspect(known), fallback);
            }
            // This only tells operators what is missing; nothing depends on it.
            Action::DescribeLoss(_) => {}
            Action::Lease(question) => {
                let fallback = Event::Lease { number: question.number, outcome: LeaseOutcome::Failed };
                self.send_request(index, RequestKind::Lease(question), fallback);
            }
            Action::FollowJournal { from } => {
                self.instances[index].skipped = from - 1;
                let reader = self.reader(index, from, true);
                self.instances[index].journal = Some(reader);
            }
            Action::StopJournal => self.instances[index].journal = None,
            Action::Append { message, .. } if !self.knows(index, &message) => self.upgrade(index),
            Action::Append { expected, message } => self.append(index, expected, message),
            Action::ReadJournal { sequence } => {
                let fallback = Event::ReadBack { sequence, found: ReadBack::Failed };
                self.send_request(index, RequestKind::ReadJournal { sequence }, fallback);
            }
            Action::ReadControl { from } => {
                let reader = self.reader(index, from, false);
                self.instances[index].control = Some(reader);
            }
            Action::StopControl => self.instances[index].control = None,
            Action::Dispatch(dispatch) => self.dispatch(index, dispatch),
            Action::Answer { call, outcome } => self.answered(index, call, &outcome),
            Action::Forward { call, to, forwarded } => {
                let payload = encode(&forwarded).expect("requests are small");
                let outcome = Err(NotDone::unknown("no answer"));
                let fallback = Event::ForwardAnswered { call, outcome };
                self.send_request(index, RequestKind::Forward { call, to, payload }, fallback);
            }
            Action::PublishState => self.publish_state(index),
            Action::Hint { hint, hosts } => {
                self.checker.hinted(&hint);
                if self.is_linked(Peer::Instance(index)) {
                    for host in hosts {
                        self.send_hint(&host, &hint);
                    }
                }
            }
            Action::Project { committed, decided_here } => {
                if decided_here || self.bug == Some(Bug::LoggedByAll) {
                    self.checker.logged(index, committed.sequence);
                }
                self.checker.shown(&committed);
                let instance = &mut self.instances[index];
                let boot = instance.boot;
                if instance.projected.is_empty() {
                    let what = Process::Project;
                    self.after(200 * MILLI, Item::Process { instance: index, boot, what });
                }
                self.instances[index].projected.push_back(*committed);
            }
            // Hosts announce one application here.
            Action::DeleteAnnouncements(_) => {}
            Action::Trim(trim) => {
                let heard = &self.instances[index].heard;
                self.heard.entry(trim.journal_from).or_insert_with(|| heard.clone());
                self.send_request(index, RequestKind::Trim(trim), Event::Trimmed { trim, done: false });
            }
            Action::Stopped => self.kill(index),
            Action::Warn(Warning::Halted(halt)) => self.halted(index, &halt),
            Action::Warn(Warning::Leading) => self.leadership_began(index),
            Action::Warn(
                Warning::Inventory { .. }
                | Warning::Clock { .. }
                | Warning::Streams { .. }
                | Warning::Adopted(_)
                | Warning::CrossedSite { .. }
                | Warning::HoldersExceedSlots { .. }
                | Warning::Deposed { .. },
            ) => {}
        }
    }

    fn append(&mut self, index: usize, expected: u64, message: Message) {
        self.sabotage_append(index, &message);
        let message = self.sabotage_record(index, message);
        let message = self.sabotage_queue_record(index, message);
        let message = self.sabotage_cluster_record(index, message);
        let message = self.sabotage_unit_record(index, message);
        self.check_losses(index, &message);
        let append_id = message.append_id.clone();
        let outcome = match self.bug {
            Some(Bug::LostAckIsSuccess) => AppendOutcome::Stored { sequence: expected + 1 },
            _ => AppendOutcome::Unknown,
        };
        let fallback = Event::Appended { append_id, outcome };
        self.send_request(index, RequestKind::Append { expected, message }, fallback);
    }

    fn publish_state(&mut self, index: usize) {
        if self.bug == Some(Bug::ShownLate) && self.rng.u32(..20) == 0 {
            return;
        }
        let instance = &mut self.instances[index];
        instance.shown = instance.logic.as_ref().map_or(0, Logic::position);
        let (shown, given) = (instance.shown, instance.given());
        self.checker.state_shown(index, shown, given);
    }

    fn halted(&mut self, index: usize, halt: &Halt) {
        match halt {
            Halt::Copied { .. } => self.copy_noticed(index),
            Halt::Journal(error)
                if error.is_of_another_version() && self.instances[index].unknown_kind.is_some() =>
            {
                self.upgrade(index);
            }
            Halt::Lost(_) | Halt::Journal(_) => self.checker.halted(index, halt),
        }
    }

    /// The event as an instance reads it: an older version knows nothing of a newer record but that its format is newer.
    fn read_by(&self, index: usize, mut event: Event) -> Event {
        if let Event::Journal { message: Ok(message), .. } = &mut event
            && !self.knows(index, message)
        {
            message.format = NEWEST + 1;
        }
        event
    }

    /// Whether the instance's version has a word for everything in a message of the journal. What follows from facts that it
    /// does not know, it can read in a snapshot.
    pub(super) fn knows(&self, index: usize, message: &Message) -> bool {
        let Some(kind) = self.instances[index].unknown_kind else { return true };
        record_in(message).is_none_or(|record| record.facts.iter().all(|fact| fact.name() != kind))
    }

    /// An operator installs the newest version: the older one has stopped at what it does not know, or would do what it
    /// cannot.
    fn upgrade(&mut self, index: usize) {
        self.trace.record(self.now, || format!("i{index} is upgraded"));
        self.kill(index);
    }

    /// An instance has stopped because another has the same data directory. An operator gives each its own.
    fn copy_noticed(&mut self, index: usize) {
        let name = self.instances[index].name.clone();
        let is_named_alike = |(other, instance): (usize, &Instance)| other != index && instance.name == name;
        let is_true = self.instances.iter().enumerate().any(is_named_alike)
            || self.bus.is_overwritten(&self.instances[index].nonce());
        self.checker.copy_noticed(index, is_true);
        for (other, instance) in self.instances.iter_mut().enumerate() {
            if instance.name == name && (other == index || instance.is_copy()) {
                instance.make_original();
                instance.kill();
                let start = Item::Start { instance: other };
                self.agenda.schedule(self.now + SECOND, start);
            }
        }
    }

    fn dispatch(&mut self, index: usize, dispatch: Dispatch) {
        match dispatch {
            Dispatch::Fence { epoch } => {
                let fallback = Event::FencePublished { epoch, stored: None };
                self.send_request(index, RequestKind::Fence { epoch }, fallback);
            }
            Dispatch::Command { epoch, fence, order } => {
                let outcome = match self.bug {
                    Some(Bug::LostAckIsFailure) => PublishOutcome::NotStored,
                    _ => PublishOutcome::Unknown,
                };
                if self.bug == Some(Bug::HintedForNothing) {
                    let hint = Hint { run: Some(order.id.run.clone()), cause: HintCause::Cancelled };
                    self.carry_out(index, Action::Hint { hint, hosts: vec![order.id.host.clone()] });
                }
                let fallback = Event::CommandPublished { epoch, order: order.clone(), outcome };
                self.send_request(index, RequestKind::Command { epoch, fence, order }, fallback);
            }
            Dispatch::Job(started) => {
                let nonce = self.instances[index].nonce();
                self.checker.job_decided(&nonce, &started.job);
                let report = started.job.clone().unanswered(NoAnswer::TimedOut).into();
                let fallback = Event::JobDone { id: started.id, report };
                self.send_request(index, RequestKind::Job(started), fallback);
            }
            Dispatch::Deliver(deliver) => self.carry_out_delivery(index, deliver),
            Dispatch::Purge(purge) => {
                let fallback = Event::Purged { purge: purge.clone(), done: false };
                self.send_request(index, RequestKind::Purge(purge), fallback);
            }
            Dispatch::Retract { host, sequence } => {
                let fallback = Event::Retracted { host: host.clone(), sequence, deleted: None };
                self.send_request(index, RequestKind::Retract { host, sequence }, fallback);
            }
        }
    }

    /// Sends a request from the process soon; `fallback` is the event if no answer arrives.
    pub(super) fn send_request(&mut self, index: usize, what: RequestKind, fallback: Event) {
        self.requests += 1;
        let (id, process) = (self.requests, self.instances[index].boot);
        let from = Peer::Instance(index);
        let limit = if what.is_command() { self.command_timeout() } else { TIMEOUT };
        let request = Request { id, from, process, what, sent: self.now, timeout: limit };
        self.instances[index].waiting.insert(id, fallback);
        let is_act = matches!(
            request.what,
            RequestKind::Append { .. }
                | RequestKind::Command { .. }
                | RequestKind::Job(_)
                | RequestKind::Desired(_)
        );
        if is_act && self.occurs(Fault::PausedBeforeWrite) {
            self.pause(index);
        }
        let killed = is_act && self.occurs(Fault::KilledBeforeWrite);
        let depart = Process::Depart(Box::new(request));
        self.after(MILLI, Item::Process { instance: index, boot: process, what: depart });
        if killed {
            self.kill(index);
        }
        let time_out = Process::TimeOut { request: id };
        self.at(limit, Item::Process { instance: index, boot: process, what: time_out });
    }

    fn depart(&mut self, index: usize, request: Request) {
        if let RequestKind::Command { epoch, order, .. } = &request.what {
            // The adapter checks again, because the process may have been paused since it decided to send.
            let wall = self.clock_of(index).wall;
            if order.is_late(wall) && self.bug != Some(Bug::NotAfterUncheckedByOrchestrator) {
                let (epoch, order) = (*epoch, order.clone());
                let outcome = PublishOutcome::NotStored;
                self.instances[index].waiting.remove(&request.id);
                return self.deliver_event(index, Event::CommandPublished { epoch, order, outcome });
            }
            self.checker.command_sent(order, wall);
        }
        if let RequestKind::Job(StartedJob { id, job }) = &request.what {
            let leased_until = self.instances[index].logic.as_ref().and_then(Logic::leads_until);
            let is_of_earlier = matches!(job, Job::Cluster(job) if !self.is_under(index, job));
            let too_late = is_of_earlier || !may_write(leased_until, self.clock_of(index).monotonic);
            if too_late && self.bug != Some(Bug::LockWithoutLease) {
                let (id, report) = (*id, JobDone::NotBegun(job.clone()).into());
                self.instances[index].waiting.remove(&request.id);
                return self.deliver_event(index, Event::JobDone { id, report });
            }
            let leads = self.bus.is_leased_to(&self.instances[index].nonce(), self.now);
            // Of two with the same directory both lead for a moment. Marks tell them apart, and so does
            // the journal for commands; a lock server does not.
            let is_fenced = matches!(job, Job::Cluster(_) | Job::RebootCommand(_))
                && self.faults.contains_key(&Fault::DirectoryCopied);
            self.checker.job_request_sent(job, leads || is_fenced);
            if let Job::RebootCommand(command) = job {
                let (id, command) = (*id, command.clone());
                return self.run_command(index, &request, id, command);
            }
        }
        let from = Peer::Instance(index);
        if !request.what.is_job() && !self.is_linked(from) {
            if self.occurs(Fault::SentOnReconnect) {
                self.instances[index].kept.push(request);
            }
            return;
        }
        self.send(request);
    }

    /// Sends a request that has left its process.
    pub(super) fn send(&mut self, request: Request) {
        if self.occurs(Fault::MessageLost) {
            return;
        }
        // A lock server receives a request while its connection exists, or never, though it may carry it out late.
        let may_be_late = !request.what.is_job();
        let delay = if may_be_late && self.occurs(Fault::MessageLate) {
            self.rng.u64(TIMEOUT..60 * SECOND)
        } else {
            self.latency()
        };
        self.at(delay, Item::Arrive(Box::new(request)));
    }

    fn reader(&mut self, index: usize, from: u64, journal: bool) -> Reader {
        let instance = &mut self.instances[index];
        instance.generations += 1;
        let reader = Reader { generation: instance.generations, next: from, reports_end: journal };
        let (boot, generation) = (instance.boot, reader.generation);
        let what = if journal { Process::Journal { generation } } else { Process::Control { generation } };
        let latency = self.latency();
        self.at(latency, Item::Process { instance: index, boot, what });
        reader
    }

    fn read_journal(&mut self, index: usize, generation: u64) {
        let linked = self.is_linked(Peer::Instance(index));
        let instance = &mut self.instances[index];
        let boot = instance.boot;
        let Some(reader) = instance.journal.as_mut().filter(|reader| reader.generation == generation) else {
            return;
        };
        let what = Process::Journal { generation };
        if !linked {
            // The instance starts a new reader when the link is back.
            return self.after(SECOND, Item::Process { instance: index, boot, what });
        }
        let event = if let Some((sequence, message)) = self.bus.journal_from(reader.next) {
            if sequence > reader.next && message.begins_snapshot() {
                instance.skipped = sequence - 1;
            }
            reader.next = sequence + 1;
            Event::Journal { sequence, stored_at: self.bus.stored_at(sequence), message: Ok(message.clone()) }
        } else if std::mem::take(&mut reader.reports_end) {
            Event::JournalEnd
        } else {
            let idle = self.plan.tick;
            return self.after(idle, Item::Process { instance: index, boot, what });
        };
        self.after(MILLI, Item::Process { instance: index, boot, what });
        let event = self.sabotage_queue_journal(self.sabotage_journal(index, event));
        let event = self.sabotage_hook_journal(index, self.sabotage_desired_journal(event));
        self.deliver_event(index, self.read_by(index, event));
    }

    fn read_control(&mut self, index: usize, generation: u64) {
        let linked = self.is_linked(Peer::Instance(index));
        let instance = &mut self.instances[index];
        let boot = instance.boot;
        let Some(reader) = instance.control.as_mut().filter(|reader| reader.generation == generation) else {
            return;
        };
        let what = Process::Control { generation };
        if !linked {
            return self.after(SECOND, Item::Process { instance: index, boot, what });
        }
        if let Some(raw) = self.bus.control_from(reader.next) {
            reader.next = raw.sequence + 1;
            self.after(MILLI, Item::Process { instance: index, boot, what });
            self.deliver_event(index, Event::Control(raw));
        } else {
            let idle = self.plan.latency.max(50 * MILLI);
            self.after(idle, Item::Process { instance: index, boot, what });
        }
    }

    fn project(&mut self, index: usize) {
        let may_read = self.is_linked(Peer::Instance(index));
        while let Some(committed) = self.instances[index].projected.pop_front() {
            // Following begins at a snapshot, and the store may have less, or more.
            let reached = self.instances[index].store.sequence();
            if reached < committed.follows && self.bug != Some(Bug::StoreNotFilled) {
                if !may_read {
                    let instance = &mut self.instances[index];
                    instance.projected.push_front(committed);
                    let boot = instance.boot;
                    return self
                        .after(SECOND, Item::Process { instance: index, boot, what: Process::Project });
                }
                self.fill_store(index, committed.follows);
            }
            self.ingest(index, &committed);
        }
    }

    /// The store reads from the journal what it lacks up to `until`.
    fn fill_store(&mut self, index: usize, until: u64) {
        let reached = self.instances[index].store.sequence();
        let mut next = self.bus.follow_for_store(reached);
        let mut follower = Follower::default();
        let mut filled = Vec::new();
        while let Some((sequence, message)) =
            self.bus.journal_from(next).filter(|(sequence, _)| *sequence <= until)
        {
            next = sequence + 1;
            match follower.read(sequence, message) {
                Ok(committed) => filled.extend(committed),
                Err(error) => return self.checker.unreadable(index, &error.to_string()),
            }
        }
        if self.bus.journal_from(1).is_some_and(|(first, _)| first > reached + 1) {
            self.checker.store_replaced(index, Some(self.bus.follow_for_store(reached)));
        }
        for committed in &filled {
            self.ingest(index, committed);
        }
    }

    fn ingest(&mut self, index: usize, committed: &Committed) {
        let instance = &mut self.instances[index];
        if instance.store.sequence() < committed.sequence {
            self.checker.projected(index, committed);
            instance.store.ingest(committed);
        }
    }

    /// The other instances hear what the store of one has, and it hears what all have.
    fn announce_store(&mut self, index: usize) {
        if !self.is_linked(Peer::Instance(index)) {
            return;
        }
        let instance = &mut self.instances[index];
        instance.announced = Some(instance.store.sequence());
        instance.stored_once = instance.stored_once.max(instance.announced);
        let by_all = match self.bug {
            Some(Bug::TrimmedUnstored) => Some(u64::MAX),
            _ => self.instances.iter().filter_map(|instance| instance.announced).min(),
        };
        let heard = self.instances.iter().enumerate().filter(|(_, other)| other.announced.is_some());
        self.instances[index].heard = heard.map(|(other, _)| other).collect();
        let now = self.clock_of(index);
        if let Some(logic) = &mut self.instances[index].logic {
            logic.handle(now, Event::Stored { by_all });
        }
    }

    fn trace_event(&mut self, index: usize, event: &Event) {
        self.trace.record_of(self.now, format_args!("i{index}"), '<', || describe::event(event));
    }

    fn trace_action(&mut self, index: usize, action: &Action) {
        self.trace.record_of(self.now, format_args!("i{index}"), '>', || describe::action(action));
    }
}
