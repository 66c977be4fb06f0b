//! The id of a run, which links commands, replies and history.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::ID_BYTES_MAX;

/// Whether `text` has 1 to [`ID_BYTES_MAX`] characters of `[A-Za-z0-9_-]`, as ids of runs and of items have.
pub(crate) fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// The text is not a valid run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a run id is 1 to {ID_BYTES_MAX} characters of [A-Za-z0-9_-]")]
pub struct RunIdError;

/// The id of a run: 1 to 64 characters of `[A-Za-z0-9_-]`; later ids sort later. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct RunId(Arc<str>);

impl RunId {
    /// Parses `text` as an id.
    pub fn new(text: &str) -> Result<Self, RunIdError> {
        if is_id(text) { Ok(Self(text.into())) } else { Err(RunIdError) }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for RunId {
    type Error = RunIdError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, RunIdError> {
        Self::new(&text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0.as_ref().to_owned()
    }
}
