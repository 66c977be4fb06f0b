//! The journal: records as messages, chained, appended under a fence and read back.
//!
//! - [`codec`] turns records and snapshots into messages and says how they are marked;
//! - [`follow`] folds messages as they are read, and refuses a broken chain;
//! - [`append`] gets a record into the stream exactly once, or finds out that another leads.

pub mod append;
pub mod codec;
pub mod follow;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What tells one append from every other: made of its writer's nonce and a count. Each message of the journal
/// carries its own and its predecessor's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppendId(Arc<str>);

impl AppendId {
    /// Takes an id as it was read.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AppendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The last message of the journal, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tip {
    /// Its sequence; 0 before the first.
    pub sequence: u64,
    /// Its append id; `None` before the first.
    pub append_id: Option<AppendId>,
}

/// The journal cannot be followed. None of these mends itself.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A message does not name the one before it as its predecessor.
    #[error("journal message {sequence} follows {found}, but the one before it is {expected}")]
    BrokenChain {
        /// The message's sequence.
        sequence: u64,
        /// The append id of the message before it.
        expected: String,
        /// The predecessor that it names.
        found: String,
    },
    /// Messages are missing.
    #[error("journal message {sequence} comes after {last}: what was between them is lost")]
    Gap {
        /// The message's sequence.
        sequence: u64,
        /// The last one read.
        last: u64,
    },
    /// A message lacks a header, or has one that cannot be read.
    #[error("journal message {sequence} has no valid header {header}")]
    Header {
        /// The message's sequence.
        sequence: u64,
        /// The header.
        header: &'static str,
    },
    /// Another version of this program wrote the message.
    #[error("journal message {sequence} has format {found}; this version reads format {known}")]
    OtherFormat {
        /// The message's sequence.
        sequence: u64,
        /// Its format.
        found: u32,
        /// The format known here.
        known: u32,
    },
    /// The payload cannot be read.
    #[error("journal message {sequence} cannot be read")]
    Undecodable {
        /// The message's sequence.
        sequence: u64,
        /// What went wrong.
        #[source]
        source: codec::DecodeError,
    },
    /// A fact does not fit the state.
    #[error("journal message {sequence} does not fit what came before")]
    Unfit {
        /// The message's sequence.
        sequence: u64,
        /// What went wrong.
        #[source]
        source: os_upgrade_kernel::ApplyError,
    },
}
