//! The checker: it sees what an outsider can see, and reports what must never happen.
//!
//! It sees messages in the streams, requests to the lock server, answers to callers, and what happens on hosts. It
//! keeps its own records. Of the orchestrator's code it uses only the formats and the fold of the journal, with which
//! the leader's state is compared at the end.
//!
//! The rules are listed in `violation`.
//!
//! Each of these files keeps what its rules need and reports their violations; [`Checker`] passes each event to the
//! files concerned.

mod answers;
mod attempts;
mod calls;
mod clock;
mod commands;
mod counts;
mod deliveries;
mod desired;
mod end;
mod enrolment;
mod hooks;
mod journal;
mod lock_server;
mod loss;
mod machines;
mod missed;
mod nodes;
mod order;
mod pause;
mod queue;
mod retention;
mod rollout;
mod runs;
mod secrets;
mod semaphore;
mod steps;
mod turns;
mod units;
mod violation;
mod workers;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::fact::{EnrolmentFact, RunFact};
use os_upgrade_kernel::{
    ClientId, CommandJob, CommandOrder, CommandOutcome, Fact, Job, LockOperation, NodeJob, NodeOutcome,
    Operation, Order, Record, Request, RunOperation, Settings, State, Subject, System,
};
use os_upgrade_protocol::{Action, Hint, HostName, Reply};
use os_upgrade_shell::fleet_lock::RetryAfter;
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::instance::{CallId, Halt, Trim};
use os_upgrade_shell::journal::codec::{Kind, Message};
use os_upgrade_shell::journal::{AppendId, Committed};
use os_upgrade_shell::not_done::NotDone;

use self::answers::{Actors, AnswerContext};
use self::attempts::Attempts;
use self::calls::Calls;
pub(crate) use self::clock::DecisionClock;
use self::clock::RecordTimes;
use self::commands::Commands;
use self::desired::Desired;
use self::enrolment::Enrolled;
pub(crate) use self::hooks::{HookCaller, Hooks};
pub(crate) use self::journal::Journal;
use self::lock_server::LockRequests;
pub(crate) use self::loss::KnownEnds;
use self::loss::Loss;
use self::missed::{Missed, Moment};
use self::nodes::Nodes;
use self::order::TurnOrder;
use self::pause::Pauses;
use self::queue::{Context, Queue};
use self::rollout::Rollouts;
use self::runs::Runs;
pub(crate) use self::runs::needed;
use self::secrets::Secrets;
use self::semaphore::Semaphores;
use self::steps::Steps;
use self::turns::Turns;
pub(crate) use self::units::SeenMachine;
use self::units::Units;
pub use self::violation::Violation;
use self::violation::Violations;
pub(crate) use self::workers::Begun;
use self::workers::Workers;
use crate::bus::Ends;
use crate::cluster::Seen;
use crate::locks::LockServer;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::time::{Micros, beginning, span};

/// How often a process may be shown that a copy has taken its lease: an answer may belong to a question given up.
const OVERWRITTEN_MAX: u32 = 3;

#[derive(Debug)]
pub(crate) struct Checker {
    /// The present simulated time.
    pub(crate) now: Micros,
    violations: Violations,
    actors: Actors,
    attempts: Attempts,
    lock_requests: BTreeMap<System, LockRequests>,
    calls: Calls,
    commands: Commands,
    desired: Desired,
    enrolled: Enrolled,
    hooks: Hooks,
    journal: Journal,
    /// Whether bus and instances were put back to an earlier moment.
    is_rolled_back: bool,
    loss: Loss,
    missed: Missed,
    nodes: Nodes,
    order: TurnOrder,
    pauses: Pauses,
    rollouts: Rollouts,
    queue: Queue,
    record_times: RecordTimes,
    runs: Runs,
    secrets: Secrets,
    semaphores: Semaphores,
    steps: Steps,
    turns: Turns,
    units: Units,
    workers: Workers,
    journal_messages_max: u64,
    /// Whether some clock is always right. Otherwise nobody can know that the bus's clock is wrong.
    clocks_are_witnessed: bool,
    /// What was appended, or tried to, each with the clock by which it was decided.
    decided: HashMap<AppendId, DecisionClock>,
}

