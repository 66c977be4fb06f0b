//! Dispatch: from effects to actions, bounded, paced, and under a fence.
//!
//! Commands are published only under a fence of this leadership that has been read past and whose fact is in the
//! journal: an append that succeeded after the fence was stored proves that no other instance led in between. When the
//! outcome of a publish is unknown, a new fence is stored and everything before it is read. What has not appeared is
//! sent again: under the old fence it can no longer appear.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use os_upgrade_kernel::fact::Part;
use os_upgrade_kernel::{Effect, Job, Order, Purge, Record, State, System, is_wanted, other_effects, sends};
use os_upgrade_protocol::{CommandId, HostName};

use crate::clock::Now;
use crate::delivery::Deliver;
use crate::jobs::{JobId, JobReport, Jobs, Pace, StartedJob, SystemLimits};

/// How long to wait before a fence is tried again.
const FENCE_RETRY: Duration = Duration::from_millis(250);
/// How much of the lease must be left when a job is begun, and at each of its requests. A system outside of the bus may know no
/// fence, so a leader must not send requests after its lease has ended. This is as long as connecting may take.
pub const JOB_LEASE_LEFT: Duration = Duration::from_secs(2);

/// Whether a job may write to its system at `now`, on the monotonic clock, by an instance that leads until `leased_until`.
pub fn may_write(leased_until: Option<Duration>, now: Duration) -> bool {
    leased_until.is_some_and(|until| now + JOB_LEASE_LEFT < until)
}

/// The most retractions, and the most purges, under way at once.
const DELETIONS_MAX: usize = 8;
/// How long to wait before one that could not be carried out is tried again.
const DELETION_RETRY: Duration = Duration::from_secs(5);

/// The limits of dispatching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchSettings {
    /// The most commands on their way to the stream at once: many for one server, 1 for a cluster, which refuses
    /// concurrent messages under one fence.
    pub publishes_max: usize,
    /// How often each system outside of the bus may be asked; the default applies to a system that is missing here.
    pub systems: BTreeMap<System, SystemLimits>,
}

impl DispatchSettings {
    fn limits(&self, system: System) -> SystemLimits {
        self.systems.get(&system).copied().unwrap_or_default()
    }
}

/// The outcome of publishing a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    Stored,
    /// It is certainly not stored, and may be sent again as it is.
    NotStored,
    /// It is refused: the stream has another fence.
    Fenced,
    /// It may or may not be stored.
    Unknown,
}

/// Something for the driver to carry out. Each is answered with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatch {
    /// Publish a fence.
    Fence {
        /// The fence's epoch, returned with the outcome.
        epoch: u64,
    },
    /// Publish a command under the fence at this sequence.
    Command {
        /// The fence's epoch, returned with the outcome.
        epoch: u64,
        /// The fence's sequence.
        fence: u64,
        /// The command, returned with the outcome.
        order: Order,
    },
    /// Carry out a job in a system outside of the bus.
    Job(StartedJob),
    /// Delete a command unless it was delivered to a worker.
    Retract {
        /// The host it was sent to.
        host: HostName,
        sequence: u64,
    },
    /// Delete what is stored of a removed host.
    Purge(Purge),
    /// Deliver what hosts are to have.
    Deliver(Deliver),
}

/// What a leader dispatches from.
#[derive(Debug, Clone, Copy)]
pub struct Leader<'a> {
    /// The committed state.
    pub state: &'a State,
    /// The state after the append under way, if there is one. A command that it no longer wants is not sent, though the
    /// journal does not have it yet.
    pub decided: Option<&'a State>,
    /// The monotonic time at which the lease ends unless it is renewed.
    pub leased_until: Duration,
    /// Whether wall time can be relied on. If not, commands wait: by another clock they may be late.
    pub is_time_trusted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    Needed { from: Duration },
    Publishing,
    Stored { sequence: u64 },
}

