//! The lease: which instance may try to lead. It keeps instances from competing for the journal. It does not protect
//! against a stale leader: the fenced appends to the journal do.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::Now;
use crate::storage::StorageLimit;

/// How long a lease lasts after its last renewal.
pub const LEASE_TTL: Duration = Duration::from_secs(6);
/// How often a held lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);
/// How often a lease that another process holds is checked: a takeover begins at most this long after the lease has
/// ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// A revision counts as recent for this many renewals: as long as a follower waits for its leader, plus one.
const RECENT_RENEWALS: u64 = 3;
/// How many processes an entry names besides the last that was replaced.
const REPLACED_BEFORE_MAX: usize = 8;
/// How long an answer may take before the question is asked again.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The value of the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeaseHolder {
    /// The instance: the same across restarts.
    pub instance: String,
    /// The process: never the same twice.
    pub nonce: String,
    /// The process of the same instance from which this one has taken the lease, by its nonce. That one has ended, unless
    /// its data directory was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The processes from which the lease was taken in this way before that, the last first; at most
    /// [`REPLACED_BEFORE_MAX`]. While several copies take the lease in turns, each finds its own name here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced_before: Vec<String>,
    /// Whether it restores the streams. It takes no requests then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
}

impl LeaseHolder {
    /// The process `nonce` of `instance`.
    pub fn new(instance: &str, nonce: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            nonce: nonce.to_owned(),
            replaces: None,
            replaced_before: Vec::new(),
            restores: false,
        }
    }

    /// This process, when it takes the lease from `earlier`, a process of the same instance that has ended.
    #[must_use]
    pub fn replacing(mut self, earlier: &Self) -> Self {
        // The outcome of its own last write may have been unknown.
        if earlier.nonce == self.nonce {
            return self;
        }
        let known = earlier.replaced().chain(self.replaced()).filter(|nonce| **nonce != self.nonce);
        let mut before: Vec<String> = Vec::new();
        for nonce in known {
            if before.len() < REPLACED_BEFORE_MAX && *nonce != earlier.nonce && !before.contains(nonce) {
                before.push(nonce.clone());
            }
        }
        self.replaces = Some(earlier.nonce.clone());
        self.replaced_before = before;
        self
    }

    /// The processes of the same instance from which the lease was taken, the last first.
    fn replaced(&self) -> impl Iterator<Item = &String> {
        self.replaces.iter().chain(&self.replaced_before)
    }
}

/// A question about the lease. Its answer has the same number. Answers to earlier questions are ignored, because the
/// lease is held from the time of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    pub number: u64,
    /// The action to carry out.
    pub action: LeaseAction,
}

/// An action on the lease's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAction {
    /// Write the holder if there is no entry.
    Create(LeaseHolder),
    /// Write the holder if the entry still has this revision.
    Update { holder: LeaseHolder, revision: u64 },
    /// Delete the entry if it still has this revision, so that another instance need not wait for its expiry.
    Release { revision: u64 },
}

/// The outcome of a [`LeaseAction`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It is written, with this revision.
    Written {
        revision: u64,
        /// The bus's time of the write, if known.
        at: Option<DateTime<Utc>>,
    },
    /// Another process holds it, perhaps an earlier one of this instance.
    Taken {
        holder: LeaseHolder,
        /// The revision of the entry.
        revision: u64,
    },
    /// The entry is deleted.
    Released,
    /// Refused, because a limit is reached.
    Full(StorageLimit),
    /// There was no answer, or it could not be read.
    Failed,
}

/// A change of who holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseChange {
    /// This process now holds it.
    Gained,
    /// This process no longer holds it.
    Lost,
    /// Another process of this instance took it from this one, which is only possible if it has a copy of the data
    /// directory.
    Copied,
}

/// This process's view of the lease.
#[derive(Debug)]
pub struct Lease {
    me: LeaseHolder,
    held: Option<Held>,
    /// The other process that holds it, if known.
    other: Option<Other>,
    pending: Option<Pending>,
    /// The number of the last question.
    questions: u64,
    next: Duration,
    /// Whether to release it and not to request it again.
    leaving: bool,
    /// Whether to leave it to others for now.
    abstains: bool,
}

/// Another process that holds it.
#[derive(Debug)]
struct Other {
    holder: LeaseHolder,
    revision: u64,
    /// The monotonic time of the question that showed it.
    seen_at: Duration,
}

#[derive(Debug)]
struct Held {
    revision: u64,
    until: Duration,
}

#[derive(Debug)]
struct Pending {
    number: u64,
    at: Duration,
}

