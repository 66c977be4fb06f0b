//! What the leader remembers of one host with one provider.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::due::Phase;
use crate::failure::Failure;
use crate::now::Now;
use crate::validator::Validator;

/// The due time of a pair that waits for nothing.
pub(super) const NEVER: Duration = Duration::MAX;

/// Identifies a question within this process.
pub type Ticket = u64;

/// Identifies a request with questions: the ticket of its first one.
pub type BatchId = Ticket;

/// A host with a provider.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) phase: Phase,
    /// The time between two of its polls, if it is not that of the provider.
    pub(super) interval: Option<Duration>,
    /// When it is asked next, in monotonic time, or [`NEVER`]. Not while it is asked.
    pub(super) due: Duration,
    /// Whether it goes before those that are not.
    pub(super) urgent: bool,
    /// Whether somebody, or a run, wants it to be asked, so that the question is no poll.
    pub(super) wanted: bool,
    /// Whether it is asked.
    pub(super) under_way: Option<UnderWay>,
    /// That of the content received last; absent if the host is to have nothing.
    pub(super) validator: Option<Validator>,
    /// When the provider last said what the host is to have.
    pub(super) confirmed_at: Option<DateTime<Utc>>,
    /// The failures since then: how many, and the last one.
    pub(super) failed: Option<(u32, Failure)>,
}

/// A question that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnderWay {
    pub(super) ticket: Ticket,
    /// The request that it is part of.
    pub(super) batch: BatchId,
    /// Whether its outcome counts. It does not once the provider was changed or the host left.
    pub(super) counts: bool,
    /// Whether the pair is asked again right afterwards.
    pub(super) again: bool,
    /// Whether somebody wants that.
    pub(super) wanted_again: bool,
}

impl UnderWay {
    /// The question with `ticket`, whose outcome counts if nothing happens.
    pub(super) const fn new(ticket: Ticket, batch: BatchId) -> Self {
        Self { ticket, batch, counts: true, again: false, wanted_again: false }
    }

    /// The same question, whose outcome no longer counts.
    pub(super) const fn discounted(self) -> Self {
        Self { counts: false, again: false, wanted_again: false, ..self }
    }
}

/// What is known of a host with a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairStatus<'a> {
    /// When the provider last said what the host is to have.
    pub confirmed_at: Option<DateTime<Utc>>,
    /// How often it has failed since.
    pub failures: u32,
    /// How it failed last, if it has failed since.
    pub failure: Option<&'a Failure>,
    /// Whether it is being asked.
    pub under_way: bool,
    /// In how long it is due, if it is not being asked and is polled; it may have to wait for others. Zero if it is overdue.
    pub due_in: Option<Duration>,
}

impl Pair {
    /// A pair of which nothing is known.
    pub(super) const fn new(phase: Phase, due: Duration) -> Self {
        Self {
            phase,
            interval: None,
            due,
            urgent: false,
            wanted: false,
            under_way: None,
            validator: None,
            confirmed_at: None,
            failed: None,
        }
    }

    /// Forgets what was said; it is due at `due`. What is under way no longer counts.
    pub(super) fn forget(&mut self, due: Duration) {
        let (interval, under_way) = (self.interval, self.under_way.map(UnderWay::discounted));
        *self = Self { interval, under_way, ..Self::new(self.phase, due) };
    }

    pub(super) fn status(&self, now: Now) -> PairStatus<'_> {
        let due_in = self.due.saturating_sub(now.monotonic);
        PairStatus {
            confirmed_at: self.confirmed_at,
            failures: self.failed.as_ref().map_or(0, |(failures, _)| *failures),
            failure: self.failed.as_ref().map(|(_, failure)| failure),
            under_way: self.under_way.is_some(),
            due_in: (self.under_way.is_none() && self.due != NEVER).then_some(due_in),
        }
    }
}
