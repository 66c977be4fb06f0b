//! Messages of the control stream: commands, workers' replies and fences.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::limits::bounded;
use os_upgrade_protocol::{Action, CommandId, HostName, Outcome, Reply, RunId};

use super::sent_command::{InReplyTo, SentCommand};
use crate::fact::{ControlFact, Fact, IgnoreCause, RunFact};
use crate::owner::Owner;
use crate::reason::Reason;
use crate::reboot_queue::{Entry, EntryEvent};
use crate::run::{HostEvent, HostStatus, Issued, Run, RunHost};
use crate::slot::{ReleaseCause, Slot};
use crate::state::State;
use crate::step::StepEvent;

/// A message of the control stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlMessage {
    /// A command, from any sender.
    Command {
        /// The host in its subject.
        host: HostName,
        /// Its id; absent unless it is one in our format.
        id: Option<CommandId>,
    },
    /// A worker's reply.
    Reply {
        /// The host in its subject.
        host: HostName,
        /// Its content, or the parse error.
        reply: Result<Reply, String>,
        /// The command that it answers, as far as it names one.
        in_reply_to: InReplyTo,
    },
    /// A fence, of this leader or another.
    Leader,
    /// A message that is not part of the protocol.
    Unknown { subject: String },
}

/// The most bytes of the error of a reply that cannot be read: it may repeat what the host wrote.
const DETAIL_BYTES_MAX: usize = 256;
/// What is recorded in place of the error in a reply that is ignored.
const ERROR: &str = "error";

pub(crate) fn decide(
    state: &State,
    sequence: u64,
    message: &ControlMessage,
    now: DateTime<Utc>,
) -> Vec<Fact> {
    let mut facts = fence_passed(state, sequence);
    let of_message = message_facts(state, sequence, message, now);
    let is_left_out = |fact: &Fact| {
        let Fact::Control(ControlFact::Ignored { host: Some(host), why, .. }) = fact else { return false };
        why.is_of_reply() && !state.ignored_replies.is_due(host, now)
    };
    facts.extend(of_message.into_iter().filter(|fact| !is_left_out(fact)));
    facts
}

fn message_facts(state: &State, sequence: u64, message: &ControlMessage, now: DateTime<Utc>) -> Vec<Fact> {
    match message {
        ControlMessage::Command { host, id } => command_seen(state, sequence, host, id.as_ref()),
        ControlMessage::Reply { host, reply: Ok(reply), in_reply_to } => {
            let reply = SeenReply { host, reply, in_reply_to, sequence, now };
            reply_seen(state, &reply)
        }
        ControlMessage::Reply { host, reply: Err(detail), .. } => {
            vec![ignored(
                sequence,
                Some(host),
                None,
                IgnoreCause::Malformed { detail: bounded(detail, DETAIL_BYTES_MAX) },
            )]
        }
        // Only the position of a fence matters, whichever leader stored it.
        ControlMessage::Leader => Vec::new(),
        ControlMessage::Unknown { subject } => {
            vec![ignored(sequence, None, None, IgnoreCause::UnknownSubject { subject: subject.clone() })]
        }
    }
}

/// This leader's fence has been stored; it may have been read already. A fence not above the current one is outdated.
pub(crate) fn fence_stored(state: &State, sequence: u64, leader: &str) -> Vec<Fact> {
    if state.fence.as_ref().is_some_and(|fence| fence.sequence >= sequence) {
        return Vec::new();
    }
    let fenced = Fact::Control(ControlFact::Fenced { sequence, leader: leader.to_owned() });
    let passed = (state.control >= sequence).then_some(Fact::Control(ControlFact::FencePassed { sequence }));
    [fenced].into_iter().chain(passed).collect()
}

/// The stream is read in order, so a message at or after the fence shows that everything before the fence has been
/// read, even if the fence itself is missing.
fn fence_passed(state: &State, sequence: u64) -> Vec<Fact> {
    let fence = state.fence.as_ref().filter(|fence| !fence.passed && fence.sequence <= sequence);
    fence
        .map(|fence| Fact::Control(ControlFact::FencePassed { sequence: fence.sequence }))
        .into_iter()
        .collect()
}