/// Everything under way. It outlives leaderships, because requests to other systems do.
#[derive(Debug)]
pub struct Dispatcher {
    settings: DispatchSettings,
    epoch: u64,
    fence: Fence,
    /// Commands to publish, in order.
    todo: VecDeque<Order>,
    /// Commands in `todo`, on their way, or stored and not seen yet. Those seen since the last rescan are still
    /// included.
    known: HashSet<CommandId>,
    publishing: usize,
    /// Whether the state may have new commands that are not in `todo`.
    rescan: bool,
    jobs: Jobs,
    retractions: Paces<u64>,
    purges: Paces<Purge>,
}

impl Dispatcher {
    /// A dispatcher with nothing under way, in the process called `nonce`.
    pub fn new(settings: DispatchSettings, nonce: &str) -> Self {
        Self {
            jobs: Jobs::new(System::ALL.map(|system| (system, settings.limits(system))), nonce),
            settings,
            epoch: 0,
            fence: Fence::Needed { from: Duration::ZERO },
            todo: VecDeque::new(),
            known: HashSet::new(),
            publishing: 0,
            rescan: true,
            retractions: Paces::default(),
            purges: Paces::default(),
        }
    }

    /// A leadership begins with a new fence. Outcomes of an earlier leadership no longer count, but jobs under way are
    /// waited for, so that their answers are not taken for those of new ones.
    pub fn begin_leadership(&mut self, now: Now) {
        self.refence(now, Duration::ZERO);
        self.jobs.leadership_begins(now);
        self.retractions.leadership_begins();
        self.purges.leadership_begins();
    }

    /// A record has been committed.
    pub fn committed(&mut self, record: &Record) {
        self.rescan |= record.facts.iter().any(|fact| fact.affects(Part::Commands));
    }

    /// Begins everything that can begin now.
    pub fn begin_due(&mut self, leader: &Leader<'_>, now: Now) -> Vec<Dispatch> {
        let Leader { state, decided, leased_until, is_time_trusted } = *leader;
        let mut begun = Vec::new();
        if let Fence::Needed { from } = self.fence
            && from <= now.monotonic
        {
            self.fence = Fence::Publishing;
            begun.push(Dispatch::Fence { epoch: self.epoch });
        }
        if let Some(fence) = self.open_fence(state)
            && is_time_trusted
        {
            self.begin_commands(state, decided, fence, now, &mut begun);
        }
        self.begin_other_effects(state, leased_until, now, &mut begun);
        begun
    }

    /// Whether `state` includes everything that was in the control stream when this leadership began.
    pub fn has_read_control(&self, state: &State) -> bool {
        self.open_fence(state).is_some()
    }

    /// The fence under which commands may be published: of this leadership, in the journal, and read past.
    pub fn open_fence(&self, state: &State) -> Option<u64> {
        let Fence::Stored { sequence } = self.fence else { return None };
        state.fence.as_ref().filter(|fence| fence.sequence == sequence && fence.passed).map(|_| sequence)
    }

    fn begin_commands(
        &mut self,
        state: &State,
        decided: Option<&State>,
        fence: u64,
        now: Now,
        begun: &mut Vec<Dispatch>,
    ) {
        if self.rescan {
            self.rescan = false;
            self.known.retain(|id| is_wanted(state, id));
            for effect in sends(state) {
                if let Effect::Send(order) = effect
                    && self.known.insert(order.id.clone())
                {
                    self.todo.push_back(order);
                }
            }
        }
        while self.publishing < self.settings.publishes_max
            && let Some(order) = self.todo.pop_front()
        {
            // A command is not sent after its deadline, nor once it is decided that it is no longer wanted.
            if !order.is_late(now.wall) && is_wanted(decided.unwrap_or(state), &order.id) {
                self.publishing += 1;
                begun.push(Dispatch::Command { epoch: self.epoch, fence, order });
            }
        }
    }

