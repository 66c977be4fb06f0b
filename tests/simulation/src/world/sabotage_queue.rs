//! Planted bugs of the reboot queue. See [`crate::bug`].

use bytes::Bytes;
use os_upgrade_kernel::fact::{NodeFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::{AttemptStage, Entry, EntryEvent, EntryStatus};
use os_upgrade_kernel::slot::ReleaseCause;
use os_upgrade_kernel::{CommandJob, CommandOrder, Fact, HostEvent, Job, NodeStep, Order, State};
use os_upgrade_protocol::{Action, CommandId, HostName};
use os_upgrade_shell::instance::Event;
use os_upgrade_shell::jobs::{JobId, StartedJob};
use os_upgrade_shell::journal::codec::Message;

use super::World;
use super::sabotage::{each, with_facts};
use crate::bug::Bug;
use crate::host::boot_id;
use crate::request::RequestKind;

impl World {
    /// The message with the record that is appended instead.
    pub(super) fn sabotage_queue_record(&self, index: usize, message: Message) -> Message {
        let Some(logic) = &self.instances[index].logic else { return message };
        let instead: fn(&State, Fact) -> Vec<Fact> = match self.bug {
            Some(Bug::CancelEndsReboot) => cancel_at_once,
            Some(Bug::DisableUndoes) => undo_when_disabled,
            Some(Bug::DisableUncordons) => uncordon_when_disabled,
            Some(Bug::QueueUnlimited) => start_another,
            Some(Bug::QueueBesideRun) => start_beside_run,
            Some(Bug::AnyDoneEndsReboot) => end_by_any_done,
            Some(Bug::UnknownRepeated) => repeat_at_once,
            Some(Bug::CancelUndoesAttempt) => undo_at_once,
            Some(Bug::FailedCountsAsBooted) => end_by_failure,
            _ => return message,
        };
        let state = logic.state();
        with_facts(message, |facts| facts.into_iter().flat_map(|fact| instead(state, fact)).collect())
    }

    /// Leaves out facts of the queue when the journal is read, or adds some.
    pub(super) fn sabotage_queue_journal(&self, event: Event) -> Event {
        let instead: fn(Fact) -> Vec<Fact> = match self.bug {
            Some(Bug::RebootCommandLost) => as_sent,
            Some(Bug::DisabledForgotten) => without_disabling,
            _ => return event,
        };
        let Event::Journal { sequence, stored_at, message: Ok(message) } = event else { return event };
        Event::Journal { sequence, stored_at, message: Ok(with_facts(message, |facts| each(facts, instead))) }
    }

    /// A leader runs the command of an attempt that an earlier leader began.
    fn run_attempts_again(&mut self, index: usize) {
        let Some(logic) = self.instances[index].logic.as_ref().filter(|logic| logic.is_leading()) else {
            return;
        };
        let unknown = logic.state().reboot_queue.under_way().filter_map(|(number, entry)| {
            let attempt = entry.attempt.as_ref().filter(|attempt| attempt.stage == AttemptStage::Unknown)?;
            let (order, host) = (CommandOrder::Reboot { attempt: attempt.number }, entry.host.clone());
            Some(CommandJob { order, host, node: attempt.node.clone(), index: number })
        });
        for job in unknown.collect::<Vec<_>>() {
            let what = RequestKind::Job(StartedJob { id: JobId::MAX, job: Job::RebootCommand(job) });
            self.send_request(index, what, Event::Tick);
        }
    }

    /// Sends a second `reboot` to a host that has not answered the first, for the boot that it is in by now.
    pub(super) fn sabotage_queue_tick(&mut self, index: usize) {
        if self.bug == Some(Bug::AttemptRunAgain) {
            return self.run_attempts_again(index);
        }
        if self.bug != Some(Bug::RebootTriedAgain) {
            return;
        }
        let Some(logic) = self.instances[index].logic.as_ref().filter(|logic| logic.is_leading()) else {
            return;
        };
        let state = logic.state();
        let Some(fence) = state.fence.as_ref().map(|fence| fence.sequence) else { return };
        let unanswered = state.reboot_queue.under_way().filter_map(|(number, entry)| {
            let boot = boot_id(self.bus.announced(&entry.host));
            let has_left = entry.boot_id.as_ref().is_some_and(|leave| *leave != boot);
            entry.unanswered().filter(|_| has_left)?;
            let (run, host) = (entry.owner(number).id(), entry.host.clone());
            let id = CommandId { run, host, action: Action::Reboot, attempt: 2 };
            Some(Order { id, not_after: None, boot_id: Some(boot) })
        });
        for order in unanswered.collect::<Vec<_>>() {
            self.send_request(index, RequestKind::Command { epoch: u64::MAX, fence, order }, Event::Tick);
        }
    }

    /// The payload of a `reboot` as a worker takes it that does not compare the boot to leave with its own.
    pub(super) fn sabotage_boot_id(&self, index: usize, payload: &Bytes) -> Option<Vec<u8>> {
        let command = os_upgrade_protocol::Command::parse(payload).ok()?;
        let os_upgrade_protocol::Command::Reboot { host, not_after, boot_id: Some(_) } = command else {
            return None;
        };
        let own = Some(self.hosts[index].boot_id());
        (self.bug == Some(Bug::BootIdIgnored))
            .then(|| os_upgrade_protocol::Command::Reboot { host, not_after, boot_id: own }.to_payload())
    }
}

fn released(host: &HostName) -> Fact {
    Fact::Slot(SlotFact::Released { host: host.clone(), why: ReleaseCause::NotNeeded })
}

/// An entry whose host reboots ends as soon as it is cancelled, as CKE's did.
fn cancel_at_once(state: &State, fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot { index, host, event: EntryEvent::Cancelled { actor, .. } }) = &fact
    else {
        return vec![fact];
    };
    let is_rebooting = |entry: &Entry| entry.status == EntryStatus::Rebooting;
    if !state.reboot_queue.entries.get(index).is_some_and(is_rebooting) {
        return vec![fact];
    }
    let event = EntryEvent::GivenUp { actor: actor.clone(), reason: "it is cancelled".to_owned() };
    vec![Fact::of_entry(*index, host, event), released(host)]
}

