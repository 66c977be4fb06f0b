//! Planted bugs, at the edge of the code that ships. See [`crate::bug`].

use bytes::Bytes;
use chrono::{DateTime, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{
    ConfigFact, EnrolmentFact, LockFact, PauseFact, RunFact, SecretFact, SlotFact,
};
use os_upgrade_kernel::reason::Denial;
use os_upgrade_kernel::slot::{Denied, Full, HostDenied, ReleaseCause, Waiter};
use os_upgrade_kernel::{
    Accepted, Batch, ClientId, ControlMessage, Effect, Fact, HostEvent, HostStatus, Input, JobDone,
    LockOperation, LockOutcome, LockProvider, MissedReason, MissedRun, Operation, Reason, Record, Request,
    Run, RunHost, RunResult, State, Trigger, effects,
};
use os_upgrade_protocol::{Action, Command, HostName};
use os_upgrade_shell::control_stream;
use os_upgrade_shell::forward::{Answered, Forwarded, Outcome, decode};
use os_upgrade_shell::instance::{CallId, Event, Instance as Logic};
use os_upgrade_shell::jobs::{JobId, StartedJob};
use os_upgrade_shell::journal::codec::{Kind, Message};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_worker_rules::state_file::RebootDue;
use os_upgrade_worker_rules::{BootId, Loaded, StateFile};

use super::World;
use crate::agenda::{Item, Process};
use crate::bug::Bug;
use crate::bus::Bus;
use crate::checker::needed;
use crate::request::RequestKind;
use crate::time::SECOND;

impl World {
    /// The event that the instance gets instead of `event`, if any.
    pub(super) fn sabotage_event(&mut self, index: usize, mut event: Event) -> Option<Event> {
        if let (Some(Bug::RetryAfterIgnored), Event::JobDone { report, .. }) = (self.bug, &mut event) {
            report.retry_after = None;
        }
        if let (Some(Bug::LateRequestForgotten), Event::JobDone { report, .. }) = (self.bug, &mut event)
            && let JobDone::LockServer(_, LockOutcome::Unreachable { .. }) = report.done
        {
            report.done = JobDone::NotBegun(report.done.job());
        }
        let leads = self.instances[index].logic.as_ref().is_some_and(Logic::is_leading);
        let (Some(bug), true, Event::Call { call, request, forwarded_at: None }) = (self.bug, leads, &event)
        else {
            return Some(event);
        };
        let wall = self.clock_of(index).wall;
        let logic = self.instances[index].logic.as_ref()?;
        if bug == Bug::UnlockFreesAnother {
            let request = unlock_of_another(logic.state(), request);
            return Some(Event::Call { call: *call, request, forwarded_at: None });
        }
        let mut batch = Batch::new(logic.state(), wall);
        let answer = batch.decide(logic.inventory().view(), &Input::Request(request.clone()));
        let is_new_lock =
            matches!(request.operation, Operation::Lock(LockOperation::Lock { .. })) && !batch.is_empty();
        let instead = match (bug, answer) {
            (Bug::NoBarrier, Some(answer)) if batch.is_empty() => answer,
            (Bug::GrantBeforeCommit, Some(Ok(granted))) if is_new_lock => Ok(granted),
            (Bug::RefusedThoughFree, Some(Ok(_))) if is_new_lock && self.rng.u32(..4) == 0 => {
                Err(Denied::Full(Full { slots: 1, held: 0, holders: Vec::new() }).into())
            }
            _ => return Some(event),
        };
        let call = *call;
        self.answered(index, call, &Ok(Answered { answer: instead, sequence: 0 }));
        None
    }

    /// The outcome that a caller gets instead of `outcome`, if another.
    pub(super) fn sabotage_outcome(&mut self, outcome: &Outcome) -> Option<Outcome> {
        let is_done = matches!(outcome, Ok(Answered { answer: Ok(Accepted::Done), .. }));
        let sabotaged = self.bug == Some(Bug::DoneCalledUnchanged) && is_done && self.rng.u32(..20) == 0;
        sabotaged.then(|| Err(NotDone::unchanged("a bug")))
    }

    /// A request that a follower has passed on arrives once more.
    pub(super) fn carry_out_again(&mut self, instance: usize, call: CallId) {
        let Some(request) = self.operators.forwarded.get(&call).cloned() else { return };
        let RequestKind::Forward { payload, .. } = &request.what else { return };
        let Ok(Forwarded { lease, request: forwarded }) = decode(payload) else { return };
        let id = self.operators.next_call();
        self.operators.forwarded.insert(id, request);
        let boot = self.instances[instance].boot;
        let event = Event::Call { call: id, request: forwarded, forwarded_at: Some(lease) };
        let what = Process::Event(event);
        self.after(5 * SECOND, Item::Process { instance, boot, what });
    }

    /// The message with the record that is appended instead.
    pub(super) fn sabotage_record(&self, index: usize, message: Message) -> Message {
        let instead: fn(Fact) -> Vec<Fact> = match self.bug {
            Some(Bug::GivenUpUnheard) => {
                let logic = self.instances[index].logic.as_ref();
                let given_up =
                    logic.map(|logic| give_up_unheard(logic.state(), &self.bus)).unwrap_or_default();
                // The record's own facts would follow from the answers.
                return if given_up.is_empty() { message } else { with_facts(message, |_| given_up) };
            }
            Some(Bug::LeftForTooLong) => {
                let Some(logic) = &self.instances[index].logic else { return message };
                let (state, now) = (logic.state(), self.clock_of(index).wall);
                return with_facts(message, |facts| {
                    facts.into_iter().map(|fact| leave_for_too_long(state, now, fact)).collect()
                });
            }
            Some(Bug::TurnsByName) => {
                let Some(logic) = &self.instances[index].logic else { return message };
                let state = logic.state();
                return with_facts(message, |facts| {
                    facts.into_iter().map(|fact| grant_by_name(state, fact)).collect()
                });
            }
            Some(Bug::PreparedByName) => {
                let Some(logic) = &self.instances[index].logic else { return message };
                let state = logic.state();
                return with_facts(message, |facts| {
                    facts.into_iter().map(|fact| prepare_by_name(state, fact)).collect()
                });
            }
            Some(Bug::MissedThoughStarted) => {
                let Some(logic) = &self.instances[index].logic else { return message };
                let missed = miss_anyway(logic.state(), self.clock_of(index).wall);
                // A record without facts is shown to nobody.
                return with_facts(message, |facts| {
                    missed.into_iter().filter(|_| !facts.is_empty()).chain(facts.clone()).collect()
                });
            }
            Some(Bug::GrantBeyondSlots) => grant_anyway,
            Some(Bug::UnlockEndsHold) => release_hold_too,
            Some(Bug::TakenBackAtWork) => release_at_work,
            Some(Bug::SecretNotKept) => without_secret,
            Some(Bug::UnapprovedEnlisted) => enlist_anyway,
            Some(Bug::MissedUnrecorded) => without_missed,
            Some(Bug::TargetLeftOut) => without_target,
            Some(Bug::ResultGlossed) => glossed,
            _ => return message,
        };
        with_facts(message, |facts| each(facts, instead))
    }

    /// Sends the commands, or begins the jobs, that follow from a record at once, while it is being appended.
    pub(super) fn sabotage_append(&mut self, index: usize, message: &Message) {
        let hurries = matches!(self.bug, Some(Bug::SentBeforeCommit | Bug::JobBeforeCommit));
        if !hurries {
            return;
        }
        let Some(logic) = &self.instances[index].logic else { return };
        let Some(record) = record_in(message) else { return };
        let mut state = logic.state().clone();
        let Some(fence) = state.fence.as_ref().map(|fence| fence.sequence) else { return };
        let earlier: Vec<Effect> = effects(&state).collect();
        if state.apply_record(&record).is_err() {
            return;
        }
        for effect in effects(&state).filter(|effect| !earlier.contains(effect)).collect::<Vec<_>>() {
            let what = match (self.bug, effect) {
                (Some(Bug::SentBeforeCommit), Effect::Send(order)) => {
                    RequestKind::Command { epoch: u64::MAX, fence, order }
                }
                (Some(Bug::JobBeforeCommit), Effect::Job(job)) => {
                    RequestKind::Job(StartedJob { id: JobId::MAX, job })
                }
                _ => continue,
            };
            self.send_request(index, what, Event::Tick);
        }
    }

    /// Leaves out facts when the journal is read.
    pub(super) fn sabotage_journal(&self, index: usize, event: Event) -> Event {
        let Event::Journal { sequence, mut stored_at, message: Ok(mut message) } = event else {
            return event;
        };
        if self.bug == Some(Bug::RecordTimesUnread) {
            stored_at = DateTime::UNIX_EPOCH;
        }
        if self.bug == Some(Bug::UnknownFactsDropped)
            && let Some(kind) = self.instances[index].unknown_kind
        {
            let is_known = |fact: &Fact| fact.name() != kind;
            message = with_facts(message, |facts| facts.into_iter().filter(is_known).collect());
        }
        let instead: fn(Fact) -> Vec<Fact> = match self.bug {
            Some(Bug::SlotForgotten) => without_slot,
            Some(Bug::LockForgotten) => without_lock,
            Some(Bug::WaitersForgotten) => without_waiter,
            Some(Bug::WithdrawalForgotten) => without_withdrawal,
            Some(Bug::RemovalForgotten) => without_removal,
            Some(Bug::PauseForgotten) => without_pause,
            Some(Bug::DeferralForgotten) => without_deferral,
            Some(Bug::DeferralEndsEarly) => deferral_over,
            Some(Bug::RetriesUnbounded) => retried_for_ever,
            Some(Bug::PreparingUnbounded) => prepared_at_once,
            Some(Bug::TimeoutsShortened) => timed_out_soon,
            Some(Bug::FailedUncounted) => failed_uncounted,
            Some(Bug::ExpectedForgotten) => without_expected,
            _ => return Event::Journal { sequence, stored_at, message: Ok(message) },
        };
        Event::Journal { sequence, stored_at, message: Ok(with_facts(message, |facts| each(facts, instead))) }
    }

    /// The payload of a command as its worker receives it.
    pub(super) fn sabotage_payload(&self, index: usize, payload: &Bytes) -> Vec<u8> {
        if let Some(payload) = self.sabotage_boot_id(index, payload) {
            return payload;
        }
        if self.bug == Some(Bug::NotAfterUncheckedByWorker)
            && let Ok(command) = Command::parse(payload)
        {
            let without = match command {
                Command::Prepare { hosts, .. } => Command::Prepare { hosts, not_after: None },
                Command::Upgrade { host, .. } => Command::Upgrade { host, not_after: None },
                Command::Reboot { host, boot_id, .. } => Command::Reboot { host, not_after: None, boot_id },
            };
            return without.to_payload();
        }
        payload.to_vec()
    }

    /// The state file that a worker finds at its start.
    pub(super) fn sabotage_loaded(&self, index: usize, loaded: Loaded) -> Loaded {
        if self.bug != Some(Bug::RebootWithoutStateFile) || loaded != Loaded::Nothing {
            return loaded;
        }
        let host = &self.hosts[index];
        let boot_id = BootId(format!("boot-{}", host.boot));
        let mut file = StateFile::new(host.name.clone());
        file.reboot_due = Some(RebootDue { sequence: 0, run: None, not_after: None, boot_id });
        Loaded::File(Box::new(file))
    }
}

/// The record in a message, unless it is deflated.
pub(super) fn record_in(message: &Message) -> Option<Record> {
    if message.kind != Kind::Record || message.deflated {
        return None;
    }
    serde_json::from_slice(&message.payload).ok()
}

/// The message with other facts, if it is a plain record.
pub(super) fn with_facts(mut message: Message, instead: impl FnOnce(Vec<Fact>) -> Vec<Fact>) -> Message {
    if let Some(mut record) = record_in(&message) {
        record.facts = instead(record.facts);
        message.payload = Bytes::from(serde_json::to_vec(&record).expect("it was JSON"));
    }
    message
}

pub(super) fn each(facts: Vec<Fact>, instead: fn(Fact) -> Vec<Fact>) -> Vec<Fact> {
    facts.into_iter().flat_map(instead).collect()
}

/// An unlock in the name of another client that holds a slot, if the request is an unlock.
fn unlock_of_another(state: &State, request: &Request) -> Request {
    if let Operation::Lock(LockOperation::Unlock { group, id }) = &request.operation
        && let Some(semaphore) = state.semaphores.get(group)
    {
        let others = semaphore.holders.iter().filter(|(holder, it)| it.client && *holder != id.as_str());
        if let Some(other) = others.map(|(other, _)| ClientId::new(other).expect("it was one before")).next()
        {
            let unlock = LockOperation::Unlock { group: group.clone(), id: other };
            return Request::new(&request.actor, unlock).into();
        }
    }
    request.clone()
}

/// The slot that a fact grants is released at once, and never again.
fn without_slot(fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { .. }, .. }) = &fact {
        let released = Fact::Slot(SlotFact::Released { host: host.clone(), why: ReleaseCause::NotNeeded });
        return vec![fact, released];
    }
    let gives_back = matches!(fact, Fact::Slot(SlotFact::Released { .. } | SlotFact::ReleaseDue { .. }));
    if gives_back { Vec::new() } else { vec![fact] }
}

