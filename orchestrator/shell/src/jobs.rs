//! Jobs in systems outside of the bus: which of them is begun next, and when again.
//!
//! What a system has refused is asked for again at every retry interval. After a failure the pauses begin with a second
//! and double up to that, and to no more than a minute; so they do while something is not taken back. A system that says
//! how long it wants to be left alone is, within bounds. Every pause is drawn out by up to a quarter, so that sites which
//! were refused together do not come back together. Above all that stands how often a system may be asked at all
//! ([`rate`]).
//!
//! A job that is no longer wanted is not cut off: systems without a fence may still carry out what they have been asked,
//! and the contrary job waits for its return.

mod pace;
mod rate;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use os_upgrade_kernel::{Job, JobDone, System};
use os_upgrade_protocol::{GroupName, HostName};

pub(crate) use self::pace::Pace;
use self::rate::{Bucket, LeftAlone, put_off};
use crate::clock::Now;
use crate::fleetlock::{self, RetryAfter};

/// The shortest pause after a failure; it doubles with every further one.
const FAILURE_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause after a failure, where the retry interval is longer.
const FAILURE_PAUSE_MAX: Duration = Duration::from_mins(1);
/// How many jobs may be under way in a system at once.
const UNDER_WAY_MAX: usize = 8;

/// What tells a job that was begun from every other that this process has begun.
pub type JobId = u64;

/// How a system may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemLimits {
    /// How long to wait before what was refused is asked for again; up to a quarter more is waited.
    pub retry: Duration,
    /// The mean time between two requests when there is much to ask.
    pub interval: Duration,
}

/// A job to be carried out. It comes back with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedJob {
    /// To be handed back.
    pub id: JobId,
    /// What is to be done.
    pub job: Job,
    /// It must not leave this process at this monotonic time or later: another may lead by then.
    pub before: Duration,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// What the system said.
    pub done: JobDone,
    /// How long it wants to be left alone.
    pub retry_after: Option<RetryAfter>,
}

impl From<JobDone> for JobReport {
    fn from(done: JobDone) -> Self {
        Self { done, retry_after: None }
    }
}

/// The jobs in all systems.
#[derive(Debug)]
pub(crate) struct Jobs {
    systems: BTreeMap<System, Outside>,
    started: JobId,
}

impl Jobs {
    /// None has been begun, in the process called `nonce`.
    pub(crate) fn new(limits: impl IntoIterator<Item = (System, SystemLimits)>, nonce: &str) -> Self {
        let outside = |(system, limits)| (system, Outside::new(limits, nonce));
        Self { systems: limits.into_iter().map(outside).collect(), started: 0 }
    }

    /// Another may have led before. What is under way comes back, and no longer counts.
    pub(crate) fn leadership_begins(&mut self, now: Now) {
        self.systems.values_mut().for_each(|outside| outside.leadership_begins(now));
    }

    /// Whether something has been begun and has not come back.
    pub(crate) fn is_under_way(&self) -> bool {
        self.systems.values().any(|outside| outside.under_way() > 0)
    }

    /// Those of `wanted` that are begun now, to leave this process before `before`.
    pub(crate) fn begin(&mut self, wanted: Vec<Job>, now: Now, before: Duration) -> Vec<StartedJob> {
        let mut of_system: BTreeMap<System, Vec<Job>> = BTreeMap::new();
        for job in wanted {
            of_system.entry(job.system()).or_default().push(job);
        }
        let mut begun = Vec::new();
        for (system, outside) in &mut self.systems {
            let wanted = of_system.remove(system).unwrap_or_default();
            begun.extend(outside.begin(wanted, now, &mut self.started).map(|(id, job)| StartedJob {
                id,
                job,
                before,
            }));
        }
        begun
    }

    /// A job has come back. Whether that counts: not when it was begun in an earlier leadership.
    pub(crate) fn done(&mut self, now: Now, id: JobId, report: &JobReport) -> bool {
        let job = report.done.job();
        self.systems.get_mut(&job.system()).is_some_and(|outside| outside.done(now, id, job.host(), report))
    }
}

/// The jobs in one system.
#[derive(Debug)]
struct Outside {
    retry: Duration,
    /// What makes this process's pauses differ from those of others.
    nonce: String,
    hosts: HashMap<HostName, HostJobs>,
    bucket: Bucket,
    left_alone: LeftAlone,
}

/// The jobs about one host.
#[derive(Debug, Default)]
struct HostJobs {
    pace: Pace,
    /// The last that was begun.
    id: JobId,
    /// Whether something is to be given back.
    releasing: bool,
    /// How often that has been tried, or the system has failed to say yes or no.
    tries: u32,
    answers: u64,
}

impl Outside {
    fn new(SystemLimits { retry, interval }: SystemLimits, nonce: &str) -> Self {
        Self {
            retry,
            nonce: nonce.to_owned(),
            hosts: HashMap::new(),
            bucket: Bucket::new(interval),
            left_alone: LeftAlone::default(),
        }
    }

    fn leadership_begins(&mut self, now: Now) {
        self.bucket.empty(now);
        for jobs in self.hosts.values_mut() {
            jobs.pace.leadership_begins();
            // What it has tried to give back may have been given back and taken anew by another leader.
            jobs.releasing = false;
            jobs.tries = 0;
        }
    }