fn undo_at_once(state: &State, fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot { index, host, event: EntryEvent::Cancelled { .. } }) = &fact else {
        return vec![fact];
    };
    let was_run = [AttemptStage::Succeeded, AttemptStage::Unknown, AttemptStage::Failed];
    let entry = state.reboot_queue.entries.get(index);
    let undone = entry
        .is_some_and(|entry| was_run.iter().any(|stage| entry.is_at(*stage)))
        .then(|| Fact::of_entry(*index, host, EntryEvent::NotRebooted));
    [fact].into_iter().chain(undone).collect()
}

/// What is under way is undone when the queue is disabled, as CKE did.
fn undo_when_disabled(state: &State, fact: Fact) -> Vec<Fact> {
    when_disabled(state, fact, |host| Some(released(host)))
}

fn uncordon_when_disabled(state: &State, fact: Fact) -> Vec<Fact> {
    when_disabled(state, fact, |host| {
        let step = NodeStep::UncordonDue { release: None, reason: None };
        state.nodes.contains_key(host).then(|| Fact::Node(NodeFact::Step { host: host.clone(), step }))
    })
}

/// Adds a fact about each host of the queue that is under way.
fn when_disabled(state: &State, fact: Fact, undo: impl Fn(&HostName) -> Option<Fact>) -> Vec<Fact> {
    let is_disabled = matches!(fact, Fact::Queue(QueueFact::Switched { enabled: false, .. }));
    let under_way = state.reboot_queue.under_way().filter(|_| is_disabled);
    let undone: Vec<Fact> = under_way.filter_map(|(_, entry)| undo(&entry.host)).collect();
    [fact].into_iter().chain(undone).collect()
}

