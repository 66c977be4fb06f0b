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

#[cfg(test)]
mod tests {
    use super::*;

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
