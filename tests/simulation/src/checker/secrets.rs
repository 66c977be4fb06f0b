//! Which secrets are kept: all of them under one key.

use std::collections::BTreeMap;

use os_upgrade_kernel::{Fact, Operation, SecretName, SecretOperation, SecretRefusal};

use super::violation::Violation;
use crate::time::Micros;

/// The strongbox, and how it was at any time.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    now: Strongbox,
    /// How it was before, and until when.
    before: Vec<(Micros, Strongbox)>,
}

#[derive(Debug, Clone, Default)]
struct Strongbox {
    check: Option<String>,
    kept: BTreeMap<SecretName, String>,
}

impl Secrets {
    /// A fact stands in the journal.
    pub(super) fn fact(&mut self, now: Micros, fact: &Fact) -> Result<(), Violation> {
        let mut strongbox = self.now.clone();
        let mut checked = Ok(());
        if let Fact::StrongboxMade { check } = fact {
            if !strongbox.kept.is_empty() {
                let text = format!("the strongbox has another key and still holds {strongbox:?}");
                checked = Err(Violation::new("secret", text));
            }
            strongbox.check = Some(check.clone());
        } else if let Fact::SecretKept { name, sealed, .. } = fact {
            strongbox.kept.insert(name.clone(), sealed.clone());
        } else if let Fact::SecretRemoved { name, .. } = fact {
            strongbox.kept.remove(name);
        } else {
            return checked;
        }
        let before = std::mem::replace(&mut self.now, strongbox);
        self.before.push((now, before));
        checked
    }

    /// Whether what was asked for has been so at some time since.
    pub(super) fn came_to_be(&self, asked: &SecretOperation, since: Micros) -> bool {
        self.was(since, |strongbox| match asked {
            SecretOperation::Keep { name, sealed, check } => {
                strongbox.kept.get(name) == Some(sealed) && strongbox.check.as_ref() == Some(check)
            }
            SecretOperation::Remove { name } => !strongbox.kept.contains_key(name),
        })
    }

    /// Whether there has been a reason for the refusal at some time since.
    pub(super) fn was_refusable(&self, asked: &Operation, refusal: &SecretRefusal, since: Micros) -> bool {
        let Operation::Secret(asked) = asked else { return false };
        self.was(since, |strongbox| match refusal {
            SecretRefusal::OtherStrongboxKey => {
                let is_other = |check| strongbox.check.as_ref() != Some(check);
                !strongbox.kept.is_empty()
                    && matches!(asked, SecretOperation::Keep { check, .. } if is_other(check))
            }
            // There are not so many.
            SecretRefusal::StrongboxFull => false,
            SecretRefusal::NoSecret { name } => !strongbox.kept.contains_key(name),
        })
    }

    /// Whether it was so at some time from `since` on.
    fn was(&self, since: Micros, is_so: impl Fn(&Strongbox) -> bool) -> bool {
        let before = self.before.iter().filter(|(until, _)| *until >= since).map(|(_, strongbox)| strongbox);
        before.chain([&self.now]).any(is_so)
    }
}
