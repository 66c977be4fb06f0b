//! Following the journal: messages are folded into the state in order, and a broken chain is refused.

use bytes::BytesMut;
use os_upgrade_kernel::State;

use super::codec::{Content, Kind, Message, decode};
use super::{JournalError, Tip};
use crate::journal::Committed;

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
    /// The number of facts after that snapshot.
    pub facts_since_snapshot: usize,
    /// The newest format of the payloads that were read.
    pub format: u32,
    /// Whether the fold has begun, with the first record or a snapshot.
    rooted: bool,
    /// The position in the control stream according to the journal.
    control: u64,
    parts: BytesMut,
    parts_read: u32,
}

impl Follower {
    /// Continues after `tip` with the state there.
    pub fn resume(state: State, tip: Tip) -> Self {
        Self { control: state.control, state, tip, rooted: true, ..Self::default() }
    }

    /// Folds the message at `sequence`. Returns the record that it completes, if any.
    pub fn read(&mut self, sequence: u64, message: &Message) -> Result<Option<Committed>, JournalError> {
        if sequence <= self.tip.sequence {
            return Ok(None);
        }
        let first = self.tip.append_id.is_none();
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
        if matches!(message.kind, Kind::Snapshot { .. }) && self.rooted {
            // It contains the state that is already known.
            self.snapshot_read(sequence, message);
            return Ok(None);
        }
        let content =
            decode(message, payload).map_err(|source| JournalError::Undecodable { sequence, source })?;
        self.format = self.format.max(message.format);
        match content {
            Content::Record(record) => {
                self.rooted = true;
                let before = self.journaled();
                self.state
                    .apply_record(&record)
                    .map_err(|source| JournalError::Unfit { sequence, source })?;
                self.control = record.control;
                self.facts_since_snapshot += record.facts.len();
                Ok(Some(Committed { sequence, append_id: message.append_id.clone(), before, record }))
            }
            Content::Snapshot(state) => {
                self.rooted = true;
                self.control = state.control;
                self.state = *state;
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
            self.facts_since_snapshot += committed.record.facts.len();
            self.control = committed.record.control;
            self.state = state;
        }
        self.first.get_or_insert(tip.sequence);
        self.tip = tip;
        self.parts.clear();
        self.parts_read = 0;
    }

    /// Records a complete snapshot whose parts start at `start`.
    pub fn snapshot_appended(&mut self, start: u64) {
        self.snapshot = start;
        self.facts_since_snapshot = 0;
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
