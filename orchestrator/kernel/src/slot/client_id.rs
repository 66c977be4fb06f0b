//! The id under which a FleetLock client holds a slot.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of an id, in bytes.
pub const CLIENT_ID_BYTES_MAX: usize = 256;

/// A FleetLock client's `id`: 1 to 256 bytes of UTF-8 without control characters, case-sensitive. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct ClientId(Arc<str>);

/// Why a text is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientIdError {
    #[error("an id must not be empty")]
    Empty,
    /// It is longer than [`CLIENT_ID_BYTES_MAX`].
    #[error("an id of {0} bytes exceeds the limit of {CLIENT_ID_BYTES_MAX}")]
    TooLong(usize),
    /// It contains a control character.
    #[error("an id must not hold control characters")]
    ControlCharacter,
}

impl ClientId {
    /// Checks `text` and makes it an id.
    pub fn new(text: &str) -> Result<Self, ClientIdError> {
        if text.is_empty() {
            return Err(ClientIdError::Empty);
        }
        if text.len() > CLIENT_ID_BYTES_MAX {
            return Err(ClientIdError::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(ClientIdError::ControlCharacter);
        }
        Ok(Self(text.into()))
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<Cow<'_, str>> for ClientId {
    type Error = ClientIdError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, ClientIdError> {
        Self::new(&text)
    }
}

impl From<ClientId> for String {
    fn from(id: ClientId) -> Self {
        id.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_validated() {
        for id in ["a", "H\u{e4}st 7", &"x".repeat(CLIENT_ID_BYTES_MAX)] {
            assert_eq!(ClientId::new(id).unwrap().as_str(), id);
        }
        assert_eq!(ClientId::new(""), Err(ClientIdError::Empty));
        assert_eq!(ClientId::new(&"x".repeat(257)), Err(ClientIdError::TooLong(257)));
        assert_eq!(ClientId::new("a\u{7f}"), Err(ClientIdError::ControlCharacter));
        assert!(serde_json::from_str::<ClientId>("\"\"").is_err());
    }
}
