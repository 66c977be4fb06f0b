//! Where a worker's consumer starts to read its commands.

use chrono::{DateTime, Utc};

use crate::Position;

/// The first message that a newly created consumer delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverFrom {
    /// The first one at or after this stream sequence.
    Sequence(u64),
    /// The last message on the worker's subject, if there is one, and then all later ones.
    LastOfSubject,
}

/// The stream at the time the consumer is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamState {
    /// When the stream was created.
    pub created: DateTime<Utc>,
    /// Its last sequence.
    pub last_sequence: u64,
}

/// Where to start, given the last position that the worker has settled.
///
/// A consumer that starts beyond the end of its stream silently skips the next messages. So a position beyond the end
/// (the stream has lost messages) is ignored, as is one in an earlier stream of the same name.
pub fn deliver_from(settled: Option<Position>, stream: StreamState) -> DeliverFrom {
    match settled {
        Some(position)
            if position.sequence <= stream.last_sequence && position.published >= stream.created =>
        {
            DeliverFrom::Sequence(position.sequence + 1)
        }
        Some(_) | None => DeliverFrom::LastOfSubject,
    }
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

/// What the state file contains about commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedState {
    /// The position up to which commands are settled.
    pub settled: Option<Position>,
    /// The stream sequence of the command under way.
    pub current: Option<u64>,
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
/// or replaces it; see [`crate::Received::last_sequence_at_open`].
pub fn last_sequence_at_open(existing: Option<ConsumerState>, stream: StreamState) -> u64 {
    existing.map_or(stream.last_sequence, |existing| existing.delivered.max(stream.last_sequence))
}

/// Whether the existing consumer can be used, or from where a new one must deliver.
///
/// It is replaced when its configuration differs, when it belongs to another stream, or when it has lost
/// acknowledgements: a server that was killed forgets the last ones and would redeliver a settled command, and nothing
/// else until that command's acknowledgement times out. It is also replaced when it delivered a command to a process
/// that died before it began: a new consumer delivers that command now instead of after its acknowledgement times out.
/// And when a request waits at it, which is of an earlier connection: across accounts, a cluster does not notice that
/// nobody listens to the answer any more, and would give the next command to that request.
pub fn plan(existing: Option<ConsumerState>, saved: SavedState, stream: StreamState) -> Plan {
    let replace = Plan::Make(deliver_from(saved.settled, stream));
    let Some(existing) = existing else { return replace };
    let usable = existing.as_configured
        && existing.delivered <= stream.last_sequence
        && saved.settled.is_none_or(|settled| existing.ack_floor >= settled.sequence);
    if !usable {
        return replace;
    }
    let is_known = existing.pending == 0 || saved.current == Some(existing.delivered);
    if is_known && existing.waiting == 0 {
        return Plan::Keep;
    }
    Plan::Make(DeliverFrom::Sequence(existing.ack_floor + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_consumers_are_kept() {
        let time = |second| DateTime::from_timestamp(second, 0).unwrap();
        let settled = |sequence| Some(Position { sequence, published: time(100) });
        let stream = StreamState { created: time(0), last_sequence: 9 };
        let with_requests = |delivered, ack_floor, pending, waiting| {
            Some(ConsumerState { as_configured: true, delivered, ack_floor, pending, waiting })
        };
        let existing = |delivered, ack_floor, pending| with_requests(delivered, ack_floor, pending, 0);
        let saved = |settled, current| SavedState { settled, current };
        let from = |sequence| Plan::Make(DeliverFrom::Sequence(sequence));
        let last = Plan::Make(DeliverFrom::LastOfSubject);
        for (existing, saved, expected) in [
            (None, saved(None, None), last),
            (None, saved(settled(4), None), from(5)),
            (existing(4, 4, 0), saved(settled(4), None), Plan::Keep),
            (existing(7, 4, 1), saved(settled(4), Some(7)), Plan::Keep),
            // Delivered to a process that died before it began.
            (existing(7, 4, 1), saved(settled(4), None), from(5)),
            // A request of an earlier connection would get the next command.
            (with_requests(4, 4, 0, 1), saved(settled(4), None), from(5)),
            (with_requests(7, 4, 1, 1), saved(settled(4), Some(7)), from(5)),
            // It has forgotten that 4 was acknowledged.
            (existing(4, 2, 1), saved(settled(4), None), from(5)),
            // It belongs to a longer stream.
            (existing(10, 10, 0), saved(None, None), last),
        ] {
            assert_eq!(plan(existing, saved, stream), expected, "{existing:?} {saved:?}");
        }
        let foreign =
            ConsumerState { as_configured: false, delivered: 4, ack_floor: 4, pending: 0, waiting: 0 };
        assert_eq!(plan(Some(foreign), saved(settled(4), None), stream), from(5));
    }

    #[test]
    fn positions_of_other_streams_are_ignored() {
        let time = |second| DateTime::from_timestamp(second, 0).unwrap();
        let at = |sequence, second| Some(Position { sequence, published: time(second) });
        for (settled, created, last_sequence, expected) in [
            (None, 0, 0, DeliverFrom::LastOfSubject),
            (None, 0, 9, DeliverFrom::LastOfSubject),
            (at(4, 100), 0, 9, DeliverFrom::Sequence(5)),
            (at(9, 100), 0, 9, DeliverFrom::Sequence(10)),
            (at(10, 100), 0, 9, DeliverFrom::LastOfSubject),
            (at(4, 100), 100, 9, DeliverFrom::Sequence(5)),
            (at(4, 100), 101, 9, DeliverFrom::LastOfSubject),
        ] {
            let stream = StreamState { created: time(created), last_sequence };
            assert_eq!(deliver_from(settled, stream), expected, "{settled:?} {stream:?}");
        }
    }
}
