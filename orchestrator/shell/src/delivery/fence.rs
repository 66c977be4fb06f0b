//! This leader's fence in the stream of what hosts are to have.

use std::time::Duration;

use super::action::DesiredFenced;
use crate::clock::Now;

/// How long to wait before a fence is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// How long to wait while the stream is another site's, which only people can end.
const CROSSED_RETRY: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Fence {
    /// Counts fences: outcomes under an earlier one do not count.
    epoch: u64,
    stage: Stage,
    /// The sequence of the first fence that was stored in this leadership.
    first: Option<u64>,
    crossed_site: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Needed { from: Duration },
    Publishing,
    Stored { sequence: u64 },
}

impl Default for Fence {
    fn default() -> Self {
        Self { epoch: 0, stage: Stage::Needed { from: Duration::ZERO }, first: None, crossed_site: None }
    }
}

impl Fence {
    /// A leadership begins, which needs one at once.
    pub(super) fn leadership_begins(&mut self, now: Now) {
        self.first = None;
        self.renew(now, Duration::ZERO);
    }

    /// Another one is needed, after `pause`.
    pub(super) fn renew(&mut self, now: Now, pause: Duration) {
        self.epoch += 1;
        self.stage = Stage::Needed { from: now.monotonic + pause };
    }

    /// Begins to publish one if that is needed. Returns its epoch.
    pub(super) fn begin(&mut self, now: Now) -> Option<u64> {
        let is_due = matches!(self.stage, Stage::Needed { from } if from <= now.monotonic);
        if is_due {
            self.stage = Stage::Publishing;
        }
        is_due.then_some(self.epoch)
    }

    /// Its epoch and sequence, if it is stored.
    pub(super) const fn stored(&self) -> Option<(u64, u64)> {
        match self.stage {
            Stage::Stored { sequence } => Some((self.epoch, sequence)),
            Stage::Needed { .. } | Stage::Publishing => None,
        }
    }

    /// The sequence of the first fence of this leadership; 0 before one is stored. Items that are older are of earlier leaderships: if the state
    /// does not know them by now, it never will. A later fence would not do: what was stored before it may be on its way to the journal.
    pub(super) fn first(&self) -> u64 {
        self.first.unwrap_or_default()
    }

    /// Whether outcomes under the fence of `epoch` count.
    pub(super) const fn is_current(&self, epoch: u64) -> bool {
        self.epoch == epoch
    }

    /// The publish was answered. Returns the other site's name when it is found that the stream is another's.
    pub(super) fn answered(&mut self, now: Now, epoch: u64, outcome: DesiredFenced) -> Option<String> {
        if epoch != self.epoch || self.stage != Stage::Publishing {
            return None;
        }
        let again = |pause| Stage::Needed { from: now.monotonic + pause };
        let crossed = match outcome {
            DesiredFenced::Stored(sequence) => {
                self.stage = Stage::Stored { sequence };
                self.first.get_or_insert(sequence);
                None
            }
            // The next append will show who leads.
            DesiredFenced::Superseded | DesiredFenced::Unknown => {
                self.stage = again(RETRY);
                return None;
            }
            DesiredFenced::CrossedSite { site } => {
                self.stage = again(CROSSED_RETRY);
                Some(site)
            }
        };
        let is_new = crossed.is_some() && self.crossed_site != crossed;
        self.crossed_site = crossed;
        self.crossed_site.clone().filter(|_| is_new)
    }

    pub(super) fn crossed_site(&self) -> Option<&str> {
        self.crossed_site.as_deref()
    }
}