fn ignored(sequence: u64, host: Option<&HostName>, reply: Option<&Reply>, why: IgnoreCause) -> Fact {
    let without_text = |reply: &Reply| Reply {
        action: reply.action,
        result: match &reply.result {
            Outcome::Error(_) => Outcome::Error(ERROR.to_owned()),
            result @ (Outcome::Done | Outcome::RebootRequired) => result.clone(),
        },
    };
    Fact::Control(ControlFact::Ignored { sequence, host: host.cloned(), reply: reply.map(without_text), why })
}

/// A command of a host that was given up, or of an ended run, has been deleted or found to be delivered.
pub(crate) fn retracted(state: &State, host: &HostName, sequence: u64, deleted: bool) -> Vec<Fact> {
    if !state.retractions.contains_key(&sequence) {
        return Vec::new();
    }
    let mut facts =
        vec![Fact::Control(ControlFact::CommandRetracted { host: host.clone(), sequence, deleted })];
    if is_held_for_silent(state, host, sequence) {
        facts.extend(state.after_failure(host));
    }
    facts
}

/// Whether the slot of `host` is held for the command at `sequence`, which the host had not answered when it timed out.
/// Not so when an operator gave the host up (the operator releases its slot), nor when the host is at work again in
/// another run.
fn is_held_for_silent(state: &State, host: &HostName, sequence: u64) -> bool {
    let timed_out = |run: &Run| {
        let host = run.host(host).filter(|host| host.status == HostStatus::TimedOut && !host.is_given_up());
        host.and_then(|host| host.command?.sequence) == Some(sequence)
    };
    let of_slot = state.slots.get(host).and_then(|slot| slot.command);
    let is_at_work = state.run.as_ref().is_some_and(|run| run.under_way().contains(host));
    !is_at_work
        && of_slot.is_some_and(|command| command.sequence == sequence)
        && state.known_runs().any(timed_out)
}

fn command_seen(state: &State, sequence: u64, host: &HostName, id: Option<&CommandId>) -> Vec<Fact> {
    let known = id.filter(|id| id.host == *host);
    let sent = known.and_then(|id| sent(state, sequence, id));
    let late = || known.and_then(|id| sent_too_late(state, sequence, id));
    let foreign = || ignored(sequence, Some(host), None, IgnoreCause::ForeignCommand);
    vec![sent.or_else(late).unwrap_or_else(foreign)]
}

/// The fact for a command that its run or entry is waiting to see.
fn sent(state: &State, sequence: u64, id: &CommandId) -> Option<Fact> {
    let step = state.step(&Owner::from(&id.run), &id.host)?;
    let (action, attempt) = (id.action, id.attempt);
    let is_it = |command: &Issued| (command.action, command.attempt) == (action, attempt);
    step.unsent().filter(is_it).map(|_| step.fact(StepEvent::Sent { action, attempt, sequence }))
}

/// The fact for a command of ours that appears after its host's part in the run has ended.
fn sent_too_late(state: &State, sequence: u64, id: &CommandId) -> Option<Fact> {
    let mut runs = state.known_runs().filter(|run| run.id == id.run);
    let given_up = |host: &RunHost| {
        let unseen = |command: Issued| {
            (command.action, command.attempt, command.sequence) == (id.action, id.attempt, None)
        };
        host.status.is_final() && host.command.is_some_and(unseen)
    };
    // The slot may belong to a run before the last one.
    let held_for_it = state.slots.get(&id.host).is_some_and(|slot| {
        slot.unsent_at_fence.is_some() && id.action != Action::Prepare && slot.owner == Owner::from(&id.run)
    });
    let late = held_for_it || runs.any(|run| run.host(&id.host).is_some_and(given_up));
    late.then(|| {
        Fact::Control(ControlFact::LateCommandSeen { host: id.host.clone(), action: id.action, sequence })
    })
}

