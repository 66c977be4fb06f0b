//! Following the journal: messages are folded into the state in order, and a broken chain is refused.

use bytes::BytesMut;
use os_upgrade_kernel::{Record, State};

use super::codec::{Content, Kind, Message, decode};
use super::{JournalError, Tip};
use crate::journal::Committed;

/// What a record counts towards the next snapshot, besides its facts: reading a message takes longer than folding a few
/// facts.
const RECORD_WEIGHT: usize = 4;

/// The fold of the journal so far.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    /// The committed state. Its position in the control stream may be ahead of the journal's, because messages that
    /// change nothing are read without a record.
    pub state: State,
    /// The last message read or appended.
    pub tip: Tip,
    /// The sequence of the first message read or appended.
    pub first: Option<u64>,
    /// The sequence at which the last complete snapshot starts, 0 if none has been seen.
    pub snapshot: u64,
    /// How much there is to read after that snapshot: its facts, and [`RECORD_WEIGHT`] for each record.
    pub weight_since_snapshot: usize,
    /// The sequence of the last record, or of the end of the snapshot with which reading began.
    record: u64,
    /// The newest format of the payloads that were read.
    pub format: u32,
    /// Whether the fold has begun, with the first record or a snapshot.
    rooted: bool,
    /// Whether messages were missed that the next snapshot contains.
    missed: bool,
    /// The position in the control stream according to the journal.
    control: u64,
    parts: BytesMut,
    parts_read: u32,
}

impl Follower {
    /// Continues after `tip` with the state there.
    pub fn resume(state: State, tip: Tip) -> Self {
        Self { control: state.control, state, record: tip.sequence, tip, rooted: true, ..Self::default() }
    }

    /// Folds the message at `sequence`. Returns the record that it completes, if any.
    pub fn read(&mut self, sequence: u64, message: &Message) -> Result<Option<Committed>, JournalError> {
        if sequence <= self.tip.sequence {
            return Ok(None);
        }
        // While this instance lagged behind, the journal may have been trimmed: it goes on from a snapshot, which contains
        // what was missed.
        if sequence > self.tip.sequence + 1
            && message.begins_snapshot()
            && message.previous != self.tip.append_id
        {
            self.missed = true;
        }
        let first = self.tip.append_id.is_none() || self.missed && message.begins_snapshot();
        self.check_chain(sequence, message, first)?;
        let committed = match self.assemble(message) {
            Some(payload) => self.complete(sequence, message, &payload)?,
            None => None,
        };
        self.first.get_or_insert(sequence);
        self.tip = Tip { sequence, append_id: Some(message.append_id.clone()) };
        Ok(committed)
    }

    /// Folds a whole payload. Returns the record, if it is one.
    fn complete(
        &mut self,
        sequence: u64,
        message: &Message,
        payload: &[u8],
    ) -> Result<Option<Committed>, JournalError> {
        if matches!(message.kind, Kind::Snapshot { .. }) && self.rooted && !self.missed {
            // It contains the state that is already known.
            self.snapshot_read(sequence, message);
            return Ok(None);
        }
        let content =
            decode(message, payload).map_err(|source| JournalError::Undecodable { sequence, source })?;
        self.format = self.format.max(message.format);
        match content {
            Content::Record(_) if self.missed => Err(JournalError::Gap { sequence, last: self.record }),
            Content::Record(record) => {
                self.rooted = true;
                let before = self.journaled();
                self.state
                    .apply_record(&record)
                    .map_err(|source| JournalError::Unfit { sequence, source })?;
                let follows = self.record_read(sequence, &record);
                Ok(Some(Committed {
                    sequence,
                    append_id: message.append_id.clone(),
                    follows,
                    before,
                    record,
                }))
            }
            Content::Snapshot(state) => {
                (self.rooted, self.missed) = (true, false);
                self.control = state.control;
                self.state = *state;
                self.record = sequence;
                self.snapshot_read(sequence, message);
                Ok(None)
            }
        }
    }

    /// The state as the journal alone gives it.
    pub fn journaled(&self) -> State {
        State { control: self.control, ..self.state.clone() }
    }

    /// Moves the tip after an append of our own; a record brings the state after it.
    pub fn appended(&mut self, tip: Tip, committed: Option<(&Committed, State)>) {
        if let Some((committed, state)) = committed {
            self.record_read(committed.sequence, &committed.record);
            self.state = state;
        }
        self.first.get_or_insert(tip.sequence);
        self.tip = tip;
        self.parts.clear();
        self.parts_read = 0;
    }

    /// The sequence of the last record; see [`Committed::follows`].
    pub fn last_record(&self) -> u64 {
        self.record
    }

    /// Takes note of the record at `sequence`; returns the sequence of the one before.
    fn record_read(&mut self, sequence: u64, record: &Record) -> u64 {
        self.control = record.control;
        self.weight_since_snapshot += RECORD_WEIGHT + record.facts.len();
        std::mem::replace(&mut self.record, sequence)
    }

    /// Records a complete snapshot whose parts start at `start`.
    pub fn snapshot_appended(&mut self, start: u64) {
        self.snapshot = start;
        self.weight_since_snapshot = 0;
    }

    fn check_chain(&self, sequence: u64, message: &Message, first: bool) -> Result<(), JournalError> {
        // Following from a snapshot starts in the middle of the chain.
        let root = first && (message.previous.is_none() || matches!(message.kind, Kind::Snapshot { .. }));
        if root {
            return Ok(());
        }
        // A message that was deleted between the two was none of the journal's.
        if message.previous == self.tip.append_id {
            return Ok(());
        }
        if !first && sequence != self.tip.sequence + 1 {
            return Err(JournalError::Gap { sequence, last: self.tip.sequence });
        }
        let text = |id: &Option<super::AppendId>| {
            id.as_ref().map_or("the beginning".to_owned(), ToString::to_string)
        };
        Err(JournalError::BrokenChain {
            sequence,
            expected: text(&self.tip.append_id),
            found: text(&message.previous),
        })
    }

    /// Joins the parts; `None` until the last part of a set has been read.
    fn assemble(&mut self, message: &Message) -> Option<BytesMut> {
        if message.part == 1 {
            self.parts.clear();
            self.parts_read = 0;
        }
        if message.part != self.parts_read + 1 {
            // The rest of a set whose beginning is missing.
            return None;
        }
        self.parts_read += 1;
        self.parts.extend_from_slice(&message.payload);
        if message.part < message.parts {
            return None;
        }
        self.parts_read = 0;
        Some(self.parts.split())
    }

    /// A snapshot is complete: all of its parts have been read, at consecutive sequences.
    fn snapshot_read(&mut self, sequence: u64, message: &Message) {
        self.snapshot_appended(sequence - (u64::from(message.parts) - 1));
    }
}
