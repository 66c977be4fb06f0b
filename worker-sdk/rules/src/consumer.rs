//! From where a worker's consumer reads its commands.

use chrono::{DateTime, Utc};

use crate::Position;

/// The first message that a newly created consumer delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverFrom {
    /// The first one at or after this stream sequence.
    Sequence(u64),
    /// The last message of the worker's subject, if there is one, and then what comes.
    LastOfSubject,
}

/// The stream as it stands when the consumer is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamState {
    /// When the stream was made.
    pub created: DateTime<Utc>,
    /// Its last sequence.
    pub last_sequence: u64,
}

/// Where to start, given what the worker has settled.
///
/// A consumer started beyond the end of its stream silently skips what comes next, so a position that the stream has
/// not reached (it has lost messages) counts as none, as does one in an earlier stream of the same name.
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

/// A host's consumer as the server shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerState {
    /// Whether it is configured as the worker would.
    pub as_configured: bool,
    /// The stream sequence that it delivered last.
    pub delivered: u64,
    /// Everything up to this stream sequence is acknowledged.
    pub ack_floor: u64,
    /// How many messages are delivered and not acknowledged; at most one, the last that was delivered.
    pub pending: usize,
}

/// The command under way, and up to where commands are settled, by the state file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Up to where commands are settled.
    pub settled: Option<Position>,
    /// The stream sequence of the command under way.
    pub current: Option<u64>,
}

/// What to do about the consumer that is there, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// It is the right one.
    Keep,
    /// One is to be made, instead of any that is there.
    Make(DeliverFrom),
}

/// Up to where commands may have been given to another process when `existing` is opened, or another made in its place; see
/// [`crate::Received::opened_at`].
pub fn opened_at(existing: Option<ConsumerState>, stream: StreamState) -> u64 {
    existing.map_or(stream.last_sequence, |existing| existing.delivered.max(stream.last_sequence))
}

/// Whether the consumer that is there serves, or from where a new one has to deliver.
///
/// It does not when it is not the one that the worker would make, or of another stream, or does not remember the
/// worker's acknowledgements: a server that was killed forgets the last ones, and would deliver what is settled, and
/// nothing else until that has timed out. Nor does one that delivered to a process which died before it began: made
/// anew, it delivers the command now, and not only when its acknowledgement has timed out.
pub fn plan(existing: Option<ConsumerState>, standing: Standing, stream: StreamState) -> Plan {
    let anew = Plan::Make(deliver_from(standing.settled, stream));
    let Some(existing) = existing else { return anew };
    let usable = existing.as_configured
        && existing.delivered <= stream.last_sequence
        && standing.settled.is_none_or(|settled| existing.ack_floor >= settled.sequence);
    if !usable {
        return anew;
    }
    if existing.pending == 0 || standing.current == Some(existing.delivered) {
        return Plan::Keep;
    }
    Plan::Make(DeliverFrom::Sequence(existing.ack_floor + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_consumer_is_kept() {
        let time = |second| DateTime::from_timestamp(second, 0).unwrap();
        let settled = |sequence| Some(Position { sequence, published: time(100) });
        let stream = StreamState { created: time(0), last_sequence: 9 };
        let existing = |delivered, ack_floor, pending| {
            Some(ConsumerState { as_configured: true, delivered, ack_floor, pending })
        };
        let standing = |settled, current| Standing { settled, current };
        let from = |sequence| Plan::Make(DeliverFrom::Sequence(sequence));
        let last = Plan::Make(DeliverFrom::LastOfSubject);
        for (existing, standing, expected) in [
            (None, standing(None, None), last),
            (None, standing(settled(4), None), from(5)),
            (existing(4, 4, 0), standing(settled(4), None), Plan::Keep),
            (existing(7, 4, 1), standing(settled(4), Some(7)), Plan::Keep),
            // Delivered to a process that died before it began.
            (existing(7, 4, 1), standing(settled(4), None), from(5)),
            // It has forgotten that 4 was acknowledged.
            (existing(4, 2, 1), standing(settled(4), None), from(5)),
            // Of a stream that went further.
            (existing(10, 10, 0), standing(None, None), last),
        ] {
            assert_eq!(plan(existing, standing, stream), expected, "{existing:?} {standing:?}");
        }
        let foreign = ConsumerState { as_configured: false, delivered: 4, ack_floor: 4, pending: 0 };
        assert_eq!(plan(Some(foreign), standing(settled(4), None), stream), from(5));
    }

    #[test]
    fn a_position_that_is_not_of_this_stream_counts_as_none() {
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
