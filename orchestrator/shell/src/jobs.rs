//! Jobs in systems outside of the bus: which one is begun next, and when it is retried.
//!
//! A refused request is retried at the retry interval. Where work takes its time, its answer may be looked at earlier for the
//! first time: the pauses double while the answer stays the same. After a failure, and while a release is refused, the pauses
//! start at one second and double up to the retry interval or one minute, whichever is shorter. `Retry-After` is
//! honoured within bounds. Every pause gets up to a quarter of jitter, so that sites refused together do not retry
//! together. A pause delays only the job that was answered, not another one about its subject. A token bucket limits all
//! requests to a system ([`rate`]).
//!
//! A job that is no longer wanted is not cut off, because a system without a fence may still carry it out. The next job
//! about its subject waits for its outcome, and until that has been committed: before, the state does not know of it.

mod pace;
mod rate;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use os_upgrade_kernel::{Job, JobDone, Subject, System};
use os_upgrade_protocol::GroupName;
use os_upgrade_provider_rules::Bucket;

pub(crate) use self::pace::Pace;
use self::rate::{BURST, Backoff, bounded};
use crate::clock::Now;
use crate::fleet_lock::{self, RetryAfter};

/// The shortest pause after a failure; it doubles with every further failure.
const FAILURE_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause after a failure, if the retry interval is longer.
const FAILURE_PAUSE_MAX: Duration = Duration::from_mins(1);
/// How many jobs may be under way in a system at once, if nothing is known of it.
const AT_ONCE: usize = 8;

/// Identifies a started job within this process.
pub type JobId = u64;

/// How often a system may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemLimits {
    /// How long to wait before a refused request is retried; jitter adds up to a quarter.
    pub retry: Duration,
    /// How long to wait after an answer that is not the one before. It doubles up to `retry` while the answer stays the same.
    pub retry_first: Duration,
    /// The mean time between two requests under load.
    pub interval: Duration,
    /// How many jobs may be under way at once.
    pub at_once: usize,
}

impl SystemLimits {
    /// The limits of a system whose answers mean a wait of the same length, however often they are repeated.
    pub const fn at_intervals(retry: Duration, interval: Duration) -> Self {
        Self { retry, retry_first: retry, interval, at_once: AT_ONCE }
    }
}

impl Default for SystemLimits {
    /// Gentle on any system.
    fn default() -> Self {
        Self::at_intervals(Duration::from_secs(10), Duration::from_millis(1_100))
    }
}

/// A job for the driver to carry out. It returns a [`JobReport`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedJob {
    /// Its id, returned with the report.
    pub id: JobId,
    /// What to do.
    pub job: Job,
}

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// The system's answer, or the failure.
    pub done: JobDone,
    /// How long the system does not want to be asked, if it says so.
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
    systems: BTreeMap<System, SystemJobs>,
    started: JobId,
}

impl Jobs {
    /// No jobs yet, in the process called `nonce`.
    pub(crate) fn new(limits: impl IntoIterator<Item = (System, SystemLimits)>, nonce: &str) -> Self {
        let jobs = |(system, limits)| (system, SystemJobs::new(limits, nonce));
        Self { systems: limits.into_iter().map(jobs).collect(), started: 0 }
    }

    /// A leadership begins. The outcomes of jobs still under way are ignored.
    pub(crate) fn leadership_begins(&mut self, now: Now) {
        self.systems.values_mut().for_each(|jobs| jobs.leadership_begins(now));
    }

