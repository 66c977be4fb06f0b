//! Why a request has no answer, and what that means for the requested change.

use serde::{Deserialize, Serialize};

/// Why a request has no answer. The JSON form is `{"outcome": "unchanged" | "unknown", "why": "..."}`, between
/// instances and in the `error-info` of the API. `Display` is the sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum NotDone {
    /// Nothing was changed, and nothing will be.
    #[error("{why}; nothing was changed")]
    Unchanged {
        /// The cause, as the caller is told.
        why: String,
    },
    /// The change may have been made, or may still be.
    #[error("{why}: the change may still be made, check the state")]
    Unknown {
        /// The cause, as the caller is told.
        why: String,
    },
}

impl NotDone {
    /// Nothing was changed, and nothing will be.
    pub fn unchanged(why: impl Into<String>) -> Self {
        Self::Unchanged { why: why.into() }
    }

    /// Why there is no answer.
    pub fn why(&self) -> &str {
        let (Self::Unchanged { why } | Self::Unknown { why }) = self;
        why
    }

    /// The change may have been made, or may still be.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }
}