impl Checker {
    pub(crate) fn new(plan: &Plan, names: Vec<HostName>) -> Self {
        Self {
            now: 0,
            violations: Violations::default(),
            actors: Actors::default(),
            attempts: Attempts::new(plan),
            lock_requests: BTreeMap::new(),
            calls: Calls::default(),
            commands: Commands::default(),
            desired: Desired::default(),
            enrolled: Enrolled::default(),
            hooks: Hooks::default(),
            journal: Journal::default(),
            is_rolled_back: false,
            loss: Loss::default(),
            missed: Missed::default(),
            nodes: Nodes::new(plan),
            order: TurnOrder::default(),
            pauses: Pauses::default(),
            rollouts: Rollouts::default(),
            queue: Queue::new(plan, &names),
            record_times: RecordTimes::default(),
            runs: Runs::new(),
            secrets: Secrets::default(),
            steps: Steps::new(plan, &names),
            turns: Turns::default(),
            units: Units::new(plan),
            workers: Workers::new(&plan.hosts, &names),
            semaphores: Semaphores::new(plan.settings.provider, names),
            journal_messages_max: plan.retention.journal_messages_max,
            clocks_are_witnessed: plan.clocks_are_witnessed(),
            decided: HashMap::new(),
        }
    }

    /// Whether no rule has been broken.
    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// The first violation, if any.
    pub(crate) fn into_violation(self) -> Option<Violation> {
        self.violations.into_first()
    }

    /// The nodes of hosts that failed, or whose slots were released by an operator.
    pub(crate) fn kept_nodes(&self) -> impl Iterator<Item = &HostName> {
        self.nodes.kept()
    }

    /// The settings of an instance have changed; they come into force if it leads.
    pub(crate) fn settings_changed(&mut self, settings: &Settings) {
        self.steps.settings_changed(settings);
    }

    /// The streams were trimmed; `is_rooted`: the journal begins with a complete snapshot. `stored` is the last record that
    /// all stores have had, `length` is the journal's last sequence.
    pub(crate) fn trimmed(&mut self, trim: Trim, is_rooted: bool, stored: Option<u64>, length: u64) {
        let is_too_long = length > self.journal_messages_max;
        let journal = retention::check_journal(trim, is_rooted, stored.unwrap_or(0), is_too_long);
        self.violations.record("retention.check_journal", journal);
        self.violations
            .record("retention.check_control", retention::check_control(trim, self.journal.state()));
    }

    /// The store of an instance cannot be filled from the journal.
    pub(crate) fn unreadable(&mut self, instance: usize, error: &str) {
        let text = format!("i{instance} cannot fill its store: {error}");
        self.violations.add(Violation::new("store", text));
    }

    /// A call is made.
    pub(crate) fn called(&mut self, call: CallId, request: &Request) {
        self.calls.called(self.now, call, request);
        self.semaphores.called(self.now, call, request);
        if let Operation::Run(RunOperation::Trigger { run, targets, .. }) = &request.operation {
            self.runs.chosen(run, targets);
        }
    }

    /// A call is answered.
    pub(crate) fn answered(&mut self, call: CallId, outcome: &Outcome) {
        let Some((request, called)) = self.calls.answered(self.now, call, outcome) else {
            let text = format!("call {call} is answered twice");
            return self.violations.add(Violation::new("S5", text));
        };
        self.violations
            .record("semaphores.answered", self.semaphores.answered(self.now, call, &request, outcome));
        let answer = match outcome {
            Ok(answered) => &answered.answer,
            Err(NotDone::Unknown { .. }) => return,
            Err(NotDone::Unchanged { .. }) => {
                return self
                    .violations
                    .record("actors.answered_unchanged", self.actors.answered_unchanged(&request.actor));
            }
        };
        let (now, state) = (self.now, self.journal.state());
        let (runs, secrets, queue) = (&self.runs, &self.secrets, &self.queue);
        let (pauses, units) = (&self.pauses, &self.units);
        let context = AnswerContext { called, now, runs, secrets, queue, pauses, units, state };
        self.violations.record("context.check", context.check(&request, answer));
        if let (Operation::Lock(LockOperation::Lock { group, id }), Ok(_)) = (&request.operation, answer)
            && self.calls.granted(group, id, called)
        {
            self.violations.record("steps.check_slots", self.steps.check_slots(group, &self.calls));
        }
    }

