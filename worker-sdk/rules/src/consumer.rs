//! From where a worker's consumer reads its commands.

use crate::Position;

/// The first message that a newly created consumer delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverFrom {
    /// The first one at or after this stream sequence.
    Sequence(u64),
    /// The last message of the worker's subject, if there is one, and then what comes.
    LastOfSubject,
}

/// Where to start, given what the worker has settled and the last sequence of the stream.
///
/// A consumer started beyond the end of its stream silently skips what comes next, so a position that the stream has
/// not reached (it was made anew, or has lost messages) counts as none.
pub fn deliver_from(settled: Option<Position>, stream_last_sequence: u64) -> DeliverFrom {
    match settled {
        Some(position) if position.sequence <= stream_last_sequence => {
            DeliverFrom::Sequence(position.sequence + 1)
        }
        Some(_) | None => DeliverFrom::LastOfSubject,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn a_position_beyond_the_stream_counts_as_none() {
        let at = |sequence| Some(Position { sequence, published: DateTime::UNIX_EPOCH });
        for (settled, last, expected) in [
            (None, 0, DeliverFrom::LastOfSubject),
            (None, 9, DeliverFrom::LastOfSubject),
            (at(0), 0, DeliverFrom::Sequence(1)),
            (at(4), 9, DeliverFrom::Sequence(5)),
            (at(9), 9, DeliverFrom::Sequence(10)),
            (at(10), 9, DeliverFrom::LastOfSubject),
        ] {
            assert_eq!(deliver_from(settled, last), expected, "{settled:?} {last}");
        }
    }
}
