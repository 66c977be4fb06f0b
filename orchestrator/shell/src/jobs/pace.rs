//! Pacing of one thing that is asked for again and again until it is so: one question at a time, with pauses.

use std::time::Duration;

use crate::clock::Now;

/// When something may be asked next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    under_way: bool,
    /// Whether the question under way was asked in an earlier leadership, whose answer says nothing any more.
    outdated: bool,
    next: Duration,
}

impl Pace {
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Whether it is neither under way nor in a pause.
    pub(crate) fn is_at_rest(&self, now: Now) -> bool {
        self.due(now).is_some()
    }

    /// From when on it may be asked, unless it is under way or its pause is not over.
    pub(crate) fn due(&self, now: Now) -> Option<Duration> {
        (!self.under_way && self.next <= now.monotonic).then_some(self.next)
    }

    /// Begins, unless it is under way or its pause is not over.
    pub(crate) fn begin(&mut self, now: Now) -> bool {
        let may = self.due(now).is_some();
        self.under_way |= may;
        may
    }

    /// What is under way belongs to an earlier leadership from now on.
    pub(crate) fn leadership_begins(&mut self) {
        self.outdated = self.under_way;
    }

    /// There is no reason to wait any more.
    pub(crate) fn end_pause(&mut self) {
        self.next = Duration::ZERO;
    }

    /// The answer has come; the next question may be asked after `pause`. Whether it counts; if not, the question is
    /// asked again at once.
    pub(crate) fn done(&mut self, now: Now, pause: Duration) -> bool {
        self.under_way = false;
        let counts = !std::mem::take(&mut self.outdated);
        self.next = now.monotonic + if counts { pause } else { Duration::ZERO };
        counts
    }
}