    /// The leader answers while it shows readers the journal up to `shown`.
    pub(crate) fn leader_answered(&mut self, outcome: &Outcome, shown: u64) {
        self.violations.record("answers.check_shown", answers::check_shown(outcome, shown));
    }

    /// A paused orchestrator goes on, or one that was cut off, perhaps for hours, is connected again: what it has kept leaves
    /// it now.
    pub(crate) fn kept_until_now(&mut self) {
        self.semaphores.kept_until(self.now);
        self.workers.listens(self.now);
    }

    /// Workers are told that a run is stopping.
    pub(crate) fn hinted(&mut self, hint: &Hint) {
        self.violations.record("runs.hinted", self.runs.hinted(hint));
    }

    /// An instance begins to append `message`, by `clock`. If it has done so before, it decided then.
    pub(crate) fn decided(&mut self, message: &Message, clock: DecisionClock) {
        let is_first = !self.decided.contains_key(&message.append_id);
        self.decided.entry(message.append_id.clone()).or_insert(clock);
        if !is_first || message.kind != Kind::Record {
            return;
        }
        // Large records are compressed, and not looked at.
        let Ok(record) = serde_json::from_slice::<Record>(&message.payload) else { return };
        if !self.is_rolled_back {
            self.violations.record("record_times.check", self.record_times.check(&record));
        }
        if !self.clocks_are_witnessed {
            return;
        }
        // Hosts that take no part are not asked for the time, and those that are down do not tell it.
        if !self.workers.witnesses(self.now).any(|host| self.journal.state().enrolled(host).takes_part()) {
            return;
        }
        for fact in &record.facts {
            self.violations.record("clock.check", clock::check(fact, clock.error));
        }
    }

    /// A message has been appended, and stored at `stored_at` by the bus's clock.
    pub(crate) fn appended(&mut self, sequence: u64, message: &Message, stored_at: DateTime<Utc>) {
        if message.kind != Kind::Record && message.part == message.parts {
            self.record_times = RecordTimes::default();
        }
        let committed = match self.journal.appended(sequence, message) {
            Ok(Some(committed)) => committed,
            Ok(None) => return,
            Err(violation) => return self.violations.add(violation),
        };
        let record = &committed.record;
        for fact in &record.facts {
            self.steps.release_silent(fact);
        }
        let clock = self.decided.get(&message.append_id).copied();
        let clock = clock.unwrap_or(DecisionClock { error: TimeDelta::zero(), is_reliable: false });
        let moment = Moment { at: record.at, clock, appended: self.time() };
        self.record_times.appended(record, stored_at, clock.is_reliable);
        let mut before = committed.before;
        for fact in &committed.record.facts {
            if !self.is_rolled_back {
                self.violations.record("order.fact", self.order.fact(moment.at, fact, &before));
            }
            // That it fits was checked when the record was folded.
            let _ = before.apply(moment.at, fact);
            self.fact(moment, fact, &before);
        }
        self.check_peers(&before);
    }

    /// The right time.
    fn time(&self) -> DateTime<Utc> {
        beginning() + span(self.now)
    }

