//! Whether a worker keeps its consumer, and where a new one starts to read its commands.
//!
//! The consumer has to agree with the state file. Where it does not, either side has lost something: the server its last
//! acknowledgements, because it was killed, or everything since some moment, because its machine was rolled back; or the
//! worker its last save. Sequences do not tell which, as they are assigned again. So a new consumer begins with the last
//! command of the host, earlier ones being no longer meant for it, and the state file tells whether that is a new one.

use chrono::TimeDelta;

use crate::StateFile;
use crate::limits::{CONTENDED_PAUSE_FIRST, CONTENDED_PAUSE_MAX, UNCONTENDED_AFTER};

/// The first message that a newly created consumer delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverFrom {
    /// The first one at or after this stream sequence.
    Sequence(u64),
    /// The last message on the worker's subject, if there is one, and then all later ones.
    LastOfSubject,
}

/// A host's consumer as the server reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerState {
    /// Whether it has the configuration that the worker would give it.
    pub as_configured: bool,
    /// The stream sequence of the last message that it delivered.
    pub delivered: u64,
    /// Everything up to this stream sequence is acknowledged.
    pub ack_floor: u64,
    /// How many messages are delivered but not acknowledged: at most one, the last one delivered.
    pub pending: usize,
    /// How many requests for messages wait. None is of this process, which sends its first one afterwards.
    pub waiting: usize,
}

/// What the state file contains about commands: stream sequences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedState {
    /// The last command that was settled.
    pub settled: Option<u64>,
    /// The command under way.
    pub current: Option<u64>,
}

impl From<&StateFile> for SavedState {
    fn from(file: &StateFile) -> Self {
        Self {
            settled: file.settled.map(|settled| settled.sequence),
            current: file.current.as_ref().map(|current| current.position.sequence),
        }
    }
}

/// Whether to keep the existing consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Keep the existing consumer.
    Keep,
    /// Create a consumer and replace an existing one.
    Make(DeliverFrom),
}

/// The stream sequence up to which commands may have been delivered to another process before this one opens `existing`
/// or replaces it; see [`crate::Received::last_sequence_at_open`]. The stream ends at `last_sequence`.
pub fn last_sequence_at_open(existing: Option<ConsumerState>, last_sequence: u64) -> u64 {
    existing.map_or(last_sequence, |existing| existing.delivered.max(last_sequence))
}

/// Whether the existing consumer of a stream that ends at `last_sequence` can be used, or from where a new one must
/// deliver.
///
/// It is replaced when its configuration differs, when it belongs to a longer stream, or when it does not agree with the
/// state file: a settled command is not acknowledged at it, or the one under way was not delivered by it. If the one under
/// way is acknowledged, the new one begins there, since the acknowledgement may have counted for another command at that
/// sequence. It is also replaced when it awaits an acknowledgement: a new consumer delivers that command now instead of after its
/// acknowledgement times out, if the process to which it was delivered died before it began, and shows whether the one
/// under way is still the one at its sequence. And when a request waits at it, which is of an earlier connection: across
/// accounts, a cluster does not notice that nobody listens to the answer any more, and would give the next command to
/// that request. In these two cases it agrees with the state file, so the new one goes on where it was.
pub fn plan(existing: Option<ConsumerState>, saved: SavedState, last_sequence: u64) -> Plan {
    let usable = |existing: &ConsumerState| {
        existing.as_configured
            && existing.delivered <= last_sequence
            && saved.settled.is_none_or(|settled| settled <= existing.ack_floor)
            && saved.current.is_none_or(|current| current <= existing.delivered)
    };
    let Some(existing) = existing.filter(usable) else { return Plan::Make(DeliverFrom::LastOfSubject) };
    let next = existing.ack_floor + 1;
    let from = saved.current.map_or(next, |current| current.min(next));
    if from == next && existing.pending == 0 && existing.waiting == 0 {
        return Plan::Keep;
    }
    Plan::Make(DeliverFrom::Sequence(from))
}

