//! Why a request has no answer, and what that means for the change it asks for.

use serde::{Deserialize, Serialize};

/// A request has no answer. In JSON `{"outcome": "unchanged" | "unknown", "why": "..."}`, between instances and in
/// the `error-info` of the API; `Display` gives the sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum NotDone {
    /// Certainly nothing was changed, and nothing will be.
    #[error("{why}; nothing was changed")]
    Unchanged {
        /// Why not.
        why: String,
    },
    /// The change may have come to be, or may still.
    #[error("{why}: the change may still come to be, look at the state")]
    Unknown {
        /// Why nobody knows.
        why: String,
    },
}

impl NotDone {
    /// Certainly nothing was changed.
    pub fn unchanged(why: impl Into<String>) -> Self {
        Self::Unchanged { why: why.into() }
    }

    /// Why there is no answer.
    pub fn why(&self) -> &str {
        let (Self::Unchanged { why } | Self::Unknown { why }) = self;
        why
    }

    /// The change may still come to be.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }
}
