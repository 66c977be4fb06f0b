//! A leader's own state: the queue of inputs and the record being appended.

use std::collections::VecDeque;
use std::time::Duration;

use os_upgrade_calendar::Occurrence;
use os_upgrade_kernel::fact::ConfigFact;
use os_upgrade_kernel::start::StartTimer;
use os_upgrade_kernel::{
    Answer, Batch, ControlMessage, Fact, Input, Job, Record, Request, State, View, hint,
};
use os_upgrade_protocol::RunId;
use os_upgrade_provider_rules::Ticket;

use super::{Action, CallId, Warning};
use crate::clock::Now;
use crate::delivery::Delivery;
use crate::dispatch::Dispatcher;
use crate::forward::Answered;
use crate::journal::follow::Follower;
use crate::journal::{Committed, Tip};
use crate::not_done::NotDone;

/// The most inputs that are decided together.
const BATCH_INPUTS_MAX: usize = 4096;
/// The most inputs that wait for a more urgent one, if they can wait.
const LINGER_INPUTS_MAX: usize = 256;
/// So many refused lock requests need not wait for others to share a record with.
const REFUSALS_SHARE: usize = 4;
/// How many characters of a process's name are in its run ids: enough to tell leaders at the same journal sequence
/// apart.
const STARTER_CHARACTERS: usize = 8;
/// When this many inputs wait, further calls are refused.
const QUEUE_MAX: usize = 100_000;

/// A leadership.
#[derive(Debug)]
pub(super) struct Leading {
    queue: VecDeque<Queued>,
    tick: bool,
    start_timer: StartTimer,
    under_way: Option<UnderWay>,
    /// Jobs with an outcome that the committed state knows, since this was last taken.
    committed_jobs: Vec<Job>,
    /// Questions to providers with a reply that the committed state knows, since this was last taken.
    decided_replies: Vec<Ticket>,
    /// How many messages of the control stream changed nothing and are not journaled, since this was last taken.
    ignored: u64,
}

/// An input to decide.
#[derive(Debug)]
struct Queued {
    input: Input,
    /// The caller that waits for an answer, if any.
    caller: Option<Caller>,
    /// Whether it is a lock request that is refused, as things are.
    is_refused: bool,
    /// The question to a provider from whose reply it follows, if any.
    reply_to: Option<Ticket>,
}

#[derive(Debug)]
enum UnderWay {
    Record(Box<RecordUnderWay>),
    Snapshot,
}

fn adopted_warnings(record: &Record) -> impl Iterator<Item = Warning> {
    record.facts.iter().filter_map(|fact| {
        let Fact::Config(ConfigFact::SettingsAdopted { settings }) = fact else { return None };
        Some(Warning::Adopted(settings.clone()))
    })
}

/// A warning for each group in which newly adopted settings allow fewer slots than are held.
fn excess_warnings<'a>(record: &Record, state: &'a State) -> impl Iterator<Item = Warning> + 'a {
    let changed =
        record.facts.iter().any(|fact| matches!(fact, Fact::Config(ConfigFact::SettingsAdopted { .. })));
    let lowered = state.semaphores.iter().filter(move |(_, semaphore)| changed && semaphore.excess() > 0);
    lowered.map(|(group, semaphore)| Warning::HoldersExceedSlots {
        group: group.clone(),
        slots: semaphore.slots,
        holders: semaphore.holders.len(),
    })
}

/// What the ids of automatically started runs are made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starter<'a> {
    /// The process's name.
    pub(super) process: &'a str,
    /// The journal sequence of the next record.
    pub(super) sequence: u64,
}

impl Starter<'_> {
    /// The id of the run that starts in `occurrence`. It is unique, even when clocks have stepped, or when the journal
    /// was continued after losing its end.
    fn run_id(self, occurrence: Occurrence) -> RunId {
        let start = occurrence.start.format("%Y%m%dT%H%M%SZ");
        let process: String = self.process.chars().take(STARTER_CHARACTERS).collect();
        RunId::new(&format!("{start}-{}-{process}", self.sequence))
            .expect("it has only characters that ids may have")
    }
}

#[derive(Debug)]
struct RecordUnderWay {
    record: Record,
    next: State,
    answers: Vec<(CallId, Answer)>,
    /// The jobs whose outcomes were decided on.
    jobs: Vec<Job>,
    /// The questions to providers whose replies were decided on.
    replies: Vec<Ticket>,
}