fn without_lock(fact: Fact) -> Vec<Fact> {
    if let Fact::Lock(LockFact::Granted { .. }) = fact { Vec::new() } else { vec![fact] }
}

fn without_waiter(fact: Fact) -> Vec<Fact> {
    if let Fact::Lock(LockFact::Awaited { .. }) = fact { Vec::new() } else { vec![fact] }
}

fn without_withdrawal(fact: Fact) -> Vec<Fact> {
    if let Fact::Enrolment(EnrolmentFact::HostWithdrawn { .. }) = fact { Vec::new() } else { vec![fact] }
}

fn without_pause(fact: Fact) -> Vec<Fact> {
    if let Fact::Pause(PauseFact::Paused { .. }) = fact { Vec::new() } else { vec![fact] }
}

fn without_deferral(fact: Fact) -> Vec<Fact> {
    if let Fact::Enrolment(EnrolmentFact::HostDeferred { .. }) = fact { Vec::new() } else { vec![fact] }
}

fn without_expected(fact: Fact) -> Vec<Fact> {
    with_rollout(fact, |rollout| rollout.expected_duration = None)
}

fn retried_for_ever(fact: Fact) -> Vec<Fact> {
    with_rollout(fact, |rollout| {
        if let Some(retries) = &mut rollout.retries {
            retries.prepare = u32::MAX;
        }
    })
}

