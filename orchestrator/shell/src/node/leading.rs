//! What only a leader has: the queue of inputs, the record being appended, and the dispatcher.

use std::collections::VecDeque;
use std::time::Duration;

use os_upgrade_kernel::forecast::StartTimer;
use os_upgrade_kernel::window::Occurrence;
use os_upgrade_kernel::{Answer, Batch, ControlMessage, Fact, Input, Record, State, View, hint};
use os_upgrade_protocol::RunId;

use super::{Action, CallId, Warning};
use crate::clock::Now;
use crate::dispatch::Dispatcher;
use crate::forward::Answered;
use crate::journal::Committed;
use crate::journal::Tip;
use crate::journal::follow::Follower;
use crate::not_done::NotDone;

/// How many inputs are decided together at most.
const BATCH_INPUTS_MAX: usize = 4096;
/// How many inputs that can wait do wait for others.
const LINGER_INPUTS_MAX: usize = 256;
/// How much of a process's name is in the ids of runs: enough to tell those that lead at the same place of the journal.
const STARTER_CHARACTERS: usize = 8;
/// Calls beyond so many waiting inputs are refused.
const QUEUE_MAX: usize = 100_000;

/// A leadership.
#[derive(Debug)]
pub(super) struct Leading {
    /// Inputs that wait for their turn, each with whoever waits for an answer to it.
    pub(super) queue: VecDeque<(Input, Option<Caller>)>,
    tick: bool,
    start_timer: StartTimer,
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
enum UnderWay {
    Record(Box<RecordUnderWay>),
    Snapshot { start: u64 },
}

fn adopted(record: &Record) -> impl Iterator<Item = Warning> {
    record.facts.iter().filter_map(|fact| {
        let Fact::SettingsAdopted { settings } = fact else { return None };
        Some(Warning::Adopted(settings.clone()))
    })
}

/// Groups in which settings that have just come into force leave fewer slots than are held.
fn more_holders<'a>(record: &Record, state: &'a State) -> impl Iterator<Item = Warning> + 'a {
    let changed = record.facts.iter().any(|fact| matches!(fact, Fact::SettingsAdopted { .. }));
    let lowered = state.semaphores.iter().filter(move |(_, semaphore)| changed && semaphore.excess() > 0);
    lowered.map(|(group, semaphore)| Warning::MoreHolders {
        group: group.clone(),
        slots: semaphore.slots,
        holders: semaphore.holders.len(),
    })
}

/// Who may start a run by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starter<'a> {
    /// The process's name.
    pub(super) process: &'a str,
    /// The place in the journal of what it decides next.
    pub(super) sequence: u64,
}

impl Starter<'_> {
    /// The id of the run that it starts in `occurrence`: whatever clocks did, and also where the journal has lost its end
    /// and goes on in its stead, nobody has given it before.
    fn run_id(self, occurrence: Occurrence) -> RunId {
        let start = occurrence.start.format("%Y%m%dT%H%M%SZ");
        let process: String = self.process.chars().take(STARTER_CHARACTERS).collect();
        RunId::new(&format!("{start}-{}-{process}", self.sequence))
            .expect("it has nothing but what ids may have")
    }
}

#[derive(Debug)]
struct RecordUnderWay {
    record: Record,
    next: State,
    answers: Vec<(CallId, Answer)>,
}