    /// A fact was added to the journal, whose fold up to there is `state`. The rest of its record may undo it.
    fn fact(&mut self, moment: Moment, fact: &Fact, state: &State) {
        self.violations.record("attempts.fact", self.attempts.fact(moment.at, fact));
        self.delivery_fact(fact, state);
        // What is remembered of runs, steps and slots is of the time before.
        if self.is_rolled_back {
            return;
        }
        let (now, at) = (self.now, moment.at);
        self.violations.record("missed.fact", self.missed.fact(moment, fact, &self.runs));
        self.violations.record("actors.fact", self.actors.fact(fact));
        self.violations.record("runs.fact", self.runs.fact(now, at, fact));
        self.violations.record("steps.fact", self.steps.fact(fact, state, &self.semaphores));
        self.turns.fact(now, fact);
        self.violations.record("rollouts.fact", self.rollouts.fact(at, fact, state));
        self.violations.record("pauses.fact", self.pauses.fact(now, at, fact));
        let context = Context { enrolled: &self.enrolled, attempts: &self.attempts, workers: &self.workers };
        self.violations.record("queue.fact", self.queue.fact(now, at, fact, &context));
        let is_at_work = |host: &&HostName| {
            state.reboot_queue.under_way().any(|(_, entry)| entry.host == **host)
                || state.run.as_ref().is_some_and(|run| run.under_way().contains(*host))
        };
        let silent = self.workers.silent(now).filter(|host| !is_at_work(host));
        self.violations.record(
            "nodes.check_unreachable",
            self.nodes.check_unreachable(now, fact, &self.enrolled, silent),
        );
        self.violations.record("nodes.fact", self.nodes.fact(now, at, fact));
        self.violations.record("enrolled.fact", self.enrolled.fact(fact));
        self.violations.record("secrets.fact", self.secrets.fact(now, fact));
        self.calls.fact(now, fact);
        let silent = self.workers.silent(now).cloned().collect();
        self.violations.record("semaphores.fact", self.semaphores.fact(now, at, fact, &silent));
    }

    /// An instance shows a record as committed.
    pub(crate) fn shown(&mut self, committed: &Committed) {
        for fact in &committed.record.facts {
            if let Fact::Run(RunFact::Ended { run, .. }) = fact {
                self.runs.end_shown(self.now, run);
            }
            if let Fact::Enrolment(EnrolmentFact::HostWithdrawn { host, .. }) = fact {
                self.enrolled.withdrawal_shown(self.now, host);
            }
        }
    }

    /// An instance shows the state of sequence `shown`, after passing records up to `given` to its store.
    pub(crate) fn state_shown(&mut self, instance: usize, shown: u64, given: u64) {
        self.violations.record("journal.check_shown", self.journal.check_shown(instance, shown, given));
    }

    /// An instance logs the record at `sequence` as its own decision.
    pub(crate) fn logged(&mut self, instance: usize, sequence: u64) {
        self.violations.record("journal.logged", self.journal.logged(instance, sequence));
    }

    /// The store of an instance ingests a record.
    pub(crate) fn projected(&mut self, instance: usize, committed: &Committed) {
        self.violations.record("journal.projected", self.journal.projected(instance, committed));
    }

    /// The store of an instance was lost or replaced by an older one, which has reached `reached`.
    pub(crate) fn store_replaced(&mut self, instance: usize, reached: Option<u64>) {
        self.journal.store_replaced(instance, reached);
    }

    /// An instance has stopped permanently, though nothing was lost.
    pub(crate) fn halted(&mut self, instance: usize, halt: &Halt) {
        let text = format!("i{instance} has stopped: {halt}");
        self.violations.add(Violation::new("journal", text));
    }

    /// An instance has stopped because of a copy of its data directory. `is_true`: a copy has taken its lease.
    pub(crate) fn copy_noticed(&mut self, instance: usize, is_true: bool) {
        if !is_true {
            let text = format!("i{instance} has stopped because of a copy, and there is none");
            self.violations.add(Violation::new("copy", text));
        }
    }

    /// An instance goes on though it was shown, for the `times`th time, that a copy of it took the lease from it.
    pub(crate) fn overwritten(&mut self, instance: usize, times: u32) {
        if times > OVERWRITTEN_MAX {
            let text = format!("i{instance} and a copy of it take the lease from each other");
            self.violations.add(Violation::new("copy", text));
        }
    }