fn prepared_at_once(fact: Fact) -> Vec<Fact> {
    with_rollout(fact, |rollout| rollout.max_preparing = rollout.max_preparing.map(|_| u32::MAX))
}

fn timed_out_soon(fact: Fact) -> Vec<Fact> {
    with_rollout(fact, |rollout| {
        let soon = |_| Duration::from_secs(1);
        rollout.prepare_timeout = rollout.prepare_timeout.map(soon);
        rollout.upgrade_timeout = rollout.upgrade_timeout.map(soon);
    })
}

/// The fact, with another rollout if it is the start of a run.
fn with_rollout(mut fact: Fact, change: impl FnOnce(&mut Rollout)) -> Vec<Fact> {
    if let Fact::Run(RunFact::Started { rollout, .. }) = &mut fact {
        change(rollout);
    }
    vec![fact]
}

fn deferral_over(mut fact: Fact) -> Vec<Fact> {
    if let Fact::Enrolment(EnrolmentFact::HostDeferred { until: Some(until), .. }) = &mut fact {
        *until = DateTime::UNIX_EPOCH;
    }
    vec![fact]
}

fn failed_uncounted(mut fact: Fact) -> Vec<Fact> {
    if let Fact::Config(ConfigFact::SettingsAdopted { settings }) = &mut fact {
        settings.failed = settings.groups.keys().map(|group| (group.clone(), u32::MAX)).collect();
    }
    vec![fact]
}

