//! Why an instance halts: the bus has lost acknowledged messages, or the journal cannot be followed.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::subject;

use super::known::{Acknowledged, StoreKnowledge, Stream, StreamFacts, Streams};
use crate::journal::codec::Message;
use crate::journal::{AppendId, JournalError};

/// Why the instance has halted. The text is for the operator, who must decide how to continue.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Halt {
    /// The bus has lost acknowledged messages.
    #[error("NATS has lost data: {}", join(.0))]
    Lost(Arc<[Loss]>),
    /// Another process uses a copy of this instance's data directory.
    #[error(
        "another process of instance {instance} leads: one of the two uses a copy of the other's data directory. Stop that \
         one, delete the file `instance` in the copy, and start it again; restart this one in any case"
    )]
    Copied { instance: String },
    /// The journal cannot be followed. Without its next message, which a version that knows more than this one may have
    /// written, this instance would decide on something else than the site's state.
    #[error("{}; {}", with_causes(.0), .0.advice())]
    Journal(Arc<JournalError>),
}

impl Halt {
    /// The message for operators, with the `account` of what is lost, if there is one yet.
    pub(super) fn with_account(&self, account: Option<&str>) -> String {
        account.map_or_else(|| self.to_string(), |account| format!("{self}: {account}"))
    }

    /// Its kind, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Lost(_) => "data-lost",
            Self::Copied { .. } => "copied",
            Self::Journal(error) => error.kind(),
        }
    }
}

/// What one stream has lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub stream: Stream,
    /// The last acknowledged sequence.
    pub known: u64,
    /// How the stream differs.
    pub found: Found,
}

/// How a stream shows that it has lost messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The stream does not exist.
    Nothing,
    /// The stream was created at another time than the known one.
    Recreated {
        /// When the known stream was created.
        known: DateTime<Utc>,
        /// When the present stream was created.
        found: DateTime<Utc>,
    },
    /// The stream ends too early.
    Shorter {
        /// Its last sequence.
        last: u64,
    },
    /// The stream begins too late.
    Later {
        /// Its first sequence.
        first: u64,
        /// The sequence at which it had to begin at the latest.
        needed: u64,
    },
    /// A known message is missing, or another has its sequence.
    Other {
        sequence: u64,
        /// The message that was acknowledged there.
        known: String,
        /// The message that is there now, or `nothing`.
        found: String,
    },
}

impl Loss {
    /// The first sequence that is certainly missing; `None` if the stream alone does not show it.
    pub fn first_missing(&self) -> Option<u64> {
        match &self.found {
            Found::Nothing | Found::Recreated { .. } => Some(1),
            Found::Shorter { last } => Some(*last + 1),
            Found::Later { needed, .. } => Some(*needed),
            Found::Other { .. } => None,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, known, found } = self;
        match found {
            Found::Nothing => {
                write!(f, "{stream} is not there, messages up to {known} had been acknowledged")
            }
            Found::Recreated { known: then, found } => write!(
                f,
                "{stream} was created at {found}, not at {then}: messages up to {known} are gone, or this is \
                 another site's"
            ),
            Found::Shorter { last } => {
                write!(f, "{stream} ends at {last}: {}", missing(last + 1, *known))
            }
            Found::Later { first, needed } => {
                write!(f, "{stream} begins at {first}: {}", missing(*needed, first - 1))
            }
            Found::Other { sequence, known, found } => {
                write!(f, "{stream} has {found} at {sequence}, where {known} had been acknowledged")
            }
        }
    }
}

fn missing(first: u64, last: u64) -> String {
    if first == last {
        format!("message {first} is missing")
    } else {
        format!("messages {first} to {last} are missing")
    }
}

fn join(losses: &[Loss]) -> String {
    losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Self::Journal(Arc::new(error))
    }
}