    /// A command leaves an orchestrator whose clock shows `wall`.
    pub(crate) fn command_sent(&mut self, order: &Order, wall: DateTime<Utc>) {
        self.violations.record("commands.check_sent", commands::check_sent(order, wall));
    }

    /// A command that was sent at `sent` under `fence` is stored in the stream.
    pub(crate) fn command_stored(
        &mut self,
        sequence: u64,
        order: &Order,
        sent: Micros,
        fence: u64,
        locks: &LockServer,
    ) {
        let id = &order.id;
        self.violations.record("commands.stored", self.commands.stored(sequence, order, sent, &self.runs));
        self.violations.record("enrolled.check_command", self.enrolled.check_command(id, sent));
        self.violations.record("queue.commanded", self.queue.commanded(order));
        self.violations.record("nodes.commanded", self.nodes.commanded(order, fence));
        match id.action {
            Action::Prepare => {}
            Action::Upgrade | Action::Reboot => {
                self.violations
                    .record("steps.commanded", self.steps.commanded(sequence, id, locks, &self.calls));
            }
        }
    }

    /// A command is delivered to its worker.
    pub(crate) fn delivered(&mut self, sequence: u64) {
        self.commands.delivered(sequence);
    }

    /// A command has been deleted.
    pub(crate) fn command_deleted(&mut self, sequence: u64) {
        self.violations.record(
            "commands.check_deleted",
            self.commands.check_deleted(sequence, &self.runs, self.journal.state()),
        );
        if let Some(command) = self.commands.get(sequence) {
            self.violations.record("queue.check_deleted", self.queue.check_deleted(&command.id));
        }
        if let Some(id) = self.commands.if_undelivered(sequence) {
            self.steps.retracted(&id.host, sequence);
        }
    }

    /// A reply is stored in the stream.
    pub(crate) fn reply_stored(
        &mut self,
        host: usize,
        sequence: u64,
        payload: &[u8],
        in_reply_to: Option<&str>,
    ) {
        let Ok(reply) = Reply::parse(payload) else { return };
        let in_reply_to: Option<u64> = in_reply_to.and_then(|text| text.parse().ok());
        if let Some(sequence) = in_reply_to
            && let Some(command) = self.commands.replied(sequence)
        {
            self.queue.replied(&command.id, &reply, self.workers.boot(host));
            self.workers.replied(host, &reply, sequence, command);
        }
        self.steps.answered(self.workers.name(host), &reply, in_reply_to, sequence);
    }

    /// A handler is begun on a host.
    pub(crate) fn handler_begun(&mut self, host: usize, begun: &Begun) {
        let command = self.commands.begun(begun.sequence);
        let checked = command.and_then(|command| self.workers.handler_begun(host, begun, command));
        self.violations.record("workers.handler_begun", checked);
    }

    /// A reboot is begun on a host.
    pub(crate) fn reboot_begun(&mut self, host: usize, sequence: u64, wall: DateTime<Utc>) {
        let command = self.commands.begun(sequence);
        // Whether it reboots a second time shows when it goes down.
        if command.as_ref().is_ok_and(|command| self.queue.has_rebooted_for(&command.id)) {
            return;
        }
        let checked = command.and_then(|command| self.workers.check_reboot(host, wall, command));
        self.violations.record("workers.check_reboot", checked);
    }

    /// A host goes down, perhaps for the command at `sequence`.
    pub(crate) fn went_down(&mut self, host: usize, sequence: Option<u64>) {
        self.workers.went_down(self.now, host);
        if let Some(command) = sequence.and_then(|sequence| self.commands.get(sequence)) {
            self.violations.record("queue.went_down", self.queue.went_down(&command.id, self.is_rolled_back));
        }
    }

    /// A host has booted.
    pub(crate) fn booted(&mut self, host: usize) {
        self.workers.booted(self.now, host);
    }

