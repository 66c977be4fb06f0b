//! How often a cluster is asked: all jobs, previews and looks at the nodes together, so that what operators allow holds however
//! many nodes are under way.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A rate of requests. Clones share it.
#[derive(Debug, Clone)]
pub struct RequestRate {
    interval: Duration,
    /// When the next request may be sent.
    next: Arc<Mutex<Instant>>,
}

/// The right to send one request, now.
#[must_use]
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// That of a client without a limit.
    pub(super) const fn at_once() -> Self {
        Self(())
    }
}

impl RequestRate {
    /// At most so many requests a second. They are sent at even intervals, since a burst helps nobody.
    pub fn per_second(requests: NonZeroU32) -> Self {
        let interval = Duration::from_secs(1) / requests.get();
        Self { interval, next: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Waits for the turn of one request. Whoever asks first is first.
    pub(super) async fn turn(&self) -> Turn {
        let now = Instant::now();
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let at = (*next).max(now);
            *next = at + self.interval;
            at
        };
        // A timer waits for a millisecond at least.
        if at > now {
            tokio::time::sleep_until(at).await;
        }
        Turn(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_of_all_clones_share_the_rate() {
        let rate = RequestRate::per_second(NonZeroU32::new(50).unwrap());
        let begin = Instant::now();
        let mut times = Vec::new();
        for rate in [rate.clone(), rate.clone(), rate.clone()] {
            let _: Turn = rate.turn().await;
            times.push(begin.elapsed().as_millis());
        }
        // What is not used is not saved up.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for rate in [rate.clone(), rate] {
            let _: Turn = rate.turn().await;
            times.push(begin.elapsed().as_millis());
        }
        assert_eq!(times, [0, 20, 40, 1_040, 1_060]);
    }
}
