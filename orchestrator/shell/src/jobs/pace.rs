//! Pacing of one request that is repeated until it succeeds: one attempt at a time, with pauses.

use std::time::Duration;

use crate::clock::Now;

/// When the next attempt may begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    under_way: bool,
    /// Whether the attempt under way began in an earlier leadership, so that its answer does not count.
    outdated: bool,
    next: Duration,
}

impl Pace {
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Whether it is neither under way nor pausing.
    pub(crate) fn is_at_rest(&self, now: Now) -> bool {
        self.due(now).is_some()
    }

    /// The time since which an attempt may begin; `None` while one is under way or the pause lasts.
    pub(crate) fn due(&self, now: Now) -> Option<Duration> {
        (!self.under_way && self.next <= now.monotonic).then_some(self.next)
    }

    /// Begins an attempt, unless one is under way or the pause lasts. Returns whether it did.
    pub(crate) fn begin(&mut self, now: Now) -> bool {
        let may = self.due(now).is_some();
        self.under_way |= may;
        may
    }

    /// Marks an attempt under way as one of an earlier leadership.
    pub(crate) fn leadership_begins(&mut self) {
        self.outdated = self.under_way;
    }

    /// Ends the pause.
    pub(crate) fn end_pause(&mut self) {
        self.next = Duration::ZERO;
    }

    /// The attempt was answered; the next may begin after `pause`. Returns whether the answer counts; if not, the next
    /// attempt may begin at once.
    pub(crate) fn done(&mut self, now: Now, pause: Duration) -> bool {
        self.under_way = false;
        let counts = !std::mem::take(&mut self.outdated);
        self.next = now.monotonic + if counts { pause } else { Duration::ZERO };
        counts
    }
}