    /// A worker's state file is lost: without it no reboot is due, and the worker does not know what it has begun.
    pub(crate) fn worker_state_lost(&mut self, host: usize) {
        self.workers.state_lost(host);
        self.commands.executions_forgotten(self.workers.name(host));
    }

    /// The bus has forgotten acknowledgements.
    pub(crate) fn acks_forgotten(&mut self) {
        self.workers.acks_forgotten();
    }

    /// A worker, whose clock shows `wall`, drops the command at `sequence` without a reply.
    pub(crate) fn dropped(&mut self, sequence: u64, wall: DateTime<Utc>) {
        self.commands.dropped(sequence, wall);
    }

    /// A worker's acknowledgement has reached the bus.
    pub(crate) fn acked(&mut self, host: usize, sequence: u64) {
        if let Some(command) = self.commands.get(sequence) {
            self.violations.record("workers.check_ack", self.workers.check_ack(host, command));
        }
    }

    /// A process has decided to send a request to a system outside of the bus.
    pub(crate) fn job_decided(&mut self, nonce: &str, job: &Job) {
        // Only lock servers are others'.
        let Job::LockServer(slot) = job else { return };
        let requests = self.lock_requests.entry(job.system()).or_default();
        self.violations
            .record("requests.check", requests.check(self.now, nonce, &slot.host, job.is_release()));
    }

    /// Such a system has answered a process with `retry_after`.
    pub(crate) fn retry_later(&mut self, nonce: &str, system: System, retry_after: RetryAfter) {
        self.lock_requests.entry(system).or_default().retry_later(self.now, nonce, retry_after);
    }

    /// A request to such a system leaves a process; `leads` is whether that process holds the lease.
    pub(crate) fn job_request_sent(&mut self, job: &Job, leads: bool) {
        let Subject::Host(host) = job.subject();
        self.violations.record("lock_server.check_lease", lock_server::check_lease(&host, leads));
    }

    /// The API server of the cluster has carried out a job.
    pub(crate) fn node_job_done(&mut self, job: &NodeJob, outcome: &NodeOutcome, seen: &[Seen]) {
        self.violations.record("nodes.job_done", self.nodes.job_done(self.now, job, outcome, seen));
    }

    /// An instance begins to lead.
    pub(crate) fn leadership_began(&mut self) {
        self.attempts.leadership_began();
    }

    /// The operator's command that reboots a host is run. `has_copies`: a data directory has been copied.
    pub(crate) fn command_runs(&mut self, job: &CommandJob, locks: &LockServer, has_copies: bool) {
        let CommandOrder::Reboot { attempt } = job.order else { return };
        let is_disowned = has_copies && self.attempts.is_disowned(job, attempt);
        let boot = self.workers.boot_of(&job.host);
        self.violations.record("attempts.runs", self.attempts.runs(job, attempt, boot, is_disowned));
        if is_disowned {
            return;
        }
        let run = match self.queue.command_runs(job) {
            Ok(run) => run,
            Err(violation) => return self.violations.add(violation),
        };
        self.violations.record("nodes.command_runs", self.nodes.command_runs(job));
        self.violations
            .record("steps.command_runs", self.steps.command_runs(&job.host, run, locks, &self.calls));
    }

    /// A run of an operator's command ends by itself, or because its time is up.
    pub(crate) fn command_ended(&mut self, job: &CommandJob, outcome: &CommandOutcome) {
        self.attempts.ended(job, outcome);
    }

    /// A host goes down because of the operator's command.
    pub(crate) fn rebooted_by_command(&mut self, job: &CommandJob) {
        let (boot, is_over) = (self.workers.boot_of(&job.host), self.queue.is_over(job));
        self.violations.record("attempts.rebooted", self.attempts.rebooted(job, boot, is_over));
    }

    /// An administrator makes a node schedulable, or not.
    pub(crate) fn administrator_set(&mut self, host: &HostName, is_unschedulable: bool) {
        self.nodes.administrator_set(host, is_unschedulable);
    }

