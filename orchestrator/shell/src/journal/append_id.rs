//! What tells one append to the journal from every other.

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
