//! Records, the unit of the journal, and batches, from which records are made. The facts of a record take effect
//! together or not at all.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::decide::{Input, decide_on};
use crate::fact::Fact;
use crate::request::Answer;
use crate::state::{ApplyError, State};
use crate::view::View;

/// Facts that were decided together. A record without facts is a barrier: it proves that its writer still leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// When it was decided, by the leader's clock.
    pub at: DateTime<Utc>,
    /// The sequence in the control stream up to which messages have been applied.
    pub control: u64,
    /// The facts, in order.
    pub facts: Vec<Fact>,
}

impl State {
    /// Folds a whole record. On an error the state is unchanged.
    pub fn apply_record(&mut self, record: &Record) -> Result<(), ApplyError> {
        let mut next = self.clone();
        for fact in &record.facts {
            next.apply(record.at, fact)?;
        }
        next.control = record.control;
        *self = next;
        Ok(())
    }
}

/// Inputs decided one after the other, on a state ahead of the journal, until their facts are appended as one record.
/// The original state is not changed; [`Batch::finish`] returns the record to append, and the state to use once it is
/// appended.
#[derive(Debug, Clone)]
pub struct Batch {
    state: State,
    /// The state before the batch, to which the view belongs.
    committed: State,
    at: DateTime<Utc>,
    facts: Vec<Fact>,
}

impl Batch {
    /// A batch on top of `state`; all its facts are dated `at`.
    pub fn new(state: &State, at: DateTime<Utc>) -> Self {
        Self { state: state.clone(), committed: state.clone(), at, facts: Vec::new() }
    }

    /// Decides `input` after the earlier inputs of the batch; returns the answer to a request.
    pub fn decide(&mut self, view: &View, input: &Input) -> Option<Answer> {
        let decision = decide_on(&mut self.state, &self.committed, view, input, self.at);
        if let Input::Control { sequence, .. } = input {
            self.state.control = self.state.control.max(*sequence);
        }
        self.facts.extend(decision.facts);
        decision.answer
    }

    /// How many facts the batch has.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether the inputs have led to no facts so far.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// The state after the batch.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The record of this batch, and the state after it.
    pub fn finish(self) -> (Record, State) {
        (Record { at: self.at, control: self.state.control, facts: self.facts }, self.state)
    }
}

/// The position of a fact in the journal. As text `<sequence>.<place>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FactCursor {
    /// The sequence of its record in the journal.
    pub sequence: u64,
    /// Its index in that record, from 0.
    pub place: u64,
}

impl FactCursor {
    /// A position just before `self`, with no fact in between.
    #[must_use]
    pub const fn before(self) -> Self {
        match self.place {
            // Places are far fewer.
            0 => Self { sequence: self.sequence.saturating_sub(1), place: u64::MAX >> 1 },
            place => Self { place: place - 1, ..self },
        }
    }
}

impl fmt::Display for FactCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.sequence, self.place)
    }
}

impl FromStr for FactCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cursor = text.split_once('.').and_then(|(sequence, place)| {
            Some(Self { sequence: sequence.parse().ok()?, place: place.parse().ok()? })
        });
        cursor.ok_or_else(|| format!("{text:?} is no place in the history, such as 12.0"))
    }
}

impl TryFrom<String> for FactCursor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<FactCursor> for String {
    fn from(cursor: FactCursor) -> Self {
        cursor.to_string()
    }
}
