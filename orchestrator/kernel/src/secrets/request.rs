//! Operators' changes to the strongbox: store a secret, or remove one.

use os_upgrade_provider_rules::Origin;
use serde::{Deserialize, Serialize};

use super::state::{SEALED_BYTES_MAX, SECRETS_MAX, SecretName};
use crate::answer::{Accepted, Granted, RefusalClass};
use crate::fact::{Fact, SecretFact};
use crate::state::State;

/// An operation on secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SecretOperation {
    /// Store a secret in the strongbox, in place of one of the same name.
    Keep {
        /// The secret's name.
        name: SecretName,
        /// The sealed secret.
        sealed: String,
        /// The only origin to which providers of configuration may send it; absent if to none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// A value derived from the key, by which it is recognised.
        check: String,
    },
    /// Remove a secret.
    Remove {
        /// The secret's name.
        name: SecretName,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SecretRefusal {
    /// The existing secrets were sealed with another key.
    OtherStrongboxKey,
    /// The secret is too large, or there are too many.
    StrongboxFull,
    /// There is no secret of that name.
    NoSecret {
        /// That name.
        name: SecretName,
    },
}

impl SecretRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::NoSecret { .. } => RefusalClass::Missing,
            Self::OtherStrongboxKey | Self::StrongboxFull => RefusalClass::Conflict,
        }
    }
}

pub(crate) fn decide(
    state: &State,
    operation: &SecretOperation,
    actor: &str,
) -> Result<Granted, SecretRefusal> {
    match operation {
        SecretOperation::Keep { name, sealed, origin, check } => {
            keep(state, name, (sealed, origin.as_ref()), check, actor)
        }
        SecretOperation::Remove { name } => remove(state, name, actor),
    }
}

/// Stores `sealed`, which was sealed with the key of `check`. A strongbox without secrets accepts any key.
fn keep(
    state: &State,
    name: &SecretName,
    (sealed, origin): (&str, Option<&Origin>),
    check: &str,
    actor: &str,
) -> Result<Granted, SecretRefusal> {
    let kept = &state.strongbox;
    let is_new = !kept.secrets.contains_key(name);
    if !kept.secrets.is_empty() && kept.check.as_deref() != Some(check) {
        return Err(SecretRefusal::OtherStrongboxKey);
    }
    if sealed.len() > SEALED_BYTES_MAX || (is_new && kept.secrets.len() >= SECRETS_MAX) {
        return Err(SecretRefusal::StrongboxFull);
    }
    let made = (kept.check.as_deref() != Some(check))
        .then(|| Fact::Secret(SecretFact::KeySet { check: check.to_owned() }));
    let (name, sealed, actor) = (name.clone(), sealed.to_owned(), actor.to_owned());
    let origin = origin.cloned();
    let facts =
        made.into_iter().chain([Fact::Secret(SecretFact::Stored { name, sealed, origin, actor })]).collect();
    Ok(Granted { facts, accepted: if is_new { Accepted::Created } else { Accepted::Done } })
}

/// Removes a secret. This needs no key, so that a site that has lost its key can start over.
fn remove(state: &State, name: &SecretName, actor: &str) -> Result<Granted, SecretRefusal> {
    if !state.strongbox.secrets.contains_key(name) {
        return Err(SecretRefusal::NoSecret { name: name.clone() });
    }
    Ok(Granted::done(vec![Fact::Secret(SecretFact::Removed { name: name.clone(), actor: actor.to_owned() })]))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    fn apply(state: &mut State, granted: Result<Granted, SecretRefusal>) -> Accepted {
        let Granted { facts, accepted } = granted.unwrap();
        for fact in &facts {
            state.apply(DateTime::UNIX_EPOCH, fact).unwrap();
        }
        accepted
    }

    #[test]
    fn all_secrets_share_one_key() {
        let mut state = State::default();
        let kept = keep(&state, &name("a"), ("1", None), "k", "eve");
        assert_eq!(apply(&mut state, kept), Accepted::Created);
        let again = keep(&state, &name("a"), ("2", None), "k", "eve");
        assert_eq!(apply(&mut state, again), Accepted::Done);
        assert_eq!(state.strongbox.secrets[&name("a")].sealed, "2");
        assert_eq!(
            keep(&state, &name("b"), ("3", None), "other", "eve"),
            Err(SecretRefusal::OtherStrongboxKey)
        );
        assert_eq!(remove(&state, &name("b"), "eve"), Err(SecretRefusal::NoSecret { name: name("b") }));
        let removed = remove(&state, &name("a"), "eve");
        apply(&mut state, removed);
        // Without secrets, another key is accepted.
        let restarted = keep(&state, &name("b"), ("3", None), "other", "eve");
        assert_eq!(apply(&mut state, restarted), Accepted::Created);
        assert_eq!(state.strongbox.check.as_deref(), Some("other"));
    }

    #[test]
    fn secrets_are_bounded() {
        let mut state = State::default();
        let large = "x".repeat(SEALED_BYTES_MAX + 1);
        assert_eq!(keep(&state, &name("a"), (&large, None), "k", "eve"), Err(SecretRefusal::StrongboxFull));
        for number in 0..SECRETS_MAX {
            let kept = keep(&state, &name(&number.to_string()), ("1", None), "k", "eve");
            apply(&mut state, kept);
        }
        assert_eq!(keep(&state, &name("a"), ("1", None), "k", "eve"), Err(SecretRefusal::StrongboxFull));
        assert!(keep(&state, &name("7"), ("1", None), "k", "eve").is_ok());
    }
}