    /// Whether a job is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.systems.values().any(|jobs| jobs.under_way() > 0)
    }

    /// Begins those of `wanted` that are due.
    pub(crate) fn begin(&mut self, wanted: Vec<Job>, now: Now) -> Vec<StartedJob> {
        let mut by_system: BTreeMap<System, Vec<Job>> = BTreeMap::new();
        for job in wanted {
            by_system.entry(job.system()).or_default().push(job);
        }
        let mut begun = Vec::new();
        for (system, jobs) in &mut self.systems {
            let wanted = by_system.remove(system).unwrap_or_default();
            begun.extend(jobs.begin(wanted, now, &mut self.started).map(|(id, job)| StartedJob { id, job }));
        }
        begun
    }

    /// A job has ended. Returns whether its outcome counts: not if the job was begun in an earlier leadership.
    pub(crate) fn done(&mut self, now: Now, id: JobId, report: &JobReport) -> bool {
        let job = report.done.job();
        self.systems.get_mut(&job.system()).is_some_and(|jobs| jobs.done(now, id, &job.subject(), report))
    }

    /// What follows from the outcome of `job` is in the committed state.
    pub(crate) fn committed(&mut self, job: &Job) {
        let jobs = self.systems.get_mut(&job.system()).and_then(|jobs| jobs.subjects.get_mut(&job.subject()));
        if let Some(jobs) = jobs {
            jobs.uncommitted = false;
        }
    }
}

/// The jobs in one system.
#[derive(Debug)]
struct SystemJobs {
    limits: SystemLimits,
    /// The process's name, as the seed of its jitter.
    nonce: String,
    subjects: HashMap<Subject, SubjectJobs>,
    bucket: Bucket,
    backoff: Backoff,
}

/// The jobs about one subject.
#[derive(Debug, Default)]
struct SubjectJobs {
    pace: Pace,
    /// The id of the last job that was begun.
    id: JobId,
    /// That job; `None` if it was begun in an earlier leadership.
    last: Option<Job>,
    /// Whether it has ended with an outcome that the committed state does not know yet.
    uncommitted: bool,
    /// How often it has been tried, if it is a release, or else how often in a row it got no clear answer.
    tries: u32,
    /// Its last answer, and how often in a row it was the same.
    answer: Option<(JobDone, u32)>,
    answers: u64,
}

impl SystemJobs {
    fn new(limits: SystemLimits, nonce: &str) -> Self {
        Self {
            limits,
            nonce: nonce.to_owned(),
            subjects: HashMap::new(),
            bucket: Bucket::empty(Duration::ZERO),
            backoff: Backoff::default(),
        }
    }

    fn leadership_begins(&mut self, now: Now) {
        self.bucket = Bucket::empty(now.monotonic);
        for jobs in self.subjects.values_mut() {
            jobs.pace.leadership_begins();
            jobs.uncommitted = false;
            // Another leader may have released the slot and taken it again.
            jobs.last = None;
            jobs.tries = 0;
            jobs.answer = None;
        }
    }

    fn under_way(&self) -> usize {
        self.subjects.values().filter(|jobs| jobs.pace.is_under_way()).count()
    }

    /// Begins those of `wanted` that are due. If not all can be, untried releases come first, then the jobs that have
    /// waited longest. Failing releases have no priority, so that they do not keep locks from being tried.
    fn begin(
        &mut self,
        wanted: Vec<Job>,
        now: Now,
        started: &mut JobId,
    ) -> impl Iterator<Item = (JobId, Job)> {
        let subjects: HashSet<Subject> = wanted.iter().map(Job::subject).collect();
        self.subjects.retain(|subject, jobs| {
            subjects.contains(subject) || jobs.uncommitted || !jobs.pace.is_at_rest(now)
        });
        let untried = self.pools_with_untried_releases(&wanted);
        let may_begin = |job: &Job| job.is_release() || job.pool().is_none_or(|pool| !untried.contains(pool));
        let wanted = wanted.into_iter().filter(may_begin);
        let mut due: Vec<_> = wanted.filter_map(|job| Some((self.urgency(&job, now)?, job))).collect();
        due.sort_by_key(|(urgency, _)| *urgency);
        let mut free = self.limits.at_once.saturating_sub(self.under_way());
        let mut begun = Vec::new();
        for (_, job) in due {
            // Of two jobs about one subject, the second waits for the first.
            if self.of_subject(&job).is_some_and(|jobs| jobs.pace.is_under_way()) {
                continue;
            }
            if free == 0 || !self.bucket.take(now.monotonic, self.limits.interval, BURST) {
                break;
            }
            free -= 1;
            *started += 1;
            self.subjects.entry(job.subject()).or_default().begin(now, *started, &job);
            begun.push((*started, job));
        }
        begun.into_iter()
    }

