//! The lease: who may try to lead. It saves two instances from getting in each other's way; what keeps a stale leader
//! from doing harm is the fence of the journal, not this.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::Now;

/// How long a lease lasts after its last renewal.
pub const LEASE_TTL: Duration = Duration::from_secs(6);
/// How long to wait before a lease that is held is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait before a lease that another holds is looked at again: what a take-over may take beyond the time
/// that the lease has left.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// What was seen so many renewals ago is recent: the time that a follower waits for its leader, and one more.
const RECENT_RENEWALS: u64 = 3;
/// How long an answer may take before the question is asked again.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// What stands in the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeaseHolder {
    /// The instance: the same across restarts.
    pub instance: String,
    /// The process: never the same twice.
    pub nonce: String,
}

/// A question about the lease. Its answer has the same number: that of an earlier one says nothing any more, because
/// the time for which the lease is held counts from when it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseQuestion {
    /// Its number.
    pub number: u64,
    /// What is to be done.
    pub action: LeaseAction,
}

/// What the shell has to do about the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAction {
    /// Write the holder if nobody holds it.
    Create(LeaseHolder),
    /// Write the holder if the entry still has this revision.
    Update {
        /// The holder.
        holder: LeaseHolder,
        /// The revision.
        revision: u64,
    },
    /// Delete the entry if it still has this revision, so that another need not wait until it has run out.
    Release {
        /// The revision.
        revision: u64,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It is written, with this revision.
    Written {
        /// The revision.
        revision: u64,
        /// When, by the bus's clock, if it has said so.
        at: Option<DateTime<Utc>>,
    },
    /// Somebody holds it; perhaps an earlier process of this instance.
    Taken {
        /// Who.
        holder: LeaseHolder,
        /// The revision of the entry.
        revision: u64,
    },
    /// It is given back.
    Released,
    /// No answer, or one that could not be read.
    Failed,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseChange {
    /// This process holds it now.
    Gained,
    /// It holds it no longer.
    Lost,
}

/// This process's view of the lease.
#[derive(Debug)]
pub struct Lease {
    me: LeaseHolder,
    held: Option<Held>,
    /// Who else held it.
    other: Option<Other>,
    asked: Option<Asked>,
    /// How many questions there have been.
    questions: u64,
    next: Duration,
    /// Whether it is to be given back, and not to be asked for again.
    leaving: bool,
    skew: Option<TimeDelta>,
}

/// Somebody else who holds it.
#[derive(Debug)]
struct Other {
    holder: LeaseHolder,
    revision: u64,
    /// When that was asked.
    asked: Duration,
}

#[derive(Debug)]
struct Held {
    revision: u64,
    until: Duration,
}

#[derive(Debug)]
struct Asked {
    number: u64,
    at: Duration,
    wall: DateTime<Utc>,
}

impl Asked {
    /// Our clock minus the bus's, when the bus did what was asked at `at` by its own clock and the answer came `now`.
    /// It did so in between, so a time in between shows no difference.
    fn skew(&self, at: DateTime<Utc>, now: Now) -> TimeDelta {
        if at < self.wall { self.wall - at } else { (now.wall - at).min(TimeDelta::zero()) }
    }
}

impl Lease {
    /// A lease that `me` does not hold yet.
    pub fn new(me: LeaseHolder) -> Self {
        Self {
            me,
            held: None,
            other: None,
            asked: None,
            questions: 0,
            next: Duration::ZERO,
            leaving: false,
            skew: None,
        }
    }

    /// This process.
    pub fn me(&self) -> &LeaseHolder {
        &self.me
    }

    /// Whether this process holds it.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Until when this process holds it unless it is renewed, in monotonic time.
    pub fn held_until(&self) -> Option<Duration> {
        self.held.as_ref().map(|held| held.until)
    }

    /// Who else holds it, as far as is known; nobody, when that was so too long ago to be still true.
    pub fn other(&self) -> Option<&LeaseHolder> {
        self.other.as_ref().map(|other| &other.holder)
    }

    /// Who else holds it, and the revision at which that was seen.
    pub fn seen(&self) -> Option<(&LeaseHolder, u64)> {
        self.other.as_ref().map(|other| (&other.holder, other.revision))
    }

    /// Whether this process holds it, and has not renewed it often since `revision`.
    pub fn is_recent(&self, revision: u64) -> bool {
        let held = self.held.as_ref().filter(|held| held.revision >= revision);
        held.is_some_and(|held| held.revision - revision <= RECENT_RENEWALS)
    }

    /// Our clock minus the bus's, as the last renewal showed it. Renewals go on whatever else happens, so a clock that
    /// steps is noticed by the next one.
    pub fn skew(&self) -> Option<TimeDelta> {
        self.skew
    }

    /// Time has passed: what to do, and what has changed by that alone.
    pub fn tick(&mut self, now: Now) -> (Option<LeaseQuestion>, Option<LeaseChange>) {
        let expired = self.held.as_ref().is_some_and(|held| held.until <= now.monotonic);
        let change = expired.then(|| {
            self.held = None;
            LeaseChange::Lost
        });
        self.other.take_if(|other| other.asked + LEASE_TTL <= now.monotonic);
        let waiting = self.asked.as_ref().is_some_and(|asked| now.monotonic < asked.at + ANSWER_WITHIN);
        if self.leaving {
            // An answer that has not come by now would not tell the revision either: what is known is tried.
            let release = self.held.take_if(|_| !waiting);
            let action = release.map(|held| self.ask(now, LeaseAction::Release { revision: held.revision }));
            return (action, change);
        }
        if waiting || now.monotonic < self.next {
            return (None, change);
        }
        let holder = self.me.clone();
        let action = match &self.held {
            Some(held) => LeaseAction::Update { holder, revision: held.revision },
            None => LeaseAction::Create(holder),
        };
        (Some(self.ask(now, action)), change)
    }

    /// Gives the lease back, once what is under way has been answered, and asks for it no more.
    pub fn leave(&mut self, now: Now) -> Option<LeaseQuestion> {
        self.leaving = true;
        self.tick(now).0
    }

    /// Whether nothing more can be done to give it back.
    pub fn is_left(&self) -> bool {
        self.leaving && self.held.is_none() && self.asked.is_none()
    }

    /// The shell did as it was told.
    pub fn outcome(
        &mut self,
        now: Now,
        number: u64,
        outcome: &LeaseOutcome,
    ) -> (Option<LeaseQuestion>, Option<LeaseChange>) {
        let Some(asked) = self.asked.take_if(|asked| asked.number == number) else {
            return (None, None);
        };
        self.next = now.monotonic + LOOK_INTERVAL;
        match outcome {
            LeaseOutcome::Written { revision, at } => {
                self.skew = at.map(|at| asked.skew(at, now)).or(self.skew);
                self.next = now.monotonic + RENEW_INTERVAL;
                let gained = self.held.is_none().then_some(LeaseChange::Gained);
                // From when the question was asked: the server's time began no earlier.
                self.held = Some(Held { revision: *revision, until: asked.at + LEASE_TTL });
                self.other = None;
                if self.leaving { self.tick(now) } else { (None, gained) }
            }
            // An earlier process of this instance is gone: the data directory is locked, and this one has it.
            LeaseOutcome::Taken { holder, revision }
                if holder.instance == self.me.instance && !self.leaving =>
            {
                let action = LeaseAction::Update { holder: self.me.clone(), revision: *revision };
                (Some(self.ask(now, action)), None)
            }
            LeaseOutcome::Taken { holder, revision } => {
                self.other = Some(Other { holder: holder.clone(), revision: *revision, asked: asked.at });
                (None, self.held.take().map(|_| LeaseChange::Lost))
            }
            LeaseOutcome::Released | LeaseOutcome::Failed => (None, None),
        }
    }

    fn ask(&mut self, now: Now, action: LeaseAction) -> LeaseQuestion {
        self.questions += 1;
        let number = self.questions;
        self.asked = Some(Asked { number, at: now.monotonic, wall: now.wall });
        LeaseQuestion { number, action }
    }
}
