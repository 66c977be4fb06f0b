//! Numbers that are words in JSON, because clients do not count with them.

use std::fmt::Display;

use serde::Serializer;

/// Serializes a value as its text.
pub(crate) fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
