//! Dispatch: from effects to actions, bounded, paced, and under a fence.
//!
//! Commands are published only under a fence of this leadership that has been read past and whose fact is in the
//! journal: an append that succeeded after the fence was stored proves that nobody led in between. When the outcome
//! of a publish is not known, nothing is guessed: a new fence is stored, everything before it is read, and what has
//! still not been seen is sent again, for under the old fence it can no longer appear.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::Part;
use os_upgrade_kernel::{Effect, Record, RunHost, State, System, duties, sends};
use os_upgrade_protocol::{CommandId, HostName};

use crate::clock::Now;
use crate::jobs::{JobId, JobReport, Jobs, Pace, StartedJob, SystemLimits};

/// How long to wait before a fence is tried again.
const FENCE_RETRY: Duration = Duration::from_millis(250);
/// How long the lease must last yet when a job is begun: a system outside may know no fence, so that a leader whose time
/// is over, and who does not know it, must not ask any more. It is what connecting may take.
pub const JOB_LEASE_LEFT: Duration = Duration::from_secs(2);
/// How many retractions may be under way at once.
const RETRACTIONS_MAX: usize = 8;
/// How long to wait before a retraction that could not be carried out is tried again.
const RETRACTION_RETRY: Duration = Duration::from_secs(5);

/// How to dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchSettings {
    /// How many commands may be on their way to the stream at once: many for one server, 1 for a cluster, which
    /// refuses concurrent messages under one fence.
    pub publishes_max: usize,
    /// How a lock server may be asked.
    pub lock_server: SystemLimits,
}

impl DispatchSettings {
    fn limits(&self, system: System) -> SystemLimits {
        match system {
            System::LockServer => self.lock_server,
        }
    }
}

/// What came of publishing a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// It is stored.
    Stored,
    /// It is certainly not stored, and may be sent again as it is.
    NotStored,
    /// Another fence stands in the stream.
    Fenced,
    /// Not known.
    Unknown,
}

/// Something for the shell to carry out; each comes back with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatch {
    /// Publish a fence.
    Fence {
        /// To be handed back with the outcome.
        epoch: u64,
    },
    /// Publish a command under the fence at this sequence.
    Command {
        /// To be handed back with the outcome.
        epoch: u64,
        /// The fence's sequence.
        fence: u64,
        /// Which command.
        id: CommandId,
        /// Its deadline.
        not_after: DateTime<Utc>,
    },
    /// Carry out a job in a system outside of the bus.
    Job(StartedJob),
    /// Delete a command unless a worker has been given it.
    Retract {
        /// The host it was sent to.
        host: HostName,
        /// Its sequence.
        sequence: u64,
    },
}

/// What a leader goes by.
#[derive(Debug, Clone, Copy)]
pub struct Leader<'a> {
    /// The committed state.
    pub state: &'a State,
    /// The state that is being appended, if one is: what it takes back is not begun any more, though it is not in the
    /// journal yet.
    pub decided: Option<&'a State>,
    /// The monotonic time at which the lease ends unless it is renewed.
    pub leased_until: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    Needed { from: Duration },
    Publishing,
    Stored { sequence: u64 },
}

/// What is under way. It outlives leaderships, because what has been asked of others does.
#[derive(Debug)]
pub struct Dispatcher {
    settings: DispatchSettings,
    epoch: u64,
    fence: Fence,
    /// Commands to publish, in order.
    todo: VecDeque<(CommandId, DateTime<Utc>)>,
    /// Commands in `todo`, on their way, or stored and not yet seen by the fold; and such as have been seen since the
    /// last look.
    known: HashSet<CommandId>,
    publishing: usize,
    /// Whether the fold may have new commands that are not in `todo`.
    look_again: bool,
    jobs: Jobs,
    retractions: HashMap<u64, Pace>,
}

impl Dispatcher {
    /// Nothing is under way yet, in the process called `nonce`.
    pub fn new(settings: DispatchSettings, nonce: &str) -> Self {
        Self {
            jobs: Jobs::new(System::ALL.map(|system| (system, settings.limits(system))), nonce),
            settings,
            epoch: 0,
            fence: Fence::Needed { from: Duration::ZERO },
            todo: VecDeque::new(),
            known: HashSet::new(),
            publishing: 0,
            look_again: true,
            retractions: HashMap::new(),
        }
    }

    /// A leadership begins: whatever an earlier one had published no longer counts, and a fence comes first. Jobs that
    /// are still under way are waited for, so that no answer is taken for another's.
    pub fn begin_leadership(&mut self, now: Now) {
        self.refence(now, Duration::ZERO);
        self.jobs.leadership_begins(now);
        self.retractions.values_mut().for_each(Pace::leadership_begins);
    }

    /// A record has been committed.
    pub fn committed(&mut self, record: &Record) {
        self.look_again |= record.facts.iter().any(|fact| fact.affects(Part::Commands));
    }

    /// What can be begun now.
    pub fn pump(&mut self, leader: &Leader<'_>, now: Now) -> Vec<Dispatch> {
        let Leader { state, decided, leased_until } = *leader;
        let mut begun = Vec::new();
        if let Fence::Needed { from } = self.fence
            && from <= now.monotonic
        {
            self.fence = Fence::Publishing;
            begun.push(Dispatch::Fence { epoch: self.epoch });
        }
        if let Some(fence) = self.open_fence(state) {
            self.pump_commands(state, decided, fence, now, &mut begun);
        }
        self.pump_duties(state, leased_until, now, &mut begun);
        begun
    }