    /// The kubelet of a node is ready, or lost.
    pub(crate) fn node_is_ready(&mut self, host: &HostName, is_ready: bool) {
        self.nodes.is_ready(self.now, host, is_ready);
    }

    /// A Node object was deleted.
    pub(crate) fn node_deleted(&mut self, host: &HostName) {
        self.nodes.deleted(self.now, host);
    }

    /// A request to unlock the slot of `host` reaches the lock server.
    pub(crate) fn unlock_arrives(&mut self, host: &HostName) {
        self.violations.record("steps.check_freed", self.steps.check_freed(host));
    }

    /// The longest time for which a host held its slot, since [`forget_longest_turn`](Self::forget_longest_turn).
    pub(crate) fn longest_turn(&self) -> Micros {
        self.turns.longest(self.now)
    }

    pub(crate) fn forget_longest_turn(&mut self) {
        self.turns.forget_longest();
    }

    /// A client that had been refused was granted a slot after `waited`, with `within` as the limit.
    pub(crate) fn waited(&mut self, client: &ClientId, waited: Micros, within: Micros) {
        self.violations.record("turns.waited", self.turns.waited(client, waited, within));
    }

    /// The bus has lost data; `knows` has what each instance knows.
    pub(crate) fn data_lost(&mut self, knows: Vec<KnownEnds>) {
        self.loss.data_lost(knows);
        // Nothing else is promised then.
        self.violations.only(vec!["loss"]);
    }

    /// What has been seen of the journal.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The bus and all instances are put back to a moment at which `journal` had been seen. What was answered since is
    /// forgotten, but nothing gets stuck, and no host does anything twice.
    pub(crate) fn rolled_back(&mut self, journal: Journal) {
        self.journal = journal;
        self.is_rolled_back = true;
        self.workers.rolled_back();
        self.queue.rolled_back();
        self.attempts.rolled_back();
        let of_desired = ["given", "older", "named", "sealed", "succession", "resumed", "delivered"];
        let of_units = ["apart", "placed", "settled", "still"];
        let others = ["journal", "store", "shown", "log", "S3", "doubled", "live"];
        self.violations.only(of_desired.into_iter().chain(of_units).chain(others).collect());
    }

    /// Some time after the streams were purged, the instance `unaware`, if any, has not stopped though it knew them.
    pub(crate) fn purge_found(&mut self, unaware: Option<usize>) {
        let found = unaware.map_or(Ok(()), |instance| {
            Err(Violation::new("loss", format!("i{instance} has not noticed that the streams were purged")))
        });
        self.violations.record("loss.purge_found", found);
    }

    /// When the active run ends at the latest, if the journal has one.
    pub(crate) fn run_ends(&self) -> Option<DateTime<Utc>> {
        self.journal.state().run.as_ref().map(|run| run.not_after)
    }

    /// Whether every run that was missed by now is recorded.
    pub(crate) fn has_missed_runs_recorded(&self) -> bool {
        self.missed.unrecorded(self.time(), &self.runs).is_none()
    }

    /// Whether the bus has lost data.
    pub(crate) fn has_lost_data(&self) -> bool {
        self.loss.has_lost_data()
    }

    /// A process has noticed that the bus is back.
    pub(crate) fn reconnected(&mut self, instance: usize) {
        self.loss.reconnected(self.now, instance);
    }

    /// An append or a command arrives that left its process at `sent`; the streams end at `ends` before it.
    pub(crate) fn wrote(&mut self, from: Peer, process: u32, sent: Micros, ends: Ends) {
        self.violations.record("loss.check_write", self.loss.check_write(from, process, sent, ends));
    }

    /// Checks some time after a loss whether each instance has stopped.
    pub(crate) fn check_stopped(&mut self, stopped: &[bool], ends: Ends) {
        self.violations.record("loss.check_stopped", self.loss.check_stopped(stopped, ends));
    }
}
