//! The checker: it knows what an outsider can see, and says what must never be seen.
//!
//! It is shown messages as they stand in the streams, questions to the lock server, answers to callers, and what
//! happens on hosts. It keeps its own books; of the orchestrator's code it uses the formats only, but for the fold of
//! the journal, with which the leader's state is compared at the end.
//!
//! | rule | | in |
//! |---|---|---|
//! | S1 | no group has more hosts under upgrade than slots | `steps` |
//! | S2 | no command is sent after `not-after` or the run's end, and no worker starts one | `commands`, `workers` |
//! | S3 | no host executes `upgrade` twice in a run | `workers` |
//! | S4 | no `upgrade` or `reboot` without a slot held | `steps` |
//! | S5 | an answer 2xx is never forgotten | `answers` |
//! | shown | who is told by the leader that a change is durable finds it there; what is shown is on its way to the store | `answers`, `journal` |
//! | log | what is decided is logged by one instance at most | `journal` |
//! | hint | workers are told that a run is stopping when it is | `runs` |
//! | S6 | a slot is never freed by time alone, nor by an operator while its host is at work | `steps` |
//! | window | a run starts by itself in an open window only, once in each occurrence, and ends with it | `runs` |
//! | semaphore | the history of all calls about slots is linearisable | `semaphore` |
//! | fair | a host leaves a free slot to each client that was refused before it came; nobody waits for long | `semaphore`, `turns` |
//! | lease | the lock server is asked by nobody but who holds the lease | `lock_server` |
//! | rate | the lock server is asked no more than it takes, and left alone when it wants to be | `lock_server` |
//! | once | no command stands in the stream twice | `commands` |
//! | enrol | no command goes to a host that was not approved when its run began, or was withdrawn before it began there | `enrolment` |
//! | secret | all secrets that are kept are under one key | `secrets` |
//! | worker | an executed command is acknowledged after its reply; a reboot follows its `reboot-required` | `commands`, `workers` |
//! | journal | it can be followed, and nobody stops | `journal` |
//! | store | the projection misses nothing | `journal` |
//! | loss | where the bus has lost what it had acknowledged, whoever knows of it stops, and writes nothing | `loss` |
//! | live | runs end, slots come back, the next run goes well | `end`, `steps` |
//!
//! Each of these files has what its rules have to know, and says what is wrong; [`Checker`] tells each what happens.

mod answers;
mod calls;
mod commands;
mod end;
mod enrolment;
mod journal;
mod lock_server;
mod loss;
mod runs;
mod secrets;
mod semaphore;
mod steps;
mod turns;
mod violation;
mod workers;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{ClientId, Fact, LockOperation, Operation, Request, Settings, State};
use os_upgrade_protocol::{Action, CommandId, Hint, HostName, Reply};
use os_upgrade_shell::fleetlock::RetryAfter;
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::node::{CallId, Halt};
use os_upgrade_shell::not_done::NotDone;

use self::answers::{Actors, Truth};
use self::calls::Calls;
use self::commands::Commands;
use self::enrolment::Enrolled;
use self::journal::Journal;
use self::lock_server::Asked;
pub(crate) use self::loss::Knows;
use self::loss::Loss;
use self::runs::Runs;
use self::secrets::Secrets;
use self::semaphore::Semaphores;
use self::steps::Steps;
use self::turns::Turns;
pub use self::violation::Violation;
use self::violation::Violations;
pub(crate) use self::workers::Begun;
use self::workers::Workers;
use crate::bus::Ends;
use crate::locks::LockServer;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::time::Micros;

#[derive(Debug)]
pub(crate) struct Checker {
    /// The present, in simulated time.
    pub(crate) now: Micros,
    violations: Violations,
    actors: Actors,
    asked: Asked,
    calls: Calls,
    commands: Commands,
    enrolled: Enrolled,
    journal: Journal,
    loss: Loss,
    runs: Runs,
    secrets: Secrets,
    semaphores: Semaphores,
    steps: Steps,
    turns: Turns,
    workers: Workers,
}