    fn begin_other_effects(
        &mut self,
        state: &State,
        leased_until: Duration,
        now: Now,
        begun: &mut Vec<Dispatch>,
    ) {
        self.retractions.retain(|sequence| state.retractions.contains_key(sequence));
        self.purges.retain(|purge| {
            let removal = state.enrolment.removed.get(&purge.host);
            removal.is_some_and(|removal| !removal.purged && removal.announced == purge.announced)
        });
        let is_fence_open = self.has_read_control(state);
        let mut jobs = Vec::new();
        for effect in other_effects(state) {
            match effect {
                Effect::Job(job) if job.needs_fence() && !is_fence_open => {}
                Effect::Job(job) => jobs.push(job),
                Effect::NewFence { above } => {
                    if self.fence == (Fence::Stored { sequence: above }) {
                        self.refence(now, Duration::ZERO);
                    }
                }
                Effect::Retract { host, sequence } => {
                    if self.retractions.begin(sequence, now) {
                        begun.push(Dispatch::Retract { host, sequence });
                    }
                }
                Effect::Purge(purge) => {
                    if self.purges.begin(purge.clone(), now) {
                        begun.push(Dispatch::Purge(purge));
                    }
                }
                // Those have lists of their own.
                Effect::Send(_) | Effect::Manifest(_) => {}
            }
        }
        if may_write(Some(leased_until), now.monotonic) {
            begun.extend(self.jobs.begin(jobs, now).into_iter().map(Dispatch::Job));
        }
    }

    /// The publish of a fence was answered. Returns its sequence if it is stored and current: an input for the kernel.
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

    /// Whether nothing that still counts is under way.
    pub fn is_at_rest(&self) -> bool {
        let is_waiting =
            self.jobs.is_under_way() || self.retractions.is_under_way() || self.purges.is_under_way();
        self.publishing == 0 && self.fence != Fence::Publishing && !is_waiting
    }

    /// The publish of a command was answered.
    pub fn command_published(&mut self, now: Now, epoch: u64, order: Order, outcome: PublishOutcome) {
        if epoch != self.epoch {
            return;
        }
        self.publishing -= 1;
        match outcome {
            PublishOutcome::Stored => {}
            PublishOutcome::NotStored => self.todo.push_front(order),
            PublishOutcome::Fenced | PublishOutcome::Unknown => self.refence(now, FENCE_RETRY),
        }
    }

    /// A job has ended. Returns whether its outcome counts: not if the job was begun in an earlier leadership.
    pub fn job_done(&mut self, now: Now, id: JobId, report: &JobReport) -> bool {
        self.jobs.done(now, id, report)
    }

    /// What follows from the outcome of `job` is in the committed state.
    pub fn job_committed(&mut self, job: &Job) {
        self.jobs.committed(job);
    }

    /// A retraction was answered; a failed one is tried again later. Returns whether the answer counts: not if the
    /// retraction was begun in an earlier leadership.
    pub fn retraction_answered(&mut self, now: Now, sequence: u64) -> bool {
        self.retractions.done(&sequence, now)
    }

    /// A purge was answered, as a retraction is.
    pub fn purge_answered(&mut self, now: Now, purge: &Purge) -> bool {
        self.purges.done(purge, now)
    }

    /// Requires a new fence. What is on its way under the present one no longer counts; reading up to the new one shows
    /// what was stored.
    fn refence(&mut self, now: Now, pause: Duration) {
        self.epoch += 1;
        self.publishing = 0;
        self.todo.clear();
        self.known.clear();
        self.rescan = true;
        self.fence = Fence::Needed { from: now.monotonic + pause };
    }
}

/// Deletions of one kind, each of which is tried again until the journal says that it is done.
#[derive(Debug)]
struct Paces<K>(HashMap<K, Pace>);

impl<K> Default for Paces<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Paces<K> {
    /// Begins one if it is due and few enough are under way. Returns whether it did.
    fn begin(&mut self, key: K, now: Now) -> bool {
        let under_way = self.0.values().filter(|pace| pace.is_under_way()).count();
        under_way < DELETIONS_MAX && self.0.entry(key).or_default().begin(now)
    }

    /// One was answered. Returns whether that counts.
    fn done(&mut self, key: &K, now: Now) -> bool {
        self.0.get_mut(key).is_some_and(|pace| pace.done(now, DELETION_RETRY))
    }

    /// Keeps those that are still wanted, or under way.
    fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.0.retain(|key, pace| pace.is_under_way() || is_wanted(key));
    }

    fn leadership_begins(&mut self) {
        self.0.values_mut().for_each(Pace::leadership_begins);
    }

    fn is_under_way(&self) -> bool {
        self.0.values().any(Pace::is_under_way)
    }
}