impl Leading {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            tick: false,
            start_timer: StartTimer::default(),
            under_way: None,
            committed_jobs: Vec::new(),
            decided_replies: Vec::new(),
            ignored: 0,
        }
    }

    /// The empty record that claims a leadership.
    pub(super) fn claim(state: &State, now: Now) -> Record {
        Record { at: now.wall, control: state.control, facts: Vec::new() }
    }

    /// Queues `input`, for which no caller waits.
    pub(super) fn push(&mut self, input: Input) {
        self.queue.push_back(Queued { input, caller: None, is_refused: false, reply_to: None });
    }

    /// Queues `inputs`, which follow from the reply to the question with `ticket`. It is decided once the last of them is.
    pub(super) fn push_reply(&mut self, mut inputs: Vec<Input>, ticket: Ticket) {
        let last = inputs.pop();
        for input in inputs {
            self.push(input);
        }
        let queued = |input| Queued { input, caller: None, is_refused: false, reply_to: Some(ticket) };
        self.queue.extend(last.map(queued));
    }

    /// Queues `request`; `is_refused`: it is a lock request that is refused, as things are.
    pub(super) fn push_call(&mut self, request: Request, caller: Caller, is_refused: bool) {
        let input = Input::Request(request);
        self.queue.push_back(Queued { input, caller: Some(caller), is_refused, reply_to: None });
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE_MAX
    }

    /// Whether there is room for messages of the control stream: no more than are decided at once should wait.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < BATCH_INPUTS_MAX
    }

    /// Whether a caller waits for an answer.
    pub(super) fn has_calls(&self) -> bool {
        self.queue.iter().any(|queued| queued.caller.is_some())
    }

    pub(super) fn take_committed_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.committed_jobs)
    }

    pub(super) fn take_decided_replies(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.decided_replies)
    }

    pub(super) fn take_ignored(&mut self) -> u64 {
        std::mem::take(&mut self.ignored)
    }

    pub(super) fn tick(&mut self) {
        self.tick = true;
    }

    pub(super) fn drop_stale_calls(&mut self, now: Now, out: &mut Vec<Action>) {
        self.queue.retain(|queued| {
            let stale = queued.caller.filter(|caller| caller.until <= now.monotonic);
            let not_done = || NotDone::unchanged("the journal did not answer in time");
            out.extend(stale.map(|Caller { call, .. }| Action::Answer { call, outcome: Err(not_done()) }));
            stale.is_none()
        });
    }

    /// Decides the queued inputs. Returns the record to append, if there are facts or a caller waits for an answer:
    /// even a request that changed nothing gets its 2xx only after an append that began after the request had arrived.
    ///
    /// Without `starter`, no run starts automatically.
    pub(super) fn next_record(
        &mut self,
        state: &mut State,
        view: &View,
        now: Now,
        starter: Option<Starter<'_>>,
    ) -> Option<&Record> {
        let tick = std::mem::take(&mut self.tick);
        let is_due = self.is_due(tick);
        if !tick && !is_due {
            return None;
        }
        let mut batch = Batch::new(state, now.wall);
        let (mut answers, mut jobs, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        let mut inputs = 0;
        // First of all, because the view belongs to the committed state: the hosts that an input approves have not been
        // asked for the time.
        if self.start_timer.has_missed(batch.state(), view, now.wall) {
            batch.decide(view, &Input::Missed { blocked: self.start_timer.blocked().cloned() });
        }
        if tick
            && let Some(starter) = starter
            && let Some(due) = self.start_timer.due(batch.state(), view, now.wall)
        {
            let run = starter.run_id(due.occurrence);
            batch.decide(view, &Input::Due { run });
        }
        while is_due && inputs < BATCH_INPUTS_MAX && batch.len() < BATCH_INPUTS_MAX {
            let Some(Queued { input, caller, reply_to, .. }) = self.queue.pop_front() else { break };
            inputs += 1;
            let facts_before = batch.len();
            if let Input::JobDone(done) = &input {
                jobs.push(done.job());
            }
            replies.extend(reply_to);
            let is_new = is_new_reply(&input, batch.state().control);
            let answer = batch.decide(view, &input);
            self.ignored += u64::from(is_new && batch.len() == facts_before);
            answers.extend(caller.zip(answer).map(|(caller, answer)| (caller.call, answer)));
        }
        if tick {
            batch.decide(view, &Input::Tick);
        }
        if batch.is_empty() && answers.is_empty() {
            // The inputs changed nothing, and would change nothing if they were read again after a restart.
            *state = batch.finish().1;
            self.committed_jobs.extend(jobs);
            self.decided_replies.extend(replies);
            return None;
        }
        let (record, next) = batch.finish();
        let under_way = RecordUnderWay { record, next, answers, jobs, replies };
        match self.under_way.insert(UnderWay::Record(Box::new(under_way))) {
            UnderWay::Record(under_way) => Some(&under_way.record),
            UnderWay::Snapshot => None,
        }
    }

    /// Whether the queued inputs are to be decided now. What can wait shares a record with what cannot.
    ///
    /// Commands that were seen in the control stream trigger no sending, and a restart would read them again. So they
    /// wait for the next record, which is usually that of a reply, instead of delaying it with an append of their own.
    /// They wait until the next tick at most. Requests for slots that are refused need an append to be true, but waiting
    /// clients must not fill the journal: a record is appended for [`REFUSALS_SHARE`] of them, or at a tick for fewer.
    /// A crowd gathers while the append before is under way, so it is answered as fast as the journal takes records.
    fn is_due(&self, tick: bool) -> bool {
        if self.queue.len() > LINGER_INPUTS_MAX {
            return true;
        }
        let mut refused = 0;
        self.queue.iter().any(|queued| {
            let is_seen =
                matches!(&queued.input, Input::Control { message: ControlMessage::Command { .. }, .. });
            refused += usize::from(queued.is_refused);
            tick || !is_seen && !queued.is_refused || refused >= REFUSALS_SHARE
        })
    }

    /// The state after the record under way; `None` if no record is.
    pub(super) fn decided(&self) -> Option<&State> {
        match &self.under_way {
            Some(UnderWay::Record(under_way)) => Some(&under_way.next),
            Some(UnderWay::Snapshot) | None => None,
        }
    }

    pub(super) fn snapshot_begun(&mut self) {
        self.under_way = Some(UnderWay::Snapshot);
    }

    /// The append under way is in the journal, from a first sequence up to its new tip: its state becomes the committed
    /// one, and its callers are answered.
    pub(super) fn appended(
        &mut self,
        (first, tip): (u64, Tip),
        (dispatcher, delivery, now): (&mut Dispatcher, &mut Delivery, Now),
        follower: &mut Follower,
        out: &mut Vec<Action>,
    ) {
        match self.under_way.take() {
            Some(UnderWay::Record(under_way)) => {
                let RecordUnderWay { record, next, answers, jobs, replies } = *under_way;
                self.committed_jobs.extend(jobs);
                self.decided_replies.extend(replies);
                dispatcher.committed(&record);
                delivery.committed(&record, now);
                out.extend(
                    adopted_warnings(&record).chain(excess_warnings(&record, &next)).map(Action::Warn),
                );
                let sequence = tip.sequence;
                let hint = hint(&record.facts, &next);
                out.extend(hint.map(|(hint, hosts)| Action::Hint { hint, hosts }));
                let append_id = tip.append_id.clone().expect("an append has an id");
                let (before, follows) = (follower.journaled(), follower.last_record());
                let committed = Committed { sequence, append_id, follows, before, record };
                follower.appended(tip, Some((&committed, next)));
                out.push(Action::Project { committed: Box::new(committed), decided_here: true });
                out.extend(answers.into_iter().map(|(call, answer)| Action::Answer {
                    call,
                    outcome: Ok(Answered { answer, sequence }),
                }));
            }
            Some(UnderWay::Snapshot) => {
                follower.appended(tip, None);
                follower.snapshot_appended(first);
            }
            None => follower.appended(tip, None),
        }
    }

    /// Answers every waiting call with `why`: as unknown if its request was being appended, else as unchanged.
    pub(super) fn fail_calls(&mut self, why: &str, out: &mut Vec<Action>) {
        let begun: Vec<CallId> = match self.under_way.take() {
            Some(UnderWay::Record(under_way)) => {
                under_way.answers.into_iter().map(|(call, _)| call).collect()
            }
            Some(UnderWay::Snapshot) | None => Vec::new(),
        };
        let waiting: Vec<CallId> =
            self.queue.drain(..).filter_map(|queued| Some(queued.caller?.call)).collect();
        for (calls, not_done) in [(begun, NotDone::unknown(why)), (waiting, NotDone::unchanged(why))] {
            let outcome = || Err(not_done.clone());
            out.extend(calls.into_iter().map(|call| Action::Answer { call, outcome: outcome() }));
        }
    }
}

