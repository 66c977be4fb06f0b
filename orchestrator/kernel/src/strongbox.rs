//! The strongbox: secrets that the site keeps, sealed. They stand here, and so in journal, history and backups, as
//! ciphertext only; the key, and what can be done with it, is not this crate's.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::input::{Accepted, Refusal};

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
        /// Which.
        name: SecretName,
    },
    /// It was changed since it was sealed.
    #[error("the secret {name} cannot be opened: PUT it again")]
    Damaged {
        /// Which.
        name: SecretName,
    },
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
    /// Has `sealed` kept, of which `check` tells the key. A strongbox without secrets takes any key.
    pub(crate) fn keep(
        &self,
        name: &SecretName,
        sealed: &str,
        check: &str,
        actor: &str,
    ) -> Result<(Vec<Fact>, Accepted), Refusal> {
        let is_new = !self.secrets.contains_key(name);
        if !self.secrets.is_empty() && self.check.as_deref() != Some(check) {
            return Err(Refusal::OtherStrongboxKey);
        }
        if sealed.len() > SEALED_BYTES_MAX || (is_new && self.secrets.len() >= SECRETS_MAX) {
            return Err(Refusal::StrongboxFull);
        }
        let made =
            (self.check.as_deref() != Some(check)).then(|| Fact::StrongboxMade { check: check.to_owned() });
        let (name, sealed, actor) = (name.clone(), sealed.to_owned(), actor.to_owned());
        let facts = made.into_iter().chain([Fact::SecretKept { name, sealed, actor }]).collect();
        Ok((facts, if is_new { Accepted::Created } else { Accepted::Done }))
    }

    /// Has a secret kept no longer, which needs no key: so a site whose key is lost can begin anew.
    pub(crate) fn remove(&self, name: &SecretName, actor: &str) -> Result<(Vec<Fact>, Accepted), Refusal> {
        if !self.secrets.contains_key(name) {
            return Err(Refusal::NoSecret { name: name.clone() });
        }
        Ok((vec![Fact::SecretRemoved { name: name.clone(), actor: actor.to_owned() }], Accepted::Done))
    }

    pub(crate) fn apply_kept(&mut self, name: &SecretName, sealed: &str, actor: &str, at: DateTime<Utc>) {
        let secret = Secret { sealed: sealed.to_owned(), actor: actor.to_owned(), since: at };
        self.secrets.insert(name.clone(), secret);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    fn apply(state: &mut State, decided: Result<(Vec<Fact>, Accepted), Refusal>) -> Accepted {
        let (facts, accepted) = decided.unwrap();
        for fact in &facts {
            state.apply(DateTime::UNIX_EPOCH, fact).unwrap();
        }
        accepted
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

    #[test]
    fn all_secrets_are_under_one_key() {
        let mut state = State::default();
        let kept = state.strongbox.keep(&name("a"), "1", "k", "eve");
        assert_eq!(apply(&mut state, kept), Accepted::Created);
        let again = state.strongbox.keep(&name("a"), "2", "k", "eve");
        assert_eq!(apply(&mut state, again), Accepted::Done);
        assert_eq!(state.strongbox.secrets[&name("a")].sealed, "2");
        assert_eq!(state.strongbox.keep(&name("b"), "3", "other", "eve"), Err(Refusal::OtherStrongboxKey));
        assert_eq!(state.strongbox.remove(&name("b"), "eve"), Err(Refusal::NoSecret { name: name("b") }));
        let removed = state.strongbox.remove(&name("a"), "eve");
        apply(&mut state, removed);
        // Nothing is left that the old key would be needed for.
        let anew = state.strongbox.keep(&name("b"), "3", "other", "eve");
        assert_eq!(apply(&mut state, anew), Accepted::Created);
        assert_eq!(state.strongbox.check.as_deref(), Some("other"));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut state = State::default();
        let large = "x".repeat(SEALED_BYTES_MAX + 1);
        assert_eq!(state.strongbox.keep(&name("a"), &large, "k", "eve"), Err(Refusal::StrongboxFull));
        for number in 0..SECRETS_MAX {
            let kept = state.strongbox.keep(&name(&number.to_string()), "1", "k", "eve");
            apply(&mut state, kept);
        }
        assert_eq!(state.strongbox.keep(&name("a"), "1", "k", "eve"), Err(Refusal::StrongboxFull));
        assert!(state.strongbox.keep(&name("7"), "1", "k", "eve").is_ok());
    }
}
