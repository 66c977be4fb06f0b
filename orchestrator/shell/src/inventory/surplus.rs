//! Announcements in the stream that count for nothing. The leader deletes them, so that whoever reads the stream
//! from its beginning finds the same as those who have followed it, and so that no host fills it.

use std::collections::BTreeSet;
use std::time::Duration;

/// The most that are remembered. Of more the first are forgotten: on a follower the leader has deleted those long ago, and
/// on a leader they stay in the stream until an instance reads it again, at its start.
const SURPLUS_MAX: usize = 8_192;
/// The most that are deleted at once.
const DELETED_AT_ONCE_MAX: usize = 256;
/// The time between a failure and the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The announcements to delete.
#[derive(Debug, Default)]
pub(crate) struct Surplus {
    /// Their sequences in the stream.
    waiting: BTreeSet<u64>,
    /// Of these, the ones that are being deleted.
    under_way: Vec<u64>,
    not_before: Duration,
}

impl Surplus {
    pub(super) fn add(&mut self, sequence: u64) {
        self.waiting.insert(sequence);
        if self.waiting.len() > SURPLUS_MAX {
            self.waiting.pop_first();
        }
    }

    /// The sequences to delete now; `None` while a deletion is under way.
    pub(crate) fn begin(&mut self, monotonic: Duration) -> Option<Vec<u64>> {
        if !self.under_way.is_empty() || self.waiting.is_empty() || monotonic < self.not_before {
            return None;
        }
        self.under_way = self.waiting.iter().take(DELETED_AT_ONCE_MAX).copied().collect();
        Some(self.under_way.clone())
    }

    /// The first `count` of those under way were deleted. If these are not all, the next one could not be.
    pub(crate) fn deleted(&mut self, monotonic: Duration, count: usize) {
        let under_way = std::mem::take(&mut self.under_way);
        if count < under_way.len() {
            self.not_before = monotonic + RETRY_DELAY;
        }
        for sequence in under_way.iter().take(count) {
            self.waiting.remove(sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_is_deleted_in_order_and_again_after_a_failure() {
        let mut surplus = Surplus::default();
        let at = Duration::from_secs;
        for sequence in 1..=300 {
            surplus.add(sequence);
        }
        let range = |begun: Option<Vec<u64>>| begun.map(|all| (all[0], all[all.len() - 1]));
        assert_eq!(range(surplus.begin(at(0))), Some((1, 256)));
        assert_eq!(surplus.begin(at(0)), None, "one deletion at a time");
        surplus.deleted(at(0), 100);
        assert_eq!(surplus.begin(at(0)), None, "after a pause");
        assert_eq!(range(surplus.begin(at(1))), Some((101, 300)));
        surplus.deleted(at(1), 200);
        assert_eq!(surplus.begin(at(9)), None);
    }
}
