//! How often a system may be asked at all, about whichever host.
//!
//! A server that takes one request a second, and three at once, must never have reason to refuse one. With two at once
//! and one each 1.1 s there is room for requests that take up to a second longer on their way than others, and for
//! clocks that differ. Who begins to lead begins with nothing, for the one before may have used up what there was.

use std::time::Duration;

use crate::clock::Now;
use crate::fleetlock::RetryAfter;

/// How many requests may go out at once when there were none for a while: a slot given back, and the next one taken.
const BURST: u32 = 2;
/// The longest that a server which wants to be left alone is not asked to take something back. It is held until then.
const RELEASE_PUT_OFF_MAX: Duration = Duration::from_mins(1);

/// A bucket of tokens; a request takes one.
#[derive(Debug)]
pub(super) struct Bucket {
    /// The time in which one comes.
    interval: Duration,
    /// When it was empty, or would have been had none been lost for want of room.
    empty_at: Duration,
}

impl Bucket {
    /// A bucket that was empty when the process started.
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, empty_at: Duration::ZERO }
    }

    pub(super) fn empty(&mut self, now: Now) {
        self.empty_at = now.monotonic;
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Now) -> bool {
        let full = now.monotonic.saturating_sub(self.interval * BURST);
        let one_less = self.empty_at.max(full) + self.interval;
        let taken = one_less <= now.monotonic;
        if taken {
            self.empty_at = one_less;
        }
        taken
    }
}

/// Until when the server wants to be left alone.
#[derive(Debug, Default)]
pub(super) struct LeftAlone {
    takes: Duration,
    releases: Duration,
}

impl LeftAlone {
    /// The server has asked for it. `spread` adds what keeps several clients apart.
    pub(super) fn asked_for(
        &mut self,
        now: Now,
        retry_after: Option<RetryAfter>,
        spread: impl Fn(Duration) -> Duration,
    ) {
        if let Some(RetryAfter::Server(pause)) = retry_after {
            self.takes = self.takes.max(now.monotonic + spread(pause));
            self.releases = self.releases.max(now.monotonic + spread(put_off(pause, true)));
        }
    }

    /// Whether it may be asked for something, or to take something back.
    pub(super) fn is_over(&self, now: Now, release: bool) -> bool {
        now.monotonic >= if release { self.releases } else { self.takes }
    }
}

/// For how long a question is put off by a server that asked for `pause`.
pub(super) fn put_off(pause: Duration, release: bool) -> Duration {
    if release { pause.min(RELEASE_PUT_OFF_MAX) } else { pause }
}
