//! The wire between the orchestrator and its workers: message types, stream and subject names, headers, limits.
//!
//! Both sides use this crate, and a worker in another language needs no more than what it writes down.
//! Nothing here does I/O, and nothing here decides anything.
//!
//! Payloads are those of Avassa's "OS upgrade management"; fields beyond that document are extensions that a
//! plain worker may leave out and must ignore. Unknown fields are ignored in both directions.

pub mod announcement;
pub mod command;
pub mod consumer;
pub mod error;
pub mod header;
pub mod hint;
pub mod json;
pub mod limits;
pub mod name;
pub mod progress;
pub mod reply;
pub mod run_id;
pub mod subject;
pub mod time;
pub mod versions;

pub use announcement::Announcement;
pub use command::{Action, Command, CommandId};
pub use consumer::{ConsumerAnswer, ConsumerRequest};
pub use hint::{Hint, HintCause};
pub use name::{ApplicationName, GroupName, HostName, NameError};
pub use progress::Progress;
pub use reply::{Outcome, Reply};
pub use run_id::RunId;
pub use versions::Versions;

/// Why bytes from the bus are not a message of this protocol.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The payload is larger than its kind may be.
    #[error("payload of {actual} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// Size of the payload, in bytes.
        actual: usize,
        /// Largest payload of this kind, in bytes.
        limit: usize,
    },
    /// The payload is not JSON of the expected shape.
    #[error("payload is not a valid message")]
    Json(#[source] serde_json::Error),
    /// The payload is well-formed JSON with a value that means nothing here.
    #[error("{0}")]
    Value(String),
}

/// Reads `payload` as JSON after checking it against `limit`, in bytes.
fn parse_bounded<'de, T: serde::Deserialize<'de>>(payload: &'de [u8], limit: usize) -> Result<T, ParseError> {
    if payload.len() > limit {
        return Err(ParseError::TooLarge { actual: payload.len(), limit });
    }
    json::object(payload).map_err(ParseError::Json)
}
