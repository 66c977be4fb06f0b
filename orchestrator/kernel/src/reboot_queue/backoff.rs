//! How long a host waits after a drain that was given up.

use chrono::TimeDelta;
use os_upgrade_calendar::Duration;
use serde::{Deserialize, Serialize};

use crate::jitter::jitter;
use crate::reason::Reason;

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

/// The first pause, in seconds, where only budgets keep a node from being drained: one is often spent for seconds, and allows the
/// next pod to go once the last one is ready elsewhere.
const BUDGET_FIRST_SECS: u64 = 10;

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

    /// The pause after `count` drains in a row, from 1, for `owner`, a run's host or an entry, the last of which was given up for this
    /// `reason`. The jitter is always the same for the same owner and count, so that every leader gets the same pause.
    pub fn pause(self, owner: &str, count: u32, reason: Option<&Reason>) -> TimeDelta {
        let by_budgets = matches!(reason, Some(Reason::DrainRefused { pods }) if pods.are_kept_by_budgets());
        let first =
            if by_budgets { self.first.as_secs().min(BUDGET_FIRST_SECS) } else { self.first.as_secs() };
        let factor = 1_u64.checked_shl(count.saturating_sub(1)).unwrap_or(u64::MAX);
        let pause = Duration::from_secs(first.saturating_mul(factor).min(self.max.as_secs())).to_delta();
        let jitter_max = self.jitter.to_delta();
        let jitter_max = if by_budgets { jitter_max.min(pause) } else { jitter_max };
        pause + jitter(&format!("{owner} {count}"), jitter_max)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::node::{Pod, PodObstacle, Pods};

    #[test]
    fn pauses_double_up_to_the_maximum_and_never_shrink_again() {
        let plain = Backoff { jitter: Duration::from_secs(0), ..Backoff::DEFAULT };
        let minutes = |count| plain.pause("7", count, None).num_minutes();
        assert_eq!(
            [1, 2, 3, 4, 55, 56, 57, 64, 65, u32::MAX].map(minutes),
            [5, 10, 20, 20, 20, 20, 20, 20, 20, 20]
        );
    }

    #[test]
    fn spent_budget_is_tried_again_soon() {
        let refused = |obstacle: PodObstacle| {
            let (namespace, name, since) = ("shop".to_owned(), "db-0".to_owned(), DateTime::UNIX_EPOCH);
            let pods = Pods {
                count: 1,
                first: vec![Pod { namespace, name, owner: None, obstacle, since }],
                kubelet_silent: false,
            };
            Reason::DrainRefused { pods }
        };
        let budget = refused(PodObstacle::Budget { budgets: vec!["db".to_owned()] });
        let plain = Backoff { jitter: Duration::from_secs(0), ..Backoff::DEFAULT };
        let seconds = |count| plain.pause("7", count, Some(&budget)).num_seconds();
        assert_eq!([1, 2, 3, 7, 8, 64, 65].map(seconds), [10, 20, 40, 640, 1_200, 1_200, 1_200]);
        let jittered = |count| Backoff::DEFAULT.pause("7", count, Some(&budget)).num_seconds();
        assert!((10..=20).contains(&jittered(1)) && (640..=940).contains(&jittered(7)));
        // A job takes its time, and a budget that never allows an eviction too.
        for other in [PodObstacle::JobRunning, PodObstacle::UncountedPods { budget: "db".to_owned() }] {
            assert_eq!(plain.pause("7", 1, Some(&refused(other))).num_minutes(), 5);
        }
        let short = Backoff { first: Duration::from_secs(2), ..plain };
        assert_eq!(short.pause("7", 1, Some(&budget)).num_seconds(), 2);
    }

    #[test]
    fn jitter_is_spread_and_the_same_for_every_leader() {
        let seconds = |index: u64| Backoff::DEFAULT.pause(&index.to_string(), 1, None).num_seconds();
        let all: Vec<i64> = (0..1_000).map(seconds).collect();
        assert!(all.iter().all(|pause| (300..=600).contains(pause)));
        assert!(all.iter().any(|pause| *pause < 330) && all.iter().any(|pause| *pause > 570));
        assert_eq!(all, (0..1_000).map(seconds).collect::<Vec<_>>());
    }
}
