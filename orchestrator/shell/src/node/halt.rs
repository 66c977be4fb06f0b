//! When to stop for good: the bus has lost what it had acknowledged, or the journal cannot be followed.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::journal::codec::Message;
use crate::journal::{AppendId, JournalError, Tip};

/// What the store had reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreKnowledge {
    /// The last journal sequence projected.
    pub sequence: u64,
    /// Its append id.
    pub append_id: AppendId,
    /// When the journal had been created.
    pub journal_created: DateTime<Utc>,
    /// When the control stream had been created.
    pub control_created: DateTime<Utc>,
}

/// A stream as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFacts {
    /// When it was created.
    pub created: DateTime<Utc>,
    /// The sequence of its last message, 0 if it never had one.
    pub last_sequence: u64,
}

/// Journal and control stream as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    /// The journal.
    pub journal: StreamFacts,
    /// The control stream.
    pub control: StreamFacts,
    /// Where to begin to follow the journal: its beginning, or a complete snapshot that the store has reached.
    pub follow_from: u64,
}

/// Why the node has stopped. What it says is for the operator, who alone can decide how to go on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Halt {
    /// The journal, or the control stream, was made anew.
    #[error(
        "{stream} was created at {found}, but the store knows one of {known}: NATS has lost it, or this is another site's"
    )]
    Recreated {
        /// Which stream.
        stream: &'static str,
        /// The creation time the store knows.
        known: DateTime<Utc>,
        /// The creation time found.
        found: DateTime<Utc>,
    },
    /// The end of a stream is missing.
    #[error("{stream} ends at {found}, but {known} had been acknowledged: NATS has lost messages {} to {known}", found + 1)]
    Shorter {
        /// Which stream.
        stream: &'static str,
        /// The last sequence that had been acknowledged.
        known: u64,
        /// The last sequence found.
        found: u64,
    },
    /// The journal holds other messages than had been acknowledged.
    #[error(
        "journal message {sequence} is {found}, but {known} had been acknowledged there: NATS has lost data"
    )]
    OtherMessage {
        /// The sequence.
        sequence: u64,
        /// The append id that had been acknowledged.
        known: AppendId,
        /// The append id found.
        found: AppendId,
    },
    /// The journal cannot be followed.
    #[error("{}", describe(.0))]
    Journal(Arc<JournalError>),
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Self::Journal(Arc::new(error))
    }
}

fn describe(error: &JournalError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

const JOURNAL: &str = "the journal";
const CONTROL: &str = "the control stream";

/// Whether everything is there that has been acknowledged, as far as its ends tell.
pub(super) fn check(
    store: Option<&StoreKnowledge>,
    tip: &Tip,
    control: u64,
    streams: &Streams,
) -> Result<(), Halt> {
    if let Some(store) = store {
        same_stream(JOURNAL, store.journal_created, streams.journal)?;
        same_stream(CONTROL, store.control_created, streams.control)?;
        not_shorter(JOURNAL, store.sequence, streams.journal)?;
    }
    not_shorter(JOURNAL, tip.sequence, streams.journal)?;
    not_shorter(CONTROL, control, streams.control)
}

fn same_stream(stream: &'static str, known: DateTime<Utc>, found: StreamFacts) -> Result<(), Halt> {
    if known == found.created { Ok(()) } else { Err(Halt::Recreated { stream, known, found: found.created }) }
}

fn not_shorter(stream: &'static str, known: u64, found: StreamFacts) -> Result<(), Halt> {
    if known <= found.last_sequence {
        Ok(())
    } else {
        Err(Halt::Shorter { stream, known, found: found.last_sequence })
    }
}

/// Whether the message that the store had reached is still the one it was.
pub(super) fn check_against_store(
    store: Option<&StoreKnowledge>,
    sequence: u64,
    message: &Message,
) -> Result<(), Halt> {
    let Some(store) = store else { return Ok(()) };
    let found = if sequence == store.sequence {
        Some(&message.append_id)
    } else if sequence == store.sequence + 1 {
        message.previous.as_ref()
    } else {
        None
    };
    match found {
        Some(found) if *found != store.append_id => Err(Halt::OtherMessage {
            sequence: store.sequence,
            known: store.append_id.clone(),
            found: found.clone(),
        }),
        Some(_) | None => Ok(()),
    }
}
