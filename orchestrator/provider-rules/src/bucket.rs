//! The rate limit of all requests to a server: a token bucket.

use std::time::Duration;

/// Each request takes a token. Times are monotonic.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// When the bucket was empty, given the tokens that it has now.
    empty_at: Duration,
}

impl Bucket {
    /// A bucket that is empty now: another leader may have just emptied its own.
    pub const fn empty(now: Duration) -> Self {
        Self { empty_at: now }
    }

    /// When the next token is there, of which one is added each `interval`.
    pub(crate) fn next_at(self, interval: Duration) -> Duration {
        self.empty_at + interval
    }

    /// Takes a token; `false` if there is none. At most `burst` tokens are kept.
    pub fn take(&mut self, now: Duration, interval: Duration, burst: u32) -> bool {
        let full = now.saturating_sub(interval * burst);
        let one_less = self.empty_at.max(full) + interval;
        let taken = one_less <= now;
        if taken {
            self.empty_at = one_less;
        }
        taken
    }
}