/// A reply in the control stream.
struct SeenReply<'a> {
    host: &'a HostName,
    reply: &'a Reply,
    in_reply_to: &'a InReplyTo,
    sequence: u64,
    now: DateTime<Utc>,
}

impl SeenReply<'_> {
    fn answers(&self, run: Option<&RunId>, command: SentCommand) -> bool {
        command.answered_by(run, self.reply.action, self.in_reply_to, self.sequence)
    }

    fn ignored(&self, why: IgnoreCause) -> Vec<Fact> {
        vec![ignored(self.sequence, Some(self.host), Some(self.reply), why)]
    }
}

fn reply_seen(state: &State, seen: &SeenReply<'_>) -> Vec<Fact> {
    if let Some(run) = &state.run
        && let Some(host) = run.host(seen.host)
        && let Some(command) = host.command
        && let Some(sequence) = command.sequence
        && seen.answers(Some(&run.id), SentCommand { action: command.action, sequence })
        && !host.status.is_final()
    {
        return answered(state, run, host, seen);
    }
    if let Some((index, entry)) = state.entry_under_way(seen.host)
        && let Some(Issued { action, sequence: Some(sequence), .. }) = entry.unanswered()
        && seen.answers(Some(&entry.owner(index).id()), SentCommand { action, sequence })
    {
        return reboot_answered(state, index, entry, seen);
    }
    let mut facts = late_done(state, seen);
    let why = if was_answered(state, seen) {
        IgnoreCause::AlreadyAnswered
    } else if let Some(run) = left_unanswered(state, seen) {
        IgnoreCause::TooLate { run: run.id.clone() }
    } else {
        IgnoreCause::NothingOutstanding
    };
    facts.extend(seen.ignored(why));
    facts
}

/// The reply answers the current command of a host whose part in the run has not ended.
fn answered(state: &State, run: &Run, host: &RunHost, seen: &SeenReply<'_>) -> Vec<Fact> {
    let failed = || fail(state, run, host, seen);
    let event = |event| Fact::of_host(&run.id, seen.host, event);
    match (host.status, &seen.reply.result) {
        (HostStatus::Preparing, Outcome::Done) => vec![event(HostEvent::Prepared)],
        // Until the next command is sent, an error overrides an earlier `done`.
        (
            HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting | HostStatus::Draining,
            Outcome::Error(_) | Outcome::RebootRequired,
        ) => failed(),
        (HostStatus::Upgrading | HostStatus::Rebooting, Outcome::Done) => {
            let owner = Owner::Run(run.id.clone());
            state.host_is_back(&owner, seen.host, false, ReleaseCause::Upgraded)
        }
        (HostStatus::Upgrading, Outcome::RebootRequired) => vec![event(HostEvent::RebootRequired)],
        (HostStatus::Upgrading, Outcome::Error(_))
        | (HostStatus::Rebooting, Outcome::RebootRequired | Outcome::Error(_)) => failed(),
        (HostStatus::Prepared | HostStatus::Waiting | HostStatus::Draining, Outcome::Done)
        | (HostStatus::Recovering, Outcome::Done | Outcome::RebootRequired | Outcome::Error(_)) => {
            seen.ignored(IgnoreCause::AlreadyAnswered)
        }
        (
            HostStatus::Pending
            | HostStatus::Upgraded
            | HostStatus::Failed
            | HostStatus::TimedOut
            | HostStatus::Skipped
            | HostStatus::Cancelled
            | HostStatus::NotReached,
            Outcome::Done | Outcome::RebootRequired | Outcome::Error(_),
        ) => seen.ignored(IgnoreCause::NothingOutstanding),
    }
}

