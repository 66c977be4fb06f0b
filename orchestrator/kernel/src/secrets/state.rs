//! The strongbox: the site's sealed secrets. Here, and so in the journal, the history and backups, they are ciphertext
//! only; sealing and opening are done outside this crate.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::is_word;
use os_upgrade_provider_rules::Origin;
use serde::{Deserialize, Serialize};

/// Maximum number of secrets.
pub const SECRETS_MAX: usize = 100;
/// Maximum length of a sealed secret, in bytes.
pub const SEALED_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of a secret's name, in bytes.
pub const SECRET_NAME_BYTES_MAX: usize = 64;

/// The secrets, and a value by which their key is recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Strongbox {
    /// A value derived from the key of the secrets; another key leads to another value. Absent until there is a key.
    pub check: Option<String>,
    /// The secrets, by name.
    pub secrets: OrdMap<SecretName, Secret>,
}

/// A sealed secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Secret {
    /// The ciphertext, as text.
    pub sealed: String,
    /// The only origin to which providers of configuration may send it; absent if to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Who stored it.
    pub actor: String,
    /// When it was stored.
    pub since: DateTime<Utc>,
}

/// A secret's name: 1 to 64 of `a-z`, `A-Z`, `0-9`, `.`, `_` and `-`, not beginning with a dot. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct SecretName(Arc<str>);

/// A text is not a valid name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a secret is 1 to 64 of a-z, A-Z, 0-9, ., _ and -, and does not begin with a dot")]
pub struct SecretNameError;

/// Why an instance cannot use the secrets, or one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sealed {
    /// The instance has no key.
    NoKey,
    /// The instance has no key, and no secret has been sealed yet.
    NoKeyYet,
    /// The instance's key is not the key of the secrets.
    OtherKey,
    /// There is no secret of that name.
    NoSecret {
        /// The secret's name.
        name: SecretName,
    },
    /// The secret has changed since it was sealed.
    Damaged {
        /// The secret's name.
        name: SecretName,
    },
}

impl SecretName {
    /// Checks `text` and makes it a name.
    pub fn new(text: &str) -> Result<Self, SecretNameError> {
        if is_word(text, SECRET_NAME_BYTES_MAX) { Ok(Self(text.into())) } else { Err(SecretNameError) }
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<Cow<'_, str>> for SecretName {
    type Error = SecretNameError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, SecretNameError> {
        Self::new(&text)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    #[test]
    fn names_are_validated() {
        for good in ["a", "fleet-lock", "A.b_9", "-", &"x".repeat(64)] {
            assert_eq!(name(good).as_str(), good);
        }
        for bad in ["", ".", "..", ".a", "a/b", "a b", "é", "a\n", &"x".repeat(65)] {
            assert_eq!(SecretName::new(bad), Err(SecretNameError), "{bad:?}");
        }
    }
}
