//! Pacing of one thing that is asked for again and again until it is so: one question at a time, with pauses.

use std::time::Duration;

use crate::clock::Now;

/// The shortest pause after a failed unlock; it doubles with every further one.
const UNLOCK_RETRY_MIN: Duration = Duration::from_secs(1);

/// When something may be asked next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pace {
    under_way: bool,
    /// Whether the question under way was asked in an earlier leadership, whose answer says nothing any more.
    outdated: bool,
    next: Duration,
    unlocking: bool,
    /// How often it has been asked to take the slot back.
    unlocks: u32,
}

impl Pace {
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Whether the lock server has been asked to take the slot back, and has answered or not.
    pub(super) fn has_tried_to_unlock(&self) -> bool {
        self.unlocks > 0
    }

    /// Begins, unless it is under way or its pause is not over.
    pub(super) fn begin(&mut self, now: Now) -> bool {
        let may = !self.under_way && self.next <= now.monotonic;
        self.under_way |= may;
        may
    }

    /// What is under way belongs to an earlier leadership from now on.
    pub(super) fn leadership_begins(&mut self) {
        self.outdated = self.under_way;
        // What it has tried to give back may have been given back and taken anew by another leader.
        self.unlocking = false;
        self.unlocks = 0;
    }

    /// From now on a slot is to be given back: the first time at once.
    pub(super) fn turn_to_unlock(&mut self) {
        if !self.unlocking {
            self.unlocking = true;
            self.unlocks = 0;
            self.next = Duration::ZERO;
        }
    }

    /// The answer has come; the next question may be asked after `pause`, or earlier when a slot is to be given back.
    /// Whether it counts; if not, the question is asked again at once.
    pub(super) fn done(&mut self, now: Now, pause: Duration) -> bool {
        self.under_way = false;
        if std::mem::take(&mut self.outdated) {
            self.next = now.monotonic;
            return false;
        }
        let pause = if self.unlocking {
            let doubled =
                UNLOCK_RETRY_MIN.saturating_mul(1_u32.checked_shl(self.unlocks).unwrap_or(u32::MAX));
            self.unlocks = self.unlocks.saturating_add(1);
            doubled.min(pause)
        } else {
            pause
        };
        self.next = now.monotonic + pause;
        true
    }
}
