//! Which secrets are stored: all of them must be under one key.

use std::collections::BTreeMap;

use os_upgrade_kernel::fact::SecretFact;
use os_upgrade_kernel::{Fact, Operation, SecretName, SecretOperation, SecretRefusal};

use super::violation::Violation;
use crate::time::Micros;

/// The strongbox, now and at earlier times.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    now: Strongbox,
    /// Its earlier contents, each with the time at which it ended.
    before: Vec<(Micros, Strongbox)>,
}

#[derive(Debug, Clone, Default)]
struct Strongbox {
    check: Option<String>,
    kept: BTreeMap<SecretName, String>,
}

impl Secrets {
    /// A fact was added to the journal.
    pub(super) fn fact(&mut self, now: Micros, fact: &Fact) -> Result<(), Violation> {
        let Fact::Secret(fact) = fact else { return Ok(()) };
        let mut strongbox = self.now.clone();
        let mut checked = Ok(());
        match fact {
            SecretFact::KeySet { check } => {
                if !strongbox.kept.is_empty() {
                    let text = format!("the strongbox has another key and still holds {strongbox:?}");
                    checked = Err(Violation::new("secret", text));
                }
                strongbox.check = Some(check.clone());
            }
            SecretFact::Stored { name, sealed, .. } => {
                strongbox.kept.insert(name.clone(), sealed.clone());
            }
            SecretFact::Removed { name, .. } => {
                strongbox.kept.remove(name);
            }
        }
        let before = std::mem::replace(&mut self.now, strongbox);
        self.before.push((now, before));
        checked
    }

    /// Whether the result of `operation` was in force at some time since `since`.
    pub(super) fn took_effect(&self, operation: &SecretOperation, since: Micros) -> bool {
        self.was_ever(since, |strongbox| match operation {
            SecretOperation::Keep { name, sealed, origin: _, check } => {
                strongbox.kept.get(name) == Some(sealed) && strongbox.check.as_ref() == Some(check)
            }
            SecretOperation::Remove { name } => !strongbox.kept.contains_key(name),
        })
    }

    /// Whether there was a reason for the refusal at some time since `since`.
    pub(super) fn was_refusable(
        &self,
        operation: &Operation,
        refusal: &SecretRefusal,
        since: Micros,
    ) -> bool {
        let Operation::Secret(operation) = operation else { return false };
        self.was_ever(since, |strongbox| match refusal {
            SecretRefusal::OtherStrongboxKey => {
                let is_other = |check| strongbox.check.as_ref() != Some(check);
                !strongbox.kept.is_empty()
                    && matches!(operation, SecretOperation::Keep { check, .. } if is_other(check))
            }
            // The simulated site never stores that many.
            SecretRefusal::StrongboxFull => false,
            SecretRefusal::NoSecret { name } => !strongbox.kept.contains_key(name),
        })
    }

    /// Whether `is_so` held at some time since `since`.
    fn was_ever(&self, since: Micros, is_so: impl Fn(&Strongbox) -> bool) -> bool {
        let before = self.before.iter().filter(|(until, _)| *until >= since).map(|(_, strongbox)| strongbox);
        before.chain([&self.now]).any(is_so)
    }
}
