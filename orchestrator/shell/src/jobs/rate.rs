//! The rate limit of all requests to a system.
//!
//! A server that accepts one request a second in bursts of three must never have to refuse one. A burst of two and one
//! request each 1.1 s leave room for clocks that differ and for requests that are delayed by up to a second. A new
//! leader starts with an empty bucket, because its predecessor may have just emptied its own.

use std::time::Duration;

use crate::clock::Now;
use crate::fleet_lock::RetryAfter;

/// The most requests in a burst: one slot is released, and the next one taken.
pub(super) const BURST: u32 = 2;
/// The longest that a server's `Retry-After` delays a release. The slot stays held until then.
const RELEASE_PAUSE_MAX: Duration = Duration::from_mins(1);

/// Until when a server does not want to be asked, in monotonic time.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    takes: Duration,
    releases: Duration,
}

impl Backoff {
    /// Applies the server's `Retry-After`. `spread` adds jitter.
    pub(super) fn extend(
        &mut self,
        now: Now,
        retry_after: Option<RetryAfter>,
        spread: impl Fn(Duration) -> Duration,
    ) {
        if let Some(RetryAfter::Server(pause)) = retry_after {
            self.takes = self.takes.max(now.monotonic + spread(pause));
            self.releases = self.releases.max(now.monotonic + spread(bounded(pause, true)));
        }
    }

    /// Whether the server may be asked for a slot, or for a release.
    pub(super) fn is_over(&self, now: Now, release: bool) -> bool {
        now.monotonic >= if release { self.releases } else { self.takes }
    }
}

/// How long a request waits if the server wants `pause`.
pub(super) fn bounded(pause: Duration, release: bool) -> Duration {
    if release { pause.min(RELEASE_PAUSE_MAX) } else { pause }
}