    fn under_way(&self) -> usize {
        self.hosts.values().filter(|jobs| jobs.pace.is_under_way()).count()
    }

    /// Those of `wanted` that are begun now. Where not all can be, a release that nobody has tried comes first, and then
    /// whatever has waited longest: a system that takes nothing back is no reason to ask it for nothing.
    fn begin(
        &mut self,
        wanted: Vec<Job>,
        now: Now,
        started: &mut JobId,
    ) -> impl Iterator<Item = (JobId, Job)> {
        let hosts: HashSet<&HostName> = wanted.iter().map(Job::host).collect();
        self.hosts.retain(|host, jobs| hosts.contains(host) || !jobs.pace.is_at_rest(now));
        let untried = self.pools_with_untried_releases(&wanted);
        let may_begin = |job: &Job| job.is_release() || job.pool().is_none_or(|pool| !untried.contains(pool));
        let wanted = wanted.into_iter().filter(may_begin);
        let mut due: Vec<_> = wanted.filter_map(|job| Some((self.urgency(&job, now)?, job))).collect();
        due.sort_by_key(|(urgency, _)| *urgency);
        let mut free = UNDER_WAY_MAX.saturating_sub(self.under_way());
        let mut begun = Vec::new();
        for (_, job) in due {
            // Of two about one host the first is begun now, and the other once that is back.
            if self.of(job.host()).pace.is_under_way() {
                continue;
            }
            if free == 0 || !self.bucket.take(now) {
                break;
            }
            free -= 1;
            *started += 1;
            let jobs = self.of(job.host());
            jobs.id = *started;
            jobs.pace.begin(now);
            begun.push((*started, job));
        }
        begun.into_iter()
    }

    /// Pools to which something is to be given back, and nobody has tried it yet: who takes from one before is refused
    /// where there is nothing else in it, and waits in vain. A system that takes nothing back holds up nobody.
    fn pools_with_untried_releases(&self, wanted: &[Job]) -> HashSet<GroupName> {
        let tried = |host| self.hosts.get(host).is_some_and(|jobs| jobs.releasing && jobs.tries > 0);
        let untried = wanted.iter().filter(|job| job.is_release() && !tried(job.host()));
        untried.filter_map(Job::pool).cloned().collect()
    }

    /// How urgent the job is, the most urgent least, if it may be begun now.
    fn urgency(&mut self, job: &Job, now: Now) -> Option<(bool, Duration, bool)> {
        let release = job.is_release();
        let jobs = self.of(job.host());
        jobs.turn_to(release);
        let due = jobs.pace.due(now)?;
        let can_wait = !release || jobs.tries > 0;
        self.left_alone.is_over(now, release).then_some((can_wait, due, !release))
    }

    /// A job about `host` has come back. What was granted is not asked for again at once either: the fact that says so
    /// is not in the journal yet.
    fn done(&mut self, now: Now, id: JobId, host: &HostName, report: &JobReport) -> bool {
        let (retry, nonce) = (self.retry, &self.nonce);
        let Some(jobs) = self.hosts.get_mut(host).filter(|jobs| jobs.id == id) else { return false };
        jobs.answers += 1;
        let answers = jobs.answers;
        let spread = |pause: Duration| drawn_out(pause, nonce, host, answers);
        self.left_alone.asked_for(now, report.retry_after, spread);
        // What came of a lock is no try of the release that is wanted by now, nor a reason for it to wait.
        let is_of_now = report.done.job().is_release() == jobs.releasing;
        let own = if is_of_now { jobs.pause(report.done.is_answer(), retry) } else { Duration::ZERO };
        let asked_for = report.retry_after.map_or(Duration::ZERO, RetryAfter::pause);
        let asked_for = put_off(asked_for, jobs.releasing);
        jobs.pace.done(now, spread(own.max(asked_for)))
    }

    fn of(&mut self, host: &HostName) -> &mut HostJobs {
        if !self.hosts.contains_key(host) {
            self.hosts.insert(host.clone(), HostJobs::default());
        }
        self.hosts.get_mut(host).expect("it is there")
    }
}

impl HostJobs {
    /// From now on something is to be given back, or to be had: what made the one wait is no reason for the other to.
    fn turn_to(&mut self, release: bool) {
        if self.releasing != release {
            self.releasing = release;
            self.tries = 0;
            self.pace.end_pause();
        }
    }

    /// How long to wait now, if the system does not want more.
    fn pause(&mut self, is_answer: bool, retry: Duration) -> Duration {
        if is_answer && !self.releasing {
            self.tries = 0;
            return retry;
        }
        let doubled = FAILURE_PAUSE_MIN.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX));
        self.tries = self.tries.saturating_add(1);
        doubled.min(FAILURE_PAUSE_MAX).min(retry)
    }
}

/// `pause` and up to a quarter more, by chance as far as anybody can tell.
fn drawn_out(pause: Duration, nonce: &str, host: &HostName, answers: u64) -> Duration {
    let mut hasher = DefaultHasher::new();
    (nonce, host, answers).hash(&mut hasher);
    let [.., a, b, c, d] = hasher.finish().to_be_bytes();
    fleetlock::drawn_out(pause, u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests;