impl Checker {
    pub(crate) fn new(plan: &Plan, names: Vec<HostName>) -> Self {
        Self {
            now: 0,
            violations: Violations::default(),
            actors: Actors::default(),
            asked: Asked::default(),
            calls: Calls::default(),
            commands: Commands::default(),
            enrolled: Enrolled::default(),
            journal: Journal::default(),
            loss: Loss::default(),
            runs: Runs::new(),
            secrets: Secrets::default(),
            steps: Steps::new(plan, &names),
            turns: Turns::default(),
            workers: Workers::new(&plan.hosts, &names),
            semaphores: Semaphores::new(plan.settings.provider, names),
        }
    }

    /// Whether nothing has been seen that must not be.
    pub(crate) fn is_content(&self) -> bool {
        self.violations.is_empty()
    }

    /// What was seen first that must not be.
    pub(crate) fn into_violation(self) -> Option<Violation> {
        self.violations.into_first()
    }

    /// How many runs have begun.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.count()
    }

    /// How many of them have begun by themselves.
    pub(crate) fn scheduled(&self) -> u64 {
        self.runs.scheduled()
    }

    /// How many hosts operators gave up after these had begun.
    pub(crate) fn given_up(&self) -> u64 {
        self.steps.given_up()
    }

    /// How many upgrades the workers that keep the SDK's rules have begun.
    pub(crate) fn upgrades(&self) -> u64 {
        self.workers.upgrades()
    }

    /// How many answers about slots were found right.
    pub(crate) fn slot_answers(&self) -> u64 {
        self.semaphores.answers()
    }

    /// How many clients waited for their slot beside runs.
    pub(crate) fn waits(&self) -> u64 {
        self.turns.waits()
    }

    /// An instance has been given other settings, which may come into force.
    pub(crate) fn settings_may_be(&mut self, settings: &Settings) {
        self.steps.settings_may_be(settings);
    }

    /// Somebody asks.
    pub(crate) fn asked(&mut self, call: CallId, request: &Request) {
        self.calls.asked(self.now, call, request);
        self.semaphores.asked(self.now, call, request);
    }

    /// Somebody is answered.
    pub(crate) fn answered(&mut self, call: CallId, outcome: &Outcome) {
        let Some((request, asked)) = self.calls.answered(self.now, call, outcome) else {
            let text = format!("call {call} is answered twice");
            return self.violations.note(Err(Violation::new("S5", text)));
        };
        self.violations.note(self.semaphores.answered(self.now, call, &request, outcome));
        let answer = match outcome {
            Ok(answered) => &answered.answer,
            Err(NotDone::Unknown { .. }) => return,
            Err(NotDone::Unchanged { .. }) => {
                return self.violations.note(self.actors.told_unchanged(&request.actor));
            }
        };
        let (now, state) = (self.now, self.journal.state());
        let truth = Truth { asked, now, runs: &self.runs, secrets: &self.secrets, state };
        self.violations.note(truth.check(&request, answer));
        if let (Operation::Lock(LockOperation::Lock { group, id }), Ok(_)) = (&request.operation, answer)
            && self.calls.granted(group, id, asked)
        {
            self.violations.note(self.steps.check_slots(group, &self.calls));
        }
    }

    /// The leader answers, and shows readers what is in the journal up to `shown`.
    pub(crate) fn answered_when_shown(&mut self, outcome: &Outcome, shown: u64) {
        self.violations.note(answers::check_shown(outcome, shown));
    }

    /// An orchestrator that stood still goes on.
    pub(crate) fn goes_on(&mut self) {
        self.semaphores.goes_on(self.now);
    }

    /// Workers are told that a run is stopping.
    pub(crate) fn hinted(&mut self, hint: &Hint) {
        self.violations.note(self.runs.hinted(hint));
    }

    /// A message has been appended.
    pub(crate) fn appended(&mut self, sequence: u64, message: &Message) {
        let committed = match self.journal.appended(sequence, message) {
            Ok(Some(committed)) => committed,
            Ok(None) => return,
            Err(violation) => return self.violations.note(Err(violation)),
        };
        let record = &committed.record;
        for fact in &record.facts {
            self.steps.silent_released(fact);
        }
        for fact in &record.facts {
            self.fact(record.at, fact);
        }
    }

    fn fact(&mut self, at: DateTime<Utc>, fact: &Fact) {
        let now = self.now;
        self.violations.note(self.actors.fact(fact));
        self.violations.note(self.runs.fact(now, at, fact));
        self.violations.note(self.steps.fact(fact, self.journal.state(), &self.semaphores));
        self.turns.fact(now, fact);
        self.violations.note(self.enrolled.fact(fact));
        self.violations.note(self.secrets.fact(now, fact));
        self.calls.fact(now, fact);
        self.violations.note(self.semaphores.fact(now, at, fact));
    }

    /// An instance shows a record as committed.
    pub(crate) fn shown(&mut self, committed: &Committed) {
        for fact in &committed.record.facts {
            if let Fact::RunEnded { run, .. } = fact {
                self.runs.end_shown(self.now, run);
            }
            if let Fact::HostWithdrawn { host, .. } = fact {
                self.enrolled.withdrawal_shown(self.now, host);
            }
        }
    }

    /// An instance shows the state of `shown`, and has given its store the records up to `given`.
    pub(crate) fn shown_when_given(&mut self, instance: usize, shown: u64, given: u64) {
        self.violations.note(self.journal.check_shown(instance, shown, given));
    }

    /// An instance logs what it has decided, which is the record at `sequence`.
    pub(crate) fn logged(&mut self, instance: usize, sequence: u64) {
        self.violations.note(self.journal.logged(instance, sequence));
    }

    /// The store of an instance takes in a record.
    pub(crate) fn projected(&mut self, instance: usize, committed: &Committed) {
        self.violations.note(self.journal.projected(instance, committed));
    }

    /// The store of an instance is another one now.
    pub(crate) fn store_replaced(&mut self, instance: usize, reached: Option<u64>) {
        self.journal.store_replaced(instance, reached);
    }

    /// An instance has stopped for good, though nothing was lost.
    pub(crate) fn halted(&mut self, instance: usize, halt: &Halt) {
        let text = format!("i{instance} has stopped: {halt}");
        self.violations.note(Err(Violation::new("journal", text)));
    }

    /// A command leaves an orchestrator whose clock shows `wall`.
    pub(crate) fn command_sent(&mut self, id: &CommandId, not_after: DateTime<Utc>, wall: DateTime<Utc>) {
        self.violations.note(commands::check_sent(id, not_after, wall));
    }

    /// A command that was sent at `sent` stands in the stream.
    pub(crate) fn command_stored(
        &mut self,
        sequence: u64,
        id: &CommandId,
        not_after: DateTime<Utc>,
        sent: Micros,
        locks: &LockServer,
    ) {
        self.violations.note(self.commands.stored(sequence, id, not_after, sent, &self.runs));
        self.violations.note(self.enrolled.check_command(id, sent));
        match id.action {
            Action::Prepare => {}
            Action::Upgrade | Action::Reboot => {
                self.violations.note(self.steps.commanded(sequence, id, locks, &self.calls));
            }
        }
    }

    /// A worker is given a command.
    pub(crate) fn delivered(&mut self, sequence: u64) {
        self.commands.delivered(sequence);
    }

    /// A command has been deleted.
    pub(crate) fn command_deleted(&mut self, sequence: u64) {
        self.violations.note(self.commands.check_deleted(sequence, &self.runs, self.journal.state()));
        if let Some(id) = self.commands.not_given(sequence) {
            self.steps.undone(&id.host, sequence);
        }
    }

    /// A reply stands in the stream.
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
            self.workers.replied(host, &reply, sequence, command);
        }
        self.steps.answered(self.workers.name(host), &reply, in_reply_to, sequence);
    }

    /// A handler is begun on a host.
    pub(crate) fn handler_begun(&mut self, host: usize, begun: &Begun) {
        let command = self.commands.begun(begun.sequence);
        let checked = command.and_then(|command| self.workers.handler_begun(host, begun, command));
        self.violations.note(checked);
    }

    /// A reboot is begun on a host.
    pub(crate) fn reboot_begun(&mut self, host: usize, sequence: u64, wall: DateTime<Utc>) {
        let command = self.commands.begun(sequence);
        let checked = command.and_then(|command| self.workers.check_reboot(host, wall, command));
        self.violations.note(checked);
    }

    /// A host has booted.
    pub(crate) fn booted(&mut self, host: usize) {
        self.workers.booted(host);
    }

    /// A worker's state file is gone: without one no reboot is due, and what was begun is not known to have been.
    pub(crate) fn worker_state_lost(&mut self, host: usize) {
        self.workers.state_lost(host);
        self.commands.begun_forgotten(self.workers.name(host));
    }

    /// The bus has forgotten acknowledgements.
    pub(crate) fn acks_forgotten(&mut self) {
        self.workers.acks_forgotten();
    }

    /// A worker's acknowledgement has reached the bus.
    pub(crate) fn acked(&mut self, host: usize, sequence: u64, wall: DateTime<Utc>) {
        if let Some(command) = self.commands.get(sequence) {
            self.violations.note(self.workers.check_ack(host, wall, command));
        }
    }

    /// A process has decided to ask the lock server.
    pub(crate) fn lock_server_to_be_asked(&mut self, nonce: &str, host: &HostName, unlock: bool) {
        self.violations.note(self.asked.decided(self.now, nonce, host, unlock));
    }

    /// A process is told by the lock server to come back later.
    pub(crate) fn lock_server_wants_peace(&mut self, nonce: &str, retry_after: RetryAfter) {
        self.asked.wants_peace(self.now, nonce, retry_after);
    }

    /// A question to the lock server leaves a process, which holds the lease or not.
    pub(crate) fn lock_server_asked(&mut self, host: &HostName, leads: bool) {
        self.violations.note(lock_server::check_lease(host, leads));
    }

    /// The lock server is asked to take the slot of `host` back.
    pub(crate) fn unlock_asked(&mut self, host: &HostName) {
        self.violations.note(self.steps.check_freed(host));
    }

    /// The longest time for which a host held its slot, since that was last forgotten.
    pub(crate) fn longest_turn(&self) -> Micros {
        self.turns.longest(self.now)
    }

    pub(crate) fn forget_longest_turn(&mut self) {
        self.turns.forget_longest();
    }

    /// A client that had been refused was granted a slot after so long, and should have been within that.
    pub(crate) fn waited(&mut self, client: &ClientId, waited: Micros, within: Micros) {
        self.violations.note(self.turns.waited(client, waited, within));
    }

    /// The bus has lost something.
    pub(crate) fn data_lost(&mut self, knows: Vec<Knows>) {
        self.loss.data_lost(knows);
        self.violations.data_lost();
    }

    /// Whether it has.
    pub(crate) fn has_lost_data(&self) -> bool {
        self.loss.has_lost_data()
    }

    /// A process has been told that the bus is back.
    pub(crate) fn reconnected(&mut self, instance: usize) {
        self.loss.reconnected(self.now, instance);
    }

    /// A process writes to the journal, or sends a command, which left it at `sent`; the streams end at `ends` then.
    pub(crate) fn wrote(&mut self, from: Peer, process: u32, sent: Micros, ends: Ends) {
        self.violations.note(self.loss.check_write(from, process, sent, ends));
    }

    /// Whether each instance has stopped, after some time.
    pub(crate) fn have_stopped(&mut self, stopped: &[bool], ends: Ends) {
        self.violations.note(self.loss.check_stopped(stopped, ends));
    }

    /// Something that must come never came.
    pub(crate) fn never(&mut self, what: &str, state: &str) {
        self.violations.note(Err(Violation::new("live", format!("never: {what}\n{state}"))));
    }

    /// The last run has gone well.
    pub(crate) fn at_the_end(&mut self, leader: &State, locks: &LockServer) {
        self.violations.note(end::check(leader, self.journal.state(), locks, &self.steps));
    }
}