impl Lease {
    /// A lease that `me` does not hold yet.
    pub fn new(me: LeaseHolder) -> Self {
        Self {
            me,
            held: None,
            other: None,
            pending: None,
            questions: 0,
            next: Duration::ZERO,
            leaving: false,
            abstains: false,
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

    /// The monotonic time at which it expires unless it is renewed; `None` if this process does not hold it.
    pub fn held_until(&self) -> Option<Duration> {
        self.held.as_ref().map(|held| held.until)
    }

    /// The other instance that leads; `None` if that is unknown or was seen too long ago, or while the streams are restored.
    pub fn leader(&self) -> Option<&LeaseHolder> {
        self.seen().map(|(holder, _)| holder)
    }

    /// Whether a restoration holds it.
    pub fn is_restoring(&self) -> bool {
        self.other.as_ref().is_some_and(|other| other.holder.restores)
    }

    /// The same, with the revision at which that was seen.
    pub fn seen(&self) -> Option<(&LeaseHolder, u64)> {
        let leads = self.other.as_ref().filter(|other| !other.holder.restores);
        leads.map(|other| (&other.holder, other.revision))
    }

    /// Whether this process holds it and has renewed it only a few times since `revision`.
    pub fn is_recent(&self, revision: u64) -> bool {
        let held = self.held.as_ref().filter(|held| held.revision >= revision);
        held.is_some_and(|held| held.revision - revision <= RECENT_RENEWALS)
    }

    /// When question `number` was asked, on the monotonic clock; `None` if its answer is not awaited any more.
    pub fn asked_at(&self, number: u64) -> Option<Duration> {
        self.pending.as_ref().filter(|pending| pending.number == number).map(|pending| pending.at)
    }

    /// Renews a held lease at the next tick, because its answer shows the bus's clock.
    pub fn renew_soon(&mut self) {
        if self.is_held() {
            self.next = Duration::ZERO;
        }
    }

    /// Whether to leave it to others: it is neither requested nor renewed.
    pub fn abstain(&mut self, abstains: bool) {
        self.abstains = abstains;
    }

    /// Returns what to do now, and whether the lease has expired.
    pub fn tick(&mut self, now: Now) -> (Option<LeaseRequest>, Option<LeaseChange>) {
        let expired = self.held.as_ref().is_some_and(|held| held.until <= now.monotonic);
        let change = expired.then(|| {
            self.held = None;
            LeaseChange::Lost
        });
        self.other.take_if(|other| other.seen_at + LEASE_TTL <= now.monotonic);
        let waiting = self.pending.as_ref().is_some_and(|pending| now.monotonic < pending.at + ANSWER_WITHIN);
        if self.leaving {
            // If the answer to a renewal is missing, the last known revision is tried.
            let release = self.held.take_if(|_| !waiting);
            let question =
                release.map(|held| self.request(now, LeaseAction::Release { revision: held.revision }));
            return (question, change);
        }
        if waiting || now.monotonic < self.next || self.abstains {
            return (None, change);
        }
        let holder = self.me.clone();
        let action = match &self.held {
            Some(held) => LeaseAction::Update { holder, revision: held.revision },
            None => LeaseAction::Create(holder),
        };
        (Some(self.request(now, action)), change)
    }

    /// Releases the lease, once the question under way is answered, and requests it no more.
    pub fn leave(&mut self, now: Now) -> Option<LeaseRequest> {
        self.leaving = true;
        self.tick(now).0
    }

    /// Whether leaving is complete: there is nothing left to release or to wait for.
    pub fn is_left(&self) -> bool {
        self.leaving && self.held.is_none() && self.pending.is_none()
    }

    /// Handles the outcome of question `number`; outcomes of earlier questions are ignored.
    pub fn outcome(
        &mut self,
        now: Now,
        number: u64,
        outcome: &LeaseOutcome,
    ) -> (Option<LeaseRequest>, Option<LeaseChange>) {
        let Some(pending) = self.pending.take_if(|pending| pending.number == number) else {
            return (None, None);
        };
        self.next = now.monotonic + CHECK_INTERVAL;
        match outcome {
            LeaseOutcome::Written { revision, .. } => {
                self.next = now.monotonic + RENEW_INTERVAL;
                let gained = self.held.is_none().then_some(LeaseChange::Gained);
                // Counted from the question: the server's period began no earlier.
                self.held = Some(Held { revision: *revision, until: pending.at + LEASE_TTL });
                self.other = None;
                if self.leaving { self.tick(now) } else { (None, gained) }
            }
            LeaseOutcome::Taken { holder, .. } if self.is_replaced_by(holder) && !self.leaving => {
                self.held = None;
                (None, Some(LeaseChange::Copied))
            }
            // The earlier process of this instance has ended: this one has the lock of the data directory.
            LeaseOutcome::Taken { holder, revision }
                if holder.instance == self.me.instance && !self.leaving =>
            {
                self.me = self.me.clone().replacing(holder);
                let action = LeaseAction::Update { holder: self.me.clone(), revision: *revision };
                (Some(self.request(now, action)), None)
            }
            LeaseOutcome::Taken { holder, revision } => {
                self.other = Some(Other { holder: holder.clone(), revision: *revision, seen_at: pending.at });
                (None, self.held.take().map(|_| LeaseChange::Lost))
            }
            LeaseOutcome::Released | LeaseOutcome::Full(_) | LeaseOutcome::Failed => (None, None),
        }
    }

    /// Whether the lease was taken from this very process as if it had ended, and is `holder`'s since.
    fn is_replaced_by(&self, holder: &LeaseHolder) -> bool {
        holder.instance == self.me.instance && holder.replaced().any(|nonce| *nonce == self.me.nonce)
    }

    fn request(&mut self, now: Now, action: LeaseAction) -> LeaseRequest {
        self.questions += 1;
        let number = self.questions;
        self.pending = Some(Pending { number, at: now.monotonic });
        LeaseRequest { number, action }
    }
}
