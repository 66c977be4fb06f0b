//! Questions to the lock server: which of them is asked next, and when again.
//!
//! What was denied is asked for again at every retry interval. After a failure the pauses begin with a second and double
//! up to that, and to no more than a minute; so they do while a slot is not taken back. A server that says how long it
//! wants to be left alone is, within bounds. Every pause is drawn out by up to a quarter, so that sites which were
//! refused together do not come back together. Above all that stands how often the server may be asked at all
//! ([`super::rate`]).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use os_upgrade_kernel::{LockOutcome, State};
use os_upgrade_protocol::{GroupName, HostName};

use super::Dispatch;
use super::pace::Pace;
use super::rate::{Bucket, LeftAlone, put_off};
use crate::clock::Now;
use crate::fleetlock::{self, RetryAfter};

/// The shortest pause after a failure; it doubles with every further one.
const FAILURE_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause after a failure, where the retry interval is longer.
const FAILURE_PAUSE_MAX: Duration = Duration::from_mins(1);
/// How many questions may be under way at once.
const UNDER_WAY_MAX: usize = 8;

/// What the lock server is to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) host: HostName,
    pub(super) group: GroupName,
    /// Whether it is to take the slot back.
    pub(super) unlock: bool,
}

/// All questions to the lock server.
#[derive(Debug)]
pub(super) struct LockCalls {
    retry: Duration,
    /// What makes this process's pauses differ from those of others.
    nonce: String,
    hosts: HashMap<HostName, HostCalls>,
    bucket: Bucket,
    left_alone: LeftAlone,
}

/// The questions about one host.
#[derive(Debug, Default)]
struct HostCalls {
    pace: Pace,
    unlocking: bool,
    /// How often it has been asked to take the slot back, or has failed to say yes or no.
    tries: u32,
    answers: u64,
}

impl LockCalls {
    /// Nothing has been asked. A denied slot is asked for again after `retry`; one request a `request_interval` goes
    /// out.
    pub(super) fn new(retry: Duration, request_interval: Duration, nonce: &str) -> Self {
        Self {
            retry,
            nonce: nonce.to_owned(),
            hosts: HashMap::new(),
            bucket: Bucket::new(request_interval),
            left_alone: LeftAlone::default(),
        }
    }

    /// Another may have led before.
    pub(super) fn leadership_begins(&mut self, now: Now) {
        self.bucket.empty(now);
        for calls in self.hosts.values_mut() {
            calls.pace.leadership_begins();
            // What it has tried to give back may have been given back and taken anew by another leader.
            calls.unlocking = false;
            calls.tries = 0;
        }
    }

    /// Forgets hosts of which no slot is left.
    pub(super) fn forget_others(&mut self, state: &State) {
        self.hosts.retain(|host, calls| calls.pace.is_under_way() || state.slots.contains_key(host));
    }

    /// Whether something has been asked and not been answered.
    pub(super) fn is_under_way(&self) -> bool {
        self.hosts.values().any(|calls| calls.pace.is_under_way())
    }

    /// Whether the server has been asked to take the slot of `host` back, and has answered or not.
    pub(super) fn has_tried_to_unlock(&self, host: &HostName) -> bool {
        self.hosts.get(host).is_some_and(|calls| calls.unlocking && calls.tries > 0)
    }

    /// Those of `wanted` that are asked now, to leave this process before `before`. Where not all can be, a slot that
    /// nobody has tried to give back comes first, and then whatever has waited longest: a server that does not take
    /// its slots back is no reason to ask it for none.
    pub(super) fn ask(&mut self, wanted: Vec<Question>, now: Now, before: Duration) -> Vec<Dispatch> {
        let mut due: Vec<_> = wanted.into_iter().filter_map(|question| self.due(question, now)).collect();
        due.sort_by_key(|(urgency, _)| *urgency);
        let mut free = UNDER_WAY_MAX.saturating_sub(self.under_way());
        let mut asked = Vec::new();
        for (_, Question { host, group, unlock }) in due {
            if free == 0 || !self.bucket.take(now) {
                break;
            }
            free -= 1;
            self.of(&host).pace.begin(now);
            asked.push(if unlock {
                Dispatch::Unlock { host, group, before }
            } else {
                Dispatch::Lock { host, group, before }
            });
        }
        asked
    }

    /// The question with its urgency, the most urgent least, if it may be asked now.
    fn due(&mut self, question: Question, now: Now) -> Option<((bool, Duration, bool), Question)> {
        let unlock = question.unlock;
        let calls = self.of(&question.host);
        calls.turn_to(unlock);
        let due = calls.pace.due(now)?;
        let can_wait = !unlock || calls.tries > 0;
        self.left_alone.is_over(now, unlock).then_some(((can_wait, due, !unlock), question))
    }

    /// The server has answered, or has not, about `host`. What was granted is not asked for again at once either: the
    /// fact that says so is not in the journal yet. Whether the answer counts: not when it was asked for in an earlier
    /// leadership.
    pub(super) fn answered(
        &mut self,
        now: Now,
        host: &HostName,
        outcome: &LockOutcome,
        retry_after: Option<RetryAfter>,
    ) -> bool {
        let (retry, nonce) = (self.retry, &self.nonce);
        let Some(calls) = self.hosts.get_mut(host) else { return false };
        calls.answers += 1;
        let answers = calls.answers;
        let spread = |pause: Duration| drawn_out(pause, nonce, host, answers);
        self.left_alone.asked_for(now, retry_after, spread);
        let own = calls.pause(outcome, retry);
        let asked_for = retry_after.map_or(Duration::ZERO, RetryAfter::pause);
        let asked_for = put_off(asked_for, calls.unlocking);
        calls.pace.done(now, spread(own.max(asked_for)))
    }

    fn under_way(&self) -> usize {
        self.hosts.values().filter(|calls| calls.pace.is_under_way()).count()
    }

    fn of(&mut self, host: &HostName) -> &mut HostCalls {
        if !self.hosts.contains_key(host) {
            self.hosts.insert(host.clone(), HostCalls::default());
        }
        self.hosts.get_mut(host).expect("it is there")
    }
}

impl HostCalls {
    /// From now on a slot is to be given back, or to be had: what made the one wait is no reason for the other to.
    fn turn_to(&mut self, unlock: bool) {
        if self.unlocking != unlock {
            self.unlocking = unlock;
            self.tries = 0;
            self.pace.end_pause();
        }
    }

    /// How long to wait after this answer, if the server does not want more.
    fn pause(&mut self, outcome: &LockOutcome, retry: Duration) -> Duration {
        let is_answer = match outcome {
            LockOutcome::Granted | LockOutcome::Denied { .. } => true,
            LockOutcome::Unreachable { .. } | LockOutcome::Protocol { .. } => false,
        };
        if is_answer && !self.unlocking {
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
