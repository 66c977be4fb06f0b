//! Retention: which part of the streams nobody needs any more.
//!
//! A snapshot contains everything before it. Once it has stood for a while, the streams have been inspected since, and
//! every live instance has the earlier records in its store, the journal is trimmed to it, and what hosts were sent and have
//! said before it is purged from the control stream. An instance that was away for longer begins with the snapshot, and
//! lacks that part of the history.
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

/// How long the other instances are listened to, from the beginning of a leadership or of a connection, before it counts
/// what their stores have: they say it every second.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

/// The journal, as it was last seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Its first message; `None` if it had none.
    pub(super) first: Option<u64>,
    /// Its last message.
    pub(super) last: u64,
    /// When the last inspection was begun that found everything.
    pub(super) intact_at: Option<Duration>,
}

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
    /// Since when the other instances are listened to.
    heard_since: Option<Duration>,
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

    /// From now on the other instances are listened to anew.
    pub(super) fn listen(&mut self) {
        self.heard_since = None;
    }

    /// Since when the next snapshot has stood, if it has stood for long enough.
    pub(super) fn stands_since(&self, now: Now, settings: RetentionSettings) -> Option<Duration> {
        let since = self.next.as_ref()?.since;
        (since + settings.snapshot_stands <= now.monotonic).then_some(since)
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

    /// What to delete now, if anything.
    pub(super) fn begin(&mut self, now: Now, settings: RetentionSettings, journal: Extent) -> Option<Trim> {
        let heard_since = *self.heard_since.get_or_insert(now.monotonic);
        if now.monotonic < heard_since + HEARD_WITHIN {
            return None;
        }
        if let Some(asked) = &mut self.asked
            && let Some(again) = asked.again
        {
            if now.monotonic < again {
                return None;
            }
            asked.again = Some(now.monotonic + RETRY);
            return Some(asked.trim);
        }
        let first = journal.first?;
        // A loss before the snapshot would leave no trace.
        self.stands_since(now, settings).filter(|since| journal.intact_at >= Some(*since))?;
        let is_due = |candidate: &mut Candidate| {
            let before = candidate.record.max(candidate.trim.journal_from.saturating_sub(1));
            let is_stored = self.stored_by_all.is_some_and(|stored| stored >= before);
            let is_too_long = journal.last.saturating_sub(first) > settings.journal_messages_max;
            is_stored || is_too_long
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
