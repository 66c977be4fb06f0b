//! The name of a token. It appears in the audit, in logs, and as the user of HTTP Basic, so its characters need no
//! escaping anywhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name, in bytes.
const BYTES_MAX: usize = 64;

/// The name of a token: 1 to 64 of `A-Z a-z 0-9 . _ @ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenName(String);

/// The text is not a valid name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name is 1 to {BYTES_MAX} letters, digits or any of . _ @ -")]
pub struct NameError;

impl TokenName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for TokenName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte);
        let fits = (1..=BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good);
        fits.then_some(Self(text)).ok_or(NameError)
    }
}

impl FromStr for TokenName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.to_owned().try_into()
    }
}

impl From<TokenName> for String {
    fn from(name: TokenName) -> Self {
        name.0
    }
}