/// Whether `input` is a reply that was not applied before, when messages up to `control` have been.
fn is_new_reply(input: &Input, control: u64) -> bool {
    matches!(input, Input::Control { sequence, message: ControlMessage::Reply { .. } } if *sequence > control)
}

/// A call that waits for an answer to an input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) call: CallId,
    /// The monotonic time at which the request is dropped unless it was begun.
    pub(crate) until: Duration,
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use os_upgrade_kernel::{ClientId, LockOperation, Settings};
    use os_upgrade_protocol::GroupName;

    use super::*;

    /// A leader of a site with one slot, which a client holds.
    struct Crowd {
        leading: Leading,
        state: State,
        asked: u64,
        answered: u64,
        records: u64,
    }

    fn now() -> Now {
        Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::ZERO }
    }

    fn lock(number: u64) -> Request {
        let id = ClientId::new(&format!("node-{number}")).unwrap();
        let group = GroupName::new("default").unwrap();
        Request::new("token", LockOperation::Lock { group, id }.into())
    }

    impl Crowd {
        fn new() -> Self {
            let mut batch = Batch::new(&State::default(), now().wall);
            batch.decide(&View::default(), &Input::Settings(Settings::default()));
            batch.decide(&View::default(), &Input::Request(lock(0)));
            let state = batch.finish().1;
            Self { leading: Leading::new(), state, asked: 0, answered: 0, records: 0 }
        }

        fn ask(&mut self, requests: u64) {
            for _ in 0..requests {
                self.asked += 1;
                let caller = Caller { call: self.asked, until: Duration::MAX };
                self.leading.push_call(lock(self.asked), caller, true);
            }
        }

        /// Appends the next record, if there is one. `meanwhile` requests arrive before it is stored.
        fn append(&mut self, meanwhile: u64) -> bool {
            if self.leading.next_record(&mut self.state, &View::default(), now(), None).is_none() {
                return false;
            }
            self.ask(meanwhile);
            let Some(UnderWay::Record(under_way)) = self.leading.under_way.take() else {
                panic!("a record is under way")
            };
            self.records += 1;
            self.answered += under_way.answers.len() as u64;
            self.state = under_way.next;
            true
        }
    }

    #[test]
    fn crowd_is_refused_without_a_timer_and_shares_records() {
        let mut crowd = Crowd::new();
        crowd.ask(32);
        // Each client asks again once it is answered; no time passes.
        for _ in 0..100 {
            assert!(crowd.append(0));
            crowd.ask(32);
        }
        assert_eq!((crowd.answered, crowd.records), (3_200, 100));
        // Clients that ask while a record is appended share the next one.
        assert!(crowd.append(17));
        assert!(crowd.append(0));
        assert_eq!((crowd.answered, crowd.records), (3_249, 102));
    }

    #[test]
    fn few_refusals_share_a_record_at_a_tick() {
        let mut crowd = Crowd::new();
        let share = REFUSALS_SHARE as u64;
        crowd.ask(share - 1);
        assert!(!crowd.append(0), "fewer than share a record");
        crowd.leading.tick();
        assert!(crowd.append(0));
        assert_eq!((crowd.answered, crowd.records), (share - 1, 1));
        crowd.ask(share);
        assert!(crowd.append(0));
        assert_eq!((crowd.answered, crowd.records), (2 * share - 1, 2));
        // Whoever is not refused takes the refused along.
        crowd.ask(1);
        let caller = Caller { call: 0, until: Duration::MAX };
        crowd.leading.push_call(lock(0), caller, false);
        assert!(crowd.append(0));
        assert_eq!((crowd.answered, crowd.records), (2 * share + 1, 3));
    }
}