impl Leading {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new(), tick: false, start_timer: StartTimer::default(), under_way: None }
    }

    /// The record by which a leadership is claimed: it says nothing, but where it stands.
    pub(super) fn claim(state: &State, now: Now) -> Record {
        Record { at: now.wall, control: state.control, facts: Vec::new() }
    }

    /// Has `input` decided, to which nobody waits for an answer.
    pub(super) fn push(&mut self, input: Input) {
        self.queue.push_back((input, None));
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE_MAX
    }

    /// Whether somebody waits for an answer.
    pub(super) fn has_calls(&self) -> bool {
        self.queue.iter().any(|(_, caller)| caller.is_some())
    }

    pub(super) fn time_has_passed(&mut self) {
        self.tick = true;
    }

    pub(super) fn drop_stale_calls(&mut self, now: Now, out: &mut Vec<Action>) {
        self.queue.retain(|(_, caller)| {
            let stale = caller.filter(|caller| caller.until <= now.monotonic);
            let not_done = || NotDone::unchanged("the journal did not answer in time");
            out.extend(stale.map(|Caller { call, .. }| Action::Answer { call, outcome: Err(not_done()) }));
            stale.is_none()
        });
    }

    /// Decides what waits. The record to append, if something came of it or somebody waits for an answer: a 2xx, also
    /// to a request that changed nothing, is only given after an append that began after the request had arrived.
    ///
    /// `starter` is there where it may start runs by itself.
    pub(super) fn next_record(
        &mut self,
        state: &mut State,
        view: &View,
        now: Now,
        starter: Option<Starter<'_>>,
    ) -> Option<&Record> {
        if self.can_wait() {
            return None;
        }
        let mut batch = Batch::new(state, now.wall);
        let mut answers = Vec::new();
        let mut inputs = 0;
        while inputs < BATCH_INPUTS_MAX && batch.len() < BATCH_INPUTS_MAX {
            let Some((input, caller)) = self.queue.pop_front() else { break };
            inputs += 1;
            let answer = batch.decide(view, &input);
            answers.extend(caller.zip(answer).map(|(caller, answer)| (caller.call, answer)));
        }
        if std::mem::take(&mut self.tick) {
            batch.decide(view, &Input::Tick);
            if let Some(starter) = starter
                && let Some(due) = self.start_timer.due(batch.state(), view, now.wall)
            {
                let run = starter.run_id(due.occurrence);
                batch.decide(view, &Input::Due { run });
            }
        }
        if batch.is_empty() && answers.is_empty() {
            // Read, and nothing came of it. Read again after a restart, nothing will.
            *state = batch.finish().1;
            return None;
        }
        let (record, next) = batch.finish();
        let under_way = RecordUnderWay { record, next, answers };
        match self.under_way.insert(UnderWay::Record(Box::new(under_way))) {
            UnderWay::Record(under_way) => Some(&under_way.record),
            UnderWay::Snapshot { .. } => None,
        }
    }

    /// Whether nothing waits but commands that have been seen in the control stream. Nothing is sent because of one,
    /// and until the journal has it, a restart would read it again; so it goes with the next record, which is
    /// mostly that of its reply, and an append for itself alone does not come in that one's way. With the next tick
    /// it goes in any case.
    fn can_wait(&self) -> bool {
        let seen = |(input, _): &(Input, Option<Caller>)| {
            matches!(input, Input::Control { message: ControlMessage::Command { .. }, .. })
        };
        !self.tick && self.queue.len() <= LINGER_INPUTS_MAX && self.queue.iter().all(seen)
    }

    /// The state after the record that is being appended, if one is.
    pub(super) fn decided(&self) -> Option<&State> {
        match &self.under_way {
            Some(UnderWay::Record(under_way)) => Some(&under_way.next),
            Some(UnderWay::Snapshot { .. }) | None => None,
        }
    }

    pub(super) fn snapshot_begun(&mut self, start: u64) {
        self.under_way = Some(UnderWay::Snapshot { start });
    }

    /// What was under way is in the journal: it becomes the state, and askers hear of it.
    pub(super) fn appended(
        &mut self,
        tip: Tip,
        dispatcher: &mut Dispatcher,
        follower: &mut Follower,
        out: &mut Vec<Action>,
    ) {
        match self.under_way.take() {
            Some(UnderWay::Record(under_way)) => {
                let RecordUnderWay { record, next, answers } = *under_way;
                dispatcher.committed(&record);
                out.extend(adopted(&record).chain(more_holders(&record, &next)).map(Action::Warn));
                let sequence = tip.sequence;
                let hint = hint(&record.facts, &next);
                out.extend(hint.map(|(hint, hosts)| Action::Hint { hint, hosts }));
                let append_id = tip.append_id.clone().expect("an append has an id");
                let before = follower.journaled();
                let committed = Committed { sequence, append_id, before, record };
                follower.appended(tip, Some((&committed, next)));
                out.push(Action::Project { committed: Box::new(committed), decided_here: true });
                out.extend(answers.into_iter().map(|(call, answer)| Action::Answer {
                    call,
                    outcome: Ok(Answered { answer, sequence }),
                }));
            }
            Some(UnderWay::Snapshot { start }) => {
                follower.appended(tip, None);
                follower.snapshot_appended(start);
            }
            None => follower.appended(tip, None),
        }
    }

    /// Everyone who waits hears why; those whose request was being appended, that its outcome is not known.
    pub(super) fn give_up(&mut self, why: &str, out: &mut Vec<Action>) {
        let begun: Vec<CallId> = match self.under_way.take() {
            Some(UnderWay::Record(under_way)) => {
                under_way.answers.into_iter().map(|(call, _)| call).collect()
            }
            Some(UnderWay::Snapshot { .. }) | None => Vec::new(),
        };
        let waiting: Vec<CallId> =
            self.queue.drain(..).filter_map(|(_, caller)| Some(caller?.call)).collect();
        for (calls, not_done) in [(begun, NotDone::unknown(why)), (waiting, NotDone::unchanged(why))] {
            let outcome = || Err(not_done.clone());
            out.extend(calls.into_iter().map(|call| Action::Answer { call, outcome: outcome() }));
        }
    }
}

/// Who waits for an answer to an input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) call: CallId,
    /// Until when the request is worth being begun.
    pub(crate) until: Duration,
}