/// How often somebody else has deleted this worker's consumer. Another worker of the same host does that each time it
/// creates its own, and this one would do the same to it, without end and as fast as both can.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contention {
    deletions: u32,
}

impl Contention {
    /// The consumer was deleted after it had `lasted`. Returns the pause before it is created again.
    pub fn deleted(&mut self, lasted: TimeDelta) -> TimeDelta {
        if lasted >= UNCONTENDED_AFTER {
            self.deletions = 0;
        }
        let doublings = self.deletions.min(10);
        self.deletions = self.deletions.saturating_add(1);
        (CONTENDED_PAUSE_FIRST * (1 << doublings)).min(CONTENDED_PAUSE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each creates its consumer, which deletes the other's, which is created again after its pause.
    #[test]
    fn two_workers_of_one_host_slow_down() {
        let mut workers = [Contention::default(); 2];
        let (mut now, mut created) = (TimeDelta::zero(), [TimeDelta::zero(); 2]);
        let mut in_minute = Vec::new();
        for turn in 0.. {
            let deleted = turn % 2;
            now += workers[deleted].deleted(now - created[deleted]);
            created[deleted] = now;
            if now > TimeDelta::hours(1) {
                break;
            }
            in_minute.push(now.num_minutes());
        }
        let later = in_minute.iter().filter(|minute| **minute >= 10).count();
        assert!(later <= 50, "{later} consumers in 50 minutes");
        // The other worker is gone: the next deletion is somebody else's.
        assert_eq!(workers[0].deleted(UNCONTENDED_AFTER), CONTENDED_PAUSE_FIRST);
    }

    #[test]
    fn agreeing_consumers_are_kept() {
        let with_requests = |delivered, ack_floor, pending, waiting| {
            Some(ConsumerState { as_configured: true, delivered, ack_floor, pending, waiting })
        };
        let existing = |delivered, ack_floor, pending| with_requests(delivered, ack_floor, pending, 0);
        let saved = |settled, current| SavedState { settled, current };
        let from = |sequence| Plan::Make(DeliverFrom::Sequence(sequence));
        let last = Plan::Make(DeliverFrom::LastOfSubject);
        let foreign =
            ConsumerState { as_configured: false, delivered: 4, ack_floor: 4, pending: 0, waiting: 0 };
        for (existing, saved, expected) in [
            (None, saved(None, None), last),
            (None, saved(Some(4), None), last),
            (existing(4, 4, 0), saved(None, None), Plan::Keep),
            (existing(4, 4, 0), saved(Some(4), None), Plan::Keep),
            // Deleted while it was under way.
            (existing(7, 4, 0), saved(Some(4), Some(7)), Plan::Keep),
            // Delivered to a process that died before it began.
            (existing(7, 4, 1), saved(Some(4), None), from(5)),
            // Under way, if it is the same.
            (existing(7, 4, 1), saved(Some(4), Some(7)), from(5)),
            // A request of an earlier connection would get the next command.
            (with_requests(4, 4, 0, 1), saved(Some(4), None), from(5)),
            (with_requests(7, 4, 1, 1), saved(Some(4), Some(7)), from(5)),
            // It has forgotten that 4 was acknowledged, or delivered.
            (existing(4, 2, 1), saved(Some(4), None), last),
            (existing(2, 2, 0), saved(Some(4), None), last),
            // It has forgotten that 7 was delivered, or the worker that it was acknowledged.
            (existing(4, 4, 0), saved(Some(4), Some(7)), last),
            (existing(7, 7, 0), saved(Some(4), Some(7)), from(7)),
            // It belongs to a longer stream.
            (existing(10, 10, 0), saved(None, None), last),
            (Some(foreign), saved(Some(4), None), last),
        ] {
            assert_eq!(plan(existing, saved, 9), expected, "{existing:?} {saved:?}");
        }
    }
}