/// The reply answers the `reboot` of the entry at `index`. After an error the host may have rebooted or not: its slot stays held,
/// and a person looks.
fn reboot_answered(state: &State, index: u64, entry: &Entry, seen: &SeenReply<'_>) -> Vec<Fact> {
    match &seen.reply.result {
        Outcome::Done => state.host_is_back(&entry.owner(index), seen.host, false, ReleaseCause::Rebooted),
        Outcome::RebootRequired | Outcome::Error(_) => {
            vec![Fact::of_entry(index, seen.host, EntryEvent::Failed { reason: reason(seen.reply) })]
        }
    }
}

fn reason(reply: &Reply) -> Reason {
    let Reply { action, result } = reply;
    match result.why_unhealthy().filter(|_| *action == Action::Reboot) {
        Some(message) => Reason::Unhealthy { message: message.to_owned() },
        None => Reason::WorkerError { action: *action, message: result.as_str().to_owned() },
    }
}

fn fail(state: &State, run: &Run, host: &RunHost, seen: &SeenReply<'_>) -> Vec<Fact> {
    let reason = reason(seen.reply);
    // An answer that does not name its command may be one to an earlier attempt.
    if host.status == HostStatus::Preparing
        && seen.in_reply_to.sequence.is_some()
        && let Some(until) = run.prepared_again(seen.host, host, seen.now)
    {
        return vec![Fact::of_host(&run.id, seen.host, HostEvent::PrepareFailed { until, reason })];
    }
    let mut facts = vec![Fact::of_host(&run.id, seen.host, HostEvent::Failed { reason })];
    facts.extend(
        run.stop_after(seen.host).map(|cause| Fact::Run(RunFact::Stopping { run: run.id.clone(), cause })),
    );
    if seen.reply.action == Action::Prepare {
        facts.extend(state.cancel_slot_request(run, seen.host));
    } else {
        facts.extend(state.after_failure(seen.host));
    }
    facts
}

/// `done` to the very command for which a slot is held releases it, however late. No other reply does.
fn late_done(state: &State, seen: &SeenReply<'_>) -> Vec<Fact> {
    let step = state.step_of(seen.host).filter(|step| step.stage.is_under_way());
    let slot = state.slots.get(seen.host);
    let is_for = |slot: &Slot| {
        slot.command.is_some_and(|command| seen.answers(run_of(state, seen.host, slot, command), command))
    };
    let is_at_work = step.as_ref().is_some_and(|step| !step.has_failed);
    if is_at_work || seen.reply.result != Outcome::Done || !slot.is_some_and(is_for) {
        return Vec::new();
    }
    match step {
        Some(step) => state.host_is_back(&step.owner, seen.host, false, ReleaseCause::LateDone),
        None => state.release_slot(seen.host, ReleaseCause::LateDone).into_iter().collect(),
    }
}

/// The run of the command for which the slot of `host` is held. `None` if it may be of an earlier one than the slot's.
fn run_of<'a>(state: &State, host: &HostName, slot: &'a Slot, command: SentCommand) -> Option<&'a RunId> {
    let owner = slot.owner.run()?;
    let run = state.known_runs().find(|run| run.id == *owner)?;
    let sent = run.host(host)?.command?.sequence;
    (sent == Some(command.sequence)).then_some(owner)
}

/// The run that ended, or gave the host up, before this reply to its command.
fn left_unanswered<'a>(state: &'a State, seen: &SeenReply<'_>) -> Option<&'a Run> {
    run_answered(state, seen, RunHost::left_unanswered)
}

fn was_answered(state: &State, seen: &SeenReply<'_>) -> bool {
    run_answered(state, seen, |host| host.command.filter(|command| command.answered)).is_some()
}

/// The active run, or the last, in which the reply answers this `command` of its host.
fn run_answered<'a>(
    state: &'a State,
    seen: &SeenReply<'_>,
    command: impl Fn(&RunHost) -> Option<Issued>,
) -> Option<&'a Run> {
    state.known_runs().find(|run| {
        let command = run.host(seen.host).and_then(&command);
        command.is_some_and(|Issued { action, sequence, .. }| {
            sequence.is_some_and(|sequence| seen.answers(Some(&run.id), SentCommand { action, sequence }))
        })
    })
}
