//! What facts about secrets change in the strongbox.

use chrono::{DateTime, Utc};

use super::fact::SecretFact;
use super::state::{Secret, Strongbox};

impl Strongbox {
    pub(crate) fn apply(&mut self, fact: &SecretFact, at: DateTime<Utc>) {
        match fact {
            SecretFact::KeySet { check } => self.check = Some(check.clone()),
            SecretFact::Stored { name, sealed, origin, actor } => {
                let (sealed, origin, actor) = (sealed.clone(), origin.clone(), actor.clone());
                let secret = Secret { sealed, origin, actor, since: at };
                self.secrets.insert(name.clone(), secret);
            }
            SecretFact::Removed { name, actor: _ } => drop(self.secrets.remove(name)),
        }
    }
}