/// The first entry that waits, of a host whose slot nobody holds, starts too.
fn start_first(state: &State, with: &Fact, is_it: impl Fn(&HostName) -> bool) -> Option<Fact> {
    let Fact::Queue(QueueFact::Reboot { event: started @ EntryEvent::Started { .. }, .. }) = with else {
        return None;
    };
    let waits = |(_, entry): &(&u64, &Entry)| {
        let host = &entry.host;
        entry.status == EntryStatus::Queued && !state.slots.contains_key(host) && is_it(host)
    };
    let (index, entry) = state.reboot_queue.entries.iter().find(waits)?;
    Some(Fact::of_entry(*index, &entry.host, started.clone()))
}

fn start_another(state: &State, fact: Fact) -> Vec<Fact> {
    let started =
        if let Fact::Queue(QueueFact::Reboot { host, .. }) = &fact { Some(host.clone()) } else { None };
    let another = start_first(state, &fact, |host| Some(host) != started.as_ref());
    [fact].into_iter().chain(another).collect()
}

/// An entry starts on a host as soon as a run has its slot.
fn start_beside_run(state: &State, fact: Fact) -> Vec<Fact> {
    let Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { group, provider, drain }, .. }) =
        &fact
    else {
        return vec![fact];
    };
    let queued = state.reboot_queue.queued(host);
    let event = EntryEvent::Started { group: group.clone(), provider: *provider, drain: *drain };
    let started = queued.map(|index| Fact::of_entry(index, host, event));
    [fact].into_iter().chain(started).collect()
}

/// The `done` of another command ends the entry that is under way.
fn end_by_any_done(state: &State, fact: Fact) -> Vec<Fact> {
    let Fact::Run(RunFact::Host { host, event: HostEvent::Prepared, .. }) = &fact else { return vec![fact] };
    let entry = state.entry_under_way(host).filter(|(_, entry)| entry.status == EntryStatus::Rebooting);
    let ended = entry.map(|(index, _)| [Fact::of_entry(index, host, EntryEvent::Rebooted), released(host)]);
    [fact.clone()].into_iter().chain(ended.into_iter().flatten()).collect()
}

/// An attempt with an unknown outcome is due again at once.
fn repeat_at_once(state: &State, fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot { index, host, event: EntryEvent::AttemptUnknown { .. } }) = &fact
    else {
        return vec![fact];
    };
    vec![fact.clone(), due_again(state, *index, host)]
}

fn due_again(state: &State, index: u64, host: &HostName) -> Fact {
    let boot_id = state.reboot_queue.entries.get(&index).and_then(|entry| entry.boot_id.clone());
    let event = EntryEvent::AttemptDue { node: host.to_string(), boot_id };
    Fact::of_entry(index, host, event)
}

/// An attempt that has failed, or whose outcome is unknown, ends its entry.
fn end_by_failure(_: &State, fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot {
        index,
        host,
        event: EntryEvent::AttemptUnknown { .. } | EntryEvent::Failed { .. },
    }) = &fact
    else {
        return vec![fact];
    };
    let rebooted = Fact::of_entry(*index, host, EntryEvent::Rebooted);
    vec![rebooted, released(host)]
}

/// A host that is to be told to reboot counts as told.
fn as_sent(fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot { index, host, event: EntryEvent::RebootBegan { .. } }) = &fact else {
        return vec![fact];
    };
    let sent = EntryEvent::CommandSent { attempt: 1, sequence: 1 };
    let sent = Fact::of_entry(*index, host, sent);
    vec![fact, sent]
}

fn without_disabling(fact: Fact) -> Vec<Fact> {
    if let Fact::Queue(QueueFact::Switched { enabled: false, .. }) = fact { Vec::new() } else { vec![fact] }
}
