//! The strongbox: secrets that the site keeps, sealed. They stand here, and so in journal, history and backups, as
//! ciphertext only; the key, and what can be done with it, is not this crate's.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

/// Most secrets of a site.
pub const SECRETS_MAX: usize = 100;
/// Most bytes of a sealed secret.
pub const SEALED_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of a secret's name.
pub const SECRET_NAME_BYTES_MAX: usize = 64;

/// Every secret, and what tells whether a key is theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Strongbox {
    /// Made of the key of all secrets; a key that does not make it is another.
    pub check: Option<String>,
    /// The secrets.
    pub secrets: OrdMap<SecretName, Secret>,
}

/// A secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Secret {
    /// Sealed.
    pub sealed: String,
    /// Who has it kept.
    pub actor: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// What a secret is called: 1 to 64 of `a-z`, `A-Z`, `0-9`, `.`, `_` and `-`, the first no dot. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct SecretName(Arc<str>);

/// A text is no name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a secret is 1 to 64 of a-z, A-Z, 0-9, ., _ and -, and does not begin with a dot")]
pub struct SecretNameError;

/// Why secrets cannot be used, or one that is needed cannot. Seen by an instance, with the key that it has or has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sealed {
    /// It has no key.
    #[error(
        "the strongbox is sealed: POST its key to /v1/state/strongbox/unseal, or give [strongbox] key-file"
    )]
    NoKey,
    /// It has no key, nor has any secret been sealed with one.
    #[error(
        "the strongbox is sealed: it is empty and has no key yet; make one with `os-upgrade strongbox key` and keep it, then \
         POST it to /v1/state/strongbox/unseal, or give [strongbox] key-file"
    )]
    NoKeyYet,
    /// Its key is not the one of the secrets.
    #[error(
        "the strongbox is sealed: the secrets were sealed with another key than the one given here; POST theirs to \
         /v1/state/strongbox/unseal, or remove every secret and begin anew"
    )]
    OtherKey,
    /// There is no such secret.
    #[error("the strongbox has no secret {name}: PUT it to /v1/config/strongbox/secrets/{name}")]
    NoSecret {
        /// Its name.
        name: SecretName,
    },
    /// It was changed since it was sealed.
    #[error("the secret {name} cannot be opened: PUT it again")]
    Damaged {
        /// Its name.
        name: SecretName,
    },
}

impl Sealed {
    /// The sentence for operators where it is the leader's: whoever asks may have asked another instance than the one that
    /// has to be given the key.
    pub fn of_leader(&self) -> String {
        match self {
            Self::NoKey | Self::NoKeyYet | Self::OtherKey => {
                format!("{self}; the instance that leads needs it, which `os-upgrade cluster status` shows")
            }
            Self::NoSecret { .. } | Self::Damaged { .. } => self.to_string(),
        }
    }
}

impl SecretName {
    /// Takes `text` as a name, or says why it is none.
    pub fn new(text: &str) -> Result<Self, SecretNameError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let is_name = (1..=SECRET_NAME_BYTES_MAX).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(fits);
        is_name.then(|| Self(text.into())).ok_or(SecretNameError)
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

impl Strongbox {
    pub(crate) fn apply_kept(&mut self, name: &SecretName, sealed: &str, actor: &str, at: DateTime<Utc>) {
        let secret = Secret { sealed: sealed.to_owned(), actor: actor.to_owned(), since: at };
        self.secrets.insert(name.clone(), secret);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    #[test]
    fn names() {
        for good in ["a", "fleet-lock", "A.b_9", "-", &"x".repeat(64)] {
            assert_eq!(name(good).as_str(), good);
        }
        for bad in ["", ".", "..", ".a", "a/b", "a b", "é", "a\n", &"x".repeat(65)] {
            assert_eq!(SecretName::new(bad), Err(SecretNameError), "{bad:?}");
        }
    }
}