fn without_target(mut fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Started { trigger, hosts, .. }) = &mut fact
        && trigger.is_targeted()
    {
        hosts.pop();
    }
    vec![fact]
}

fn glossed(mut fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Ended { result: result @ RunResult::TimedOut, .. }) = &mut fact {
        *result = RunResult::Completed;
    }
    vec![fact]
}

fn without_removal(fact: Fact) -> Vec<Fact> {
    if let Fact::Enrolment(EnrolmentFact::HostRemoved { .. }) = fact { Vec::new() } else { vec![fact] }
}

/// The slot goes to the first host of its group that is prepared, by name.
fn grant_by_name(state: &State, fact: Fact) -> Fact {
    let Fact::Run(RunFact::Host { run, event: event @ HostEvent::SlotGranted { group, .. }, .. }) = &fact
    else {
        return fact;
    };
    let hosts = state.run.iter().flat_map(Run::hosts);
    let mut ready = hosts.filter(|(host, in_run)| {
        in_run.status == HostStatus::Prepared && in_run.group == *group && !state.slots.contains_key(*host)
    });
    match ready.next() {
        Some((first, _)) => Fact::of_host(run, first, event.clone()),
        None => fact,
    }
}

/// The last host of a run by name that has not been told is prepared next.
fn prepare_by_name(state: &State, fact: Fact) -> Fact {
    let Fact::Run(RunFact::Host { run, event: HostEvent::PrepareBegan, .. }) = &fact else { return fact };
    let mut hosts = state.run.iter().filter(|active| active.id == *run).flat_map(Run::hosts);
    match hosts.rfind(|(_, host)| host.is_untold()) {
        Some((last, _)) => Fact::of_host(run, last, HostEvent::PrepareBegan),
        None => fact,
    }
}

