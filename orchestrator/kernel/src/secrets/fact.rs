//! What becomes true of the strongbox.

use os_upgrade_provider_rules::Origin;
use serde::{Deserialize, Serialize};

use super::state::SecretName;
use crate::about::{About, AuditList, Part};

/// Something that has become true of the strongbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SecretFact {
    /// The strongbox, which held no secrets, got a new key.
    #[serde(rename = "strongbox-made")]
    #[strum(serialize = "strongbox-made")]
    KeySet {
        /// A value derived from the key, by which it is recognised.
        check: String,
    },
    /// A secret was stored in the strongbox.
    #[serde(rename = "secret-kept")]
    #[strum(serialize = "secret-kept")]
    Stored {
        /// The secret's name.
        name: SecretName,
        /// The sealed secret.
        sealed: String,
        /// The only origin to which providers of configuration may send it; absent if to none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// Who stored it.
        actor: String,
    },
    /// A secret was removed from the strongbox.
    #[serde(rename = "secret-removed")]
    #[strum(serialize = "secret-removed")]
    Removed {
        /// The secret's name.
        name: SecretName,
        /// Who removed it.
        actor: String,
    },
}

impl SecretFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Stored { actor, .. } | Self::Removed { actor, .. } => {
                About::by(actor).in_list(AuditList::Strongbox)
            }
            Self::KeySet { .. } => About::default().in_list(AuditList::Strongbox),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::KeySet { .. } | Self::Stored { .. } | Self::Removed { .. } => &[],
        }
    }
}
