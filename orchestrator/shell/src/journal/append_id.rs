//! The id of a journal message, and the journal's last message.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The unique id of a journal message: its writer's nonce and a count. Each message carries its own id and its
/// predecessor's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppendId(Arc<str>);

impl AppendId {
    /// An id from its text.
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

/// The last known message of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tip {
    /// Its sequence; 0 before the first.
    pub sequence: u64,
    /// Its append id; `None` before the first.
    pub append_id: Option<AppendId>,
}
