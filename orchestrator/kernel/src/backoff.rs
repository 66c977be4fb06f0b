//! How long a host waits after a drain that was given up.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::jitter::jitter;

/// The pauses between the drains of a host: `first`, doubled each time up to `max`, and a part of `jitter`, so that
/// drains that were given up together are not tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause, without jitter.
    pub max: Duration,
    /// The most that is added.
    pub jitter: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Backoff {
    /// CKE's: five minutes, up to twenty, and up to five more.
    pub const DEFAULT: Self = Self {
        first: Duration::from_secs(5 * 60),
        max: Duration::from_secs(20 * 60),
        jitter: Duration::from_secs(5 * 60),
    };

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }

    /// The pause after `count` drains in a row, from 1, for `owner`, a run's host or an entry. The jitter is always the same for
    /// the same owner and count, so that every leader gets the same pause.
    pub fn pause(self, owner: &str, count: u32) -> TimeDelta {
        let factor = 1_u64.checked_shl(count.saturating_sub(1)).unwrap_or(u64::MAX);
        let pause = self.first.as_secs().saturating_mul(factor).min(self.max.as_secs());
        Duration::from_secs(pause).to_delta() + jitter(&format!("{owner} {count}"), self.jitter.to_delta())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_and_never_shrink_again() {
        let plain = Backoff { jitter: Duration::from_secs(0), ..Backoff::DEFAULT };
        let minutes = |count| plain.pause("7", count).num_minutes();
        assert_eq!(
            [1, 2, 3, 4, 55, 56, 57, 64, 65, u32::MAX].map(minutes),
            [5, 10, 20, 20, 20, 20, 20, 20, 20, 20]
        );
    }

    #[test]
    fn jitter_is_spread_and_the_same_for_every_leader() {
        let seconds = |index: u64| Backoff::DEFAULT.pause(&index.to_string(), 1).num_seconds();
        let all: Vec<i64> = (0..1_000).map(seconds).collect();
        assert!(all.iter().all(|pause| (300..=600).contains(pause)));
        assert!(all.iter().any(|pause| *pause < 330) && all.iter().any(|pause| *pause > 570));
        assert_eq!(all, (0..1_000).map(seconds).collect::<Vec<_>>());
    }
}
