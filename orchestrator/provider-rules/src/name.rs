//! Names of providers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use os_upgrade_protocol::is_word;
use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The name of a provider, which is also that of its items: 1 to 64 of `a-z`, `A-Z`, `0-9`, `.`, `_` and `-`, not beginning with a dot.
/// Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct ProviderName(Arc<str>);

/// A text is not a valid name of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a provider is 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, ., _ and -, and does not begin with a dot"
)]
pub struct ProviderNameError;

impl ProviderName {
    /// Parses `text` as a name.
    ///
    /// # Errors
    /// It is not one.
    pub fn new(text: &str) -> Result<Self, ProviderNameError> {
        if is_word(text, NAME_BYTES_MAX) { Ok(Self(text.into())) } else { Err(ProviderNameError) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ProviderName {
    type Err = ProviderNameError;

    fn from_str(text: &str) -> Result<Self, ProviderNameError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for ProviderName {
    type Error = ProviderNameError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, ProviderNameError> {
        Self::new(&text)
    }
}

impl From<ProviderName> for String {
    fn from(name: ProviderName) -> Self {
        name.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_words() {
        for text in ["app", "App_1.net-2", &"x".repeat(64)] {
            let name = ProviderName::new(text).unwrap();
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<ProviderName>(&json).unwrap(), name);
        }
        for text in ["", ".app", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
            assert_eq!(text.parse::<ProviderName>(), Err(ProviderNameError), "{text}");
        }
    }
}