    /// Pools with a release that has not been tried yet. Locks in them wait: before the release they may be refused for
    /// lack of a free slot. A release that has been tried once holds up nothing.
    fn pools_with_untried_releases(&self, wanted: &[Job]) -> HashSet<GroupName> {
        let untried = wanted.iter().filter(|job| job.is_release() && self.tries(job) == 0);
        untried.filter_map(Job::pool).cloned().collect()
    }

    /// The job's sort key, the most urgent least; `None` if it may not begin now.
    fn urgency(&self, job: &Job, now: Now) -> Option<(bool, Duration, bool)> {
        let release = job.is_release();
        let due = self.of_subject(job).map_or(Some(Duration::ZERO), |jobs| jobs.due(job, now))?;
        let can_wait = !release || self.tries(job) > 0;
        self.backoff.is_over(now, release).then_some((can_wait, due, !release))
    }

    fn tries(&self, job: &Job) -> u32 {
        self.of_subject(job).filter(|jobs| jobs.is_last(job)).map_or(0, |jobs| jobs.tries)
    }

    /// A job about `subject` has ended.
    fn done(&mut self, now: Now, id: JobId, subject: &Subject, report: &JobReport) -> bool {
        let (limits, nonce) = (self.limits, &self.nonce);
        let Some(jobs) = self.subjects.get_mut(subject).filter(|jobs| jobs.id == id) else { return false };
        jobs.answers += 1;
        let answers = jobs.answers;
        let spread = |pause: Duration| with_jitter(pause, nonce, subject, answers);
        self.backoff.extend(now, report.retry_after, spread);
        let release = report.done.job().is_release();
        let own = jobs.pause(&report.done, limits);
        let wanted = report.retry_after.map_or(Duration::ZERO, RetryAfter::pause);
        let wanted = bounded(wanted, release);
        jobs.uncommitted = jobs.pace.done(now, spread(own.max(wanted)));
        jobs.uncommitted
    }

    /// What is known of the jobs about the subject of `job`.
    fn of_subject(&self, job: &Job) -> Option<&SubjectJobs> {
        self.subjects.get(&job.subject())
    }
}

impl SubjectJobs {
    fn is_last(&self, job: &Job) -> bool {
        self.last.as_ref() == Some(job)
    }

    /// The time since which `job` may begin; `None` if it may not yet. The pause of another job does not apply to it.
    fn due(&self, job: &Job, now: Now) -> Option<Duration> {
        let due = if self.is_last(job) {
            self.pace.due(now)
        } else {
            (!self.pace.is_under_way()).then_some(Duration::ZERO)
        };
        due.filter(|_| !self.uncommitted)
    }

    /// Begins a job that is due.
    fn begin(&mut self, now: Now, id: JobId, job: &Job) {
        self.id = id;
        if !self.is_last(job) {
            self.last = Some(job.clone());
            self.tries = 0;
            self.answer = None;
            self.pace.end_pause();
        }
        self.pace.begin(now);
    }

    /// How long to wait now, unless the system wants more.
    fn pause(&mut self, done: &JobDone, SystemLimits { retry, retry_first, .. }: SystemLimits) -> Duration {
        if done.is_answer() && !done.job().is_release() {
            self.tries = 0;
            let repeated = match &self.answer {
                Some((before, repeated)) if before == done => repeated.saturating_add(1),
                Some(_) | None => 0,
            };
            self.answer = Some((done.clone(), repeated));
            return doubled(retry_first, repeated).min(retry);
        }
        let pause = doubled(FAILURE_PAUSE_MIN, self.tries);
        self.tries = self.tries.saturating_add(1);
        pause.min(FAILURE_PAUSE_MAX).min(retry)
    }
}

/// `pause`, doubled so many times.
fn doubled(pause: Duration, times: u32) -> Duration {
    pause.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
}

/// `pause` plus up to a quarter, pseudo-random but reproducible.
fn with_jitter(pause: Duration, nonce: &str, subject: &Subject, answers: u64) -> Duration {
    let mut hasher = DefaultHasher::new();
    (nonce, subject, answers).hash(&mut hasher);
    let [.., a, b, c, d] = hasher.finish().to_be_bytes();
    fleet_lock::with_jitter(pause, u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests;