/// What `streams` lack of what is `known`: one entry for each stream that has lost something.
pub fn losses(known: &Acknowledged, streams: &Streams) -> Vec<Loss> {
    let of = |stream, known, found: Option<Found>| found.map(|found| Loss { stream, known, found });
    let (journal, control) = (known.journal.sequence, known.control);
    let journal_found = check_end(streams.journal, known.journal_created, journal)
        .or_else(|| {
            check_beginning(streams.journal, known.journal_from).filter(|_| !streams.begins_with_snapshot)
        })
        .or_else(|| at_known(known, streams));
    let control_found = check_end(streams.control, known.control_created, control)
        .or_else(|| check_beginning(streams.control, known.control_from))
        .or_else(|| at_mark(known, streams));
    let both = [of(Stream::Journal, journal, journal_found), of(Stream::Control, control, control_found)];
    both.into_iter().flatten().collect()
}

pub(super) fn check(known: &Acknowledged, streams: &Streams) -> Result<(), Halt> {
    let losses = losses(known, streams);
    if losses.is_empty() { Ok(()) } else { Err(Halt::Lost(losses.into())) }
}

/// Checks that it is the known stream, and that it is long enough.
fn check_end(stream: Option<StreamFacts>, created: Option<DateTime<Utc>>, known: u64) -> Option<Found> {
    let Some(stream) = stream else {
        return (known > 0 || created.is_some()).then_some(Found::Nothing);
    };
    if let Some(known) = created.filter(|known| *known != stream.created) {
        return Some(Found::Recreated { known, found: stream.created });
    }
    (stream.last_sequence < known).then_some(Found::Shorter { last: stream.last_sequence })
}

/// Checks that everything from `needed` on is there. A stream that was purged keeps its last sequence.
fn check_beginning(stream: Option<StreamFacts>, needed: Option<u64>) -> Option<Found> {
    let (first, needed) = (stream?.first_sequence, needed?);
    (needed < first).then_some(Found::Later { first, needed })
}

/// Checks that the journal's last known message is unchanged.
fn at_known(known: &Acknowledged, streams: &Streams) -> Option<Found> {
    let append_id = known.journal.append_id.as_ref()?;
    let sequence = known.journal.sequence;
    match &streams.at_known {
        Some(found) if found == append_id => None,
        Some(found) => {
            Some(Found::Other { sequence, known: append_id.to_string(), found: found.to_string() })
        }
        None => {
            let first = streams.journal.map_or(0, |journal| journal.first_sequence);
            let missing =
                || Found::Other { sequence, known: append_id.to_string(), found: "nothing".to_owned() };
            if first <= sequence + 1 {
                return Some(missing());
            }
            // While this instance was away, the journal was trimmed beyond what it knows.
            (!streams.begins_with_snapshot).then_some(Found::Later { first, needed: sequence + 1 })
        }
    }
}

/// Checks that the mark in the control stream is unchanged.
fn at_mark(known: &Acknowledged, streams: &Streams) -> Option<Found> {
    let mark = known.mark.as_ref()?;
    let found = match &streams.at_mark {
        Some(subject) if *subject == mark.subject => return None,
        Some(subject) => format!("a message to {subject}"),
        // A leader whose records are not yet read here may have ended the run and retracted its commands.
        None if mark.subject != subject::LEADER => return None,
        None => "nothing".to_owned(),
    };
    Some(Found::Other { sequence: mark.sequence, known: format!("one to {}", mark.subject), found })
}

/// Checks that the journal message at the store's position is the one that the store has projected.
pub(super) fn check_against_store(
    store: Option<&StoreKnowledge>,
    sequence: u64,
    message: &Message,
) -> Result<(), Halt> {
    let Some(store) = store else { return Ok(()) };
    let found: Option<&AppendId> = if sequence == store.sequence {
        Some(&message.append_id)
    } else if sequence == store.sequence + 1 {
        message.previous.as_ref()
    } else {
        None
    };
    match found {
        Some(found) if *found != store.append_id => {
            let (known, found) = (store.append_id.to_string(), found.to_string());
            let found = Found::Other { sequence: store.sequence, known, found };
            Err(Halt::Lost([Loss { stream: Stream::Journal, known: store.sequence, found }].into()))
        }
        Some(_) | None => Ok(()),
    }
}