    /// Whether everything that stood in the control stream when this leadership began has been read, as `state` shows.
    pub fn has_read_control(&self, state: &State) -> bool {
        self.open_fence(state).is_some()
    }

    /// The fence under which commands may be published: ours, in the journal, and read past.
    fn open_fence(&self, state: &State) -> Option<u64> {
        let Fence::Stored { sequence } = self.fence else { return None };
        state.fence.as_ref().filter(|fence| fence.sequence == sequence && fence.passed).map(|_| sequence)
    }

    fn pump_commands(
        &mut self,
        state: &State,
        decided: Option<&State>,
        fence: u64,
        now: Now,
        begun: &mut Vec<Dispatch>,
    ) {
        if self.look_again {
            self.look_again = false;
            self.known.retain(|id| is_wanted(state, id));
            for effect in sends(state) {
                if let Effect::Send { id, not_after } = effect
                    && self.known.insert(id.clone())
                {
                    self.todo.push_back((id, not_after));
                }
            }
        }
        while self.publishing < self.settings.publishes_max
            && let Some((id, not_after)) = self.todo.pop_front()
        {
            // Nothing is sent after its time, nor once it has been decided that it is not wanted any more.
            if now.wall < not_after && is_wanted(decided.unwrap_or(state), &id) {
                self.publishing += 1;
                begun.push(Dispatch::Command { epoch: self.epoch, fence, id, not_after });
            }
        }
    }

    fn pump_duties(&mut self, state: &State, leased_until: Duration, now: Now, begun: &mut Vec<Dispatch>) {
        self.retractions
            .retain(|sequence, pace| pace.is_under_way() || state.retractions.contains_key(sequence));
        let mut jobs = Vec::new();
        for duty in duties(state) {
            match duty {
                Effect::Job(job) => jobs.push(job),
                Effect::NewFence { above } => {
                    if self.fence == (Fence::Stored { sequence: above }) {
                        self.refence(now, Duration::ZERO);
                    }
                }
                Effect::Retract { host, sequence } => {
                    if begin(&mut self.retractions, sequence, now) {
                        begun.push(Dispatch::Retract { host, sequence });
                    }
                }
                Effect::Send { .. } => {}
            }
        }
        let before = leased_until.saturating_sub(JOB_LEASE_LEFT);
        if now.monotonic < before {
            begun.extend(self.jobs.begin(jobs, now, before).into_iter().map(Dispatch::Job));
        }
    }

    /// A fence came back. Stored, its sequence has to be decided on.
    pub fn fence_published(&mut self, now: Now, epoch: u64, stored: Option<u64>) -> Option<u64> {
        if epoch != self.epoch || self.fence != Fence::Publishing {
            return None;
        }
        self.fence = match stored {
            Some(sequence) => Fence::Stored { sequence },
            None => Fence::Needed { from: now.monotonic + FENCE_RETRY },
        };
        stored
    }

    /// Whether everything that was begun has come back, as far as it still counts.
    pub fn is_at_rest(&self) -> bool {
        let asking = self.jobs.is_under_way() || self.retractions.values().any(Pace::is_under_way);
        self.publishing == 0 && self.fence != Fence::Publishing && !asking
    }

    /// A command came back.
    pub fn command_published(
        &mut self,
        now: Now,
        epoch: u64,
        command: (CommandId, DateTime<Utc>),
        outcome: PublishOutcome,
    ) {
        if epoch != self.epoch {
            return;
        }
        self.publishing -= 1;
        match outcome {
            PublishOutcome::Stored => {}
            PublishOutcome::NotStored => self.todo.push_front(command),
            PublishOutcome::Fenced | PublishOutcome::Unknown => self.refence(now, FENCE_RETRY),
        }
    }

    /// A job came back. Whether that counts: not when it was begun in an earlier leadership.
    pub fn job_done(&mut self, now: Now, id: JobId, report: &JobReport) -> bool {
        self.jobs.done(now, id, report)
    }

    /// A retraction came back; one that could not be carried out is tried again. Whether the answer counts: not when it was
    /// asked for in an earlier leadership.
    pub fn retraction_answered(&mut self, now: Now, sequence: u64) -> bool {
        self.retractions.get_mut(&sequence).is_some_and(|pace| pace.done(now, RETRACTION_RETRY))
    }

    /// Whatever is on its way under the present fence no longer counts; a new one shows what was stored.
    fn refence(&mut self, now: Now, pause: Duration) {
        self.epoch += 1;
        self.publishing = 0;
        self.todo.clear();
        self.known.clear();
        self.look_again = true;
        self.fence = Fence::Needed { from: now.monotonic + pause };
    }
}

/// Whether `id` is still to be sent, or to be seen.
fn is_wanted(state: &State, id: &CommandId) -> bool {
    let run = state.run.as_ref().filter(|run| run.id == id.run);
    run.and_then(|run| run.host(&id.host)).is_some_and(RunHost::is_unsent)
}

/// Begins the retraction, if it may begin now and not too much is under way.
fn begin(paces: &mut HashMap<u64, Pace>, sequence: u64, now: Now) -> bool {
    let under_way = paces.values().filter(|pace| pace.is_under_way()).count();
    under_way < RETRACTIONS_MAX && paces.entry(sequence).or_default().begin(now)
}