/// While a leader's fence has not been read: gives up every host that was sent `reboot` and whose answer precedes
/// it and has not been read either.
fn give_up_unheard(state: &State, bus: &Bus) -> Vec<Fact> {
    let Some(fence) = state.fence.as_ref().filter(|fence| !fence.passed) else { return Vec::new() };
    let Some(run) = &state.run else { return Vec::new() };
    let mut unheard = Vec::new();
    let mut next = state.control + 1;
    while let Some(raw) = bus.control_from(next).filter(|raw| raw.sequence < fence.sequence) {
        next = raw.sequence + 1;
        if let ControlMessage::Reply { host, .. } = control_stream::read(&raw) {
            unheard.push(host);
        }
    }
    let reboots = |host: &&HostName| {
        let command = run.host(host).and_then(RunHost::unanswered);
        command.is_some_and(|command| command.action == Action::Reboot) && unheard.contains(host)
    };
    let reason = Reason::BootTimeout { after: run.rollout.boot_timeout };
    let given_up = |host| Fact::of_host(&run.id, host, HostEvent::TimedOut { reason: reason.clone() });
    run.under_way().iter().filter(reboots).map(given_up).collect()
}

fn grant_anyway(fact: Fact) -> Vec<Fact> {
    if let Fact::Lock(LockFact::Awaited { group, id, actor }) = fact {
        return vec![Fact::Lock(LockFact::Granted { group, id, actor })];
    }
    vec![fact]
}

/// A client that was refused before keeps the slot from the host, though it is not expected any more.
fn leave_for_too_long(state: &State, now: DateTime<Utc>, fact: Fact) -> Fact {
    let Fact::Run(RunFact::Host {
        run,
        host,
        event: HostEvent::SlotGranted { group, provider: LockProvider::Embedded, .. },
    }) = &fact
    else {
        return fact;
    };
    let waiting = state.run.as_ref().and_then(|run| run.host(host)).map(|in_run| in_run.since);
    let first = state.semaphores.get(group).and_then(|semaphore| {
        let mut before = semaphore.waiters.remembered(now);
        let is_before =
            |waiter: &Waiter| waiter.turn <= waiting.unwrap_or(now) && waiter.expected_until() <= now;
        before.find(|(id, waiter)| is_before(waiter) && id.as_str() != host.as_str())
    });
    let Some((id, waiter)) = first else { return fact };
    let left = HostDenied::LeftToEarlier { id: id.clone(), since: waiter.since };
    let reason = Reason::SlotDenied { group: group.clone(), denial: Denial::Embedded(left) };
    Fact::of_host(run, host, HostEvent::Waiting { reason })
}

fn enlist_anyway(mut fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Started { hosts, .. }) = &mut fact {
        for entry in hosts {
            let is_left_out = |reason: &mut Reason| {
                matches!(reason, Reason::AwaitsApproval { .. } | Reason::HostWithdrawn { .. })
            };
            entry.skipped.take_if(is_left_out);
        }
    }
    vec![fact]
}

fn without_secret(fact: Fact) -> Vec<Fact> {
    if let Fact::Secret(SecretFact::Stored { .. }) = fact { Vec::new() } else { vec![fact] }
}

fn without_missed(fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Missed(_)) = fact { Vec::new() } else { vec![fact] }
}

/// The run of an occurrence that is over counts as missed.
fn miss_anyway(state: &State, now: DateTime<Utc>) -> Option<Fact> {
    let config = state.config.as_deref()?;
    state.run.iter().chain(&state.last_run).find_map(|run| match run.trigger {
        Trigger::Window { start, end } if end < now => {
            let (latest, reason) = (end - needed(config), MissedReason::NoLeader);
            Some(Fact::Run(RunFact::Missed(MissedRun { start, latest, end, reason, unrecorded: 0 })))
        }
        Trigger::Window { .. } | Trigger::Operator { .. } => None,
    })
}

fn release_hold_too(fact: Fact) -> Vec<Fact> {
    if let Fact::Lock(LockFact::Released { group, id, .. }) = fact {
        let (actor, reason) = ("nobody".to_owned(), Some("it is unlocked".to_owned()));
        return vec![Fact::Lock(LockFact::HolderReleased { group, id, actor, reason })];
    }
    vec![fact]
}

fn release_at_work(fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Host {
        host,
        event: HostEvent::CommandSent { action: Action::Upgrade, .. },
        ..
    }) = &fact
    {
        let released = Fact::Slot(SlotFact::Released { host: host.clone(), why: ReleaseCause::Operator });
        return vec![fact, released];
    }
    vec![fact]
}
