//! Retention: which part of the streams nobody needs any more.
//!
//! A snapshot contains everything before it. Once it has stood for a while and every live instance has the earlier records
//! in its store, the journal is trimmed to it, and what hosts were sent and have said before it is purged from the control
//! stream. An instance that was away for longer begins with the snapshot, and lacks that part of the history.
//!
//! What is deleted once may be deleted again: a deposed leader that does it late does no harm.

use std::time::Duration;

use os_upgrade_kernel::State;

use super::known::unanswered;
use crate::clock::Now;
use crate::journal::follow::Follower;

/// The parameters of retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// How long a snapshot stands before anything is deleted because of it. A NATS server that loses power may lose what it
    /// has stored in its last `sync_interval`, 2 minutes by default, and yet have deleted what was before.
    pub snapshot_stands: Duration,
    /// How many messages the journal may have before it is trimmed although a live instance's store is behind.
    pub journal_messages_max: u64,
}

/// How long to wait before the streams are trimmed again after that failed.
const RETRY: Duration = Duration::from_mins(1);

/// What to delete from the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// The first message of the journal that stays: that at which a complete snapshot starts.
    pub journal_from: u64,
    /// Messages to and from hosts are deleted from the control stream below this sequence.
    pub control_from: u64,
}

/// What is known of snapshots and of what depends on the messages before them.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// The last record that the stores of all live instances have; `None` while that is unknown.
    stored_by_all: Option<u64>,
    /// The snapshot to which the streams are trimmed next.
    next: Option<Candidate>,
    /// The last trim that was asked for.
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Candidate {
    trim: Trim,
    /// The last record of which `trim` takes account.
    record: u64,
    since: Duration,
}

#[derive(Debug)]
struct Asked {
    trim: Trim,
    /// When it is asked for again; `None` once it is done.
    again: Option<Duration>,
}

impl Retention {
    /// The stores of all live instances have the journal up to this record.
    pub(super) fn stored(&mut self, by_all: Option<u64>) {
        self.stored_by_all = by_all;
    }

    /// Notes the newest snapshot that `follower` has seen.
    pub(super) fn observe(&mut self, now: Now, follower: &Follower) {
        let newest = follower.snapshot;
        let latest =
            self.next.as_ref().map(|next| &next.trim).or(self.asked.as_ref().map(|asked| &asked.trim));
        // A newer one does not take the place of one that is waiting: with snapshots in quick succession, none would stand
        // for long enough.
        if newest == 0 || self.next.is_some() || latest.is_some_and(|latest| latest.journal_from >= newest) {
            return;
        }
        let trim = Trim { journal_from: newest, control_from: unneeded_before(&follower.journaled()) };
        self.next = Some(Candidate { trim, record: follower.last_record(), since: now.monotonic });
    }

    /// What to delete now, if anything. `journal_first` is where the journal begins.
    pub(super) fn begin(
        &mut self,
        now: Now,
        settings: RetentionSettings,
        journal_first: Option<u64>,
        journal_last: u64,
    ) -> Option<Trim> {
        if let Some(asked) = &mut self.asked
            && let Some(again) = asked.again
        {
            if now.monotonic < again {
                return None;
            }
            asked.again = Some(now.monotonic + RETRY);
            return Some(asked.trim);
        }
        let first = journal_first?;
        let is_due = |candidate: &mut Candidate| {
            let before = candidate.record.max(candidate.trim.journal_from.saturating_sub(1));
            let is_stored = self.stored_by_all.is_some_and(|stored| stored >= before);
            let is_too_long = journal_last.saturating_sub(first) > settings.journal_messages_max;
            candidate.since + settings.snapshot_stands <= now.monotonic && (is_stored || is_too_long)
        };
        let trim = self.next.take_if(is_due)?.trim;
        self.asked = Some(Asked { trim, again: Some(now.monotonic + RETRY) });
        Some(trim)
    }

    /// A trim was carried out, or not.
    pub(super) fn trimmed(&mut self, trim: Trim, done: bool) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| done && asked.trim == trim) {
            asked.again = None;
        }
    }
}

/// The first sequence of the control stream of which `state` does not have everything that hosts were sent and have said.
/// What a slot is held for stays: an older backup would not know of it.
fn unneeded_before(state: &State) -> u64 {
    let held = state.slots.values().filter_map(|slot| Some(slot.command?.sequence));
    let retracted = state.retractions.keys().copied();
    unanswered(state).chain(held).chain(retracted).chain([state.control + 1]).min().unwrap_or(0)
}

#[cfg(test)]
mod tests;
