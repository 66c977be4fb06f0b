//! What becomes true of the configuration and the settings.

use serde::{Deserialize, Serialize};

use super::difference::Difference;
use super::settings::Settings;
use super::state::Config;
use crate::about::{About, AuditList, Part};

/// Something that has become true of the configuration or the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConfigFact {
    /// The leader's settings differ from those in force and replace them.
    SettingsAdopted {
        /// In force from now on.
        settings: Settings,
    },
    /// An operator replaced or deleted the configuration.
    #[serde(rename = "config-replaced")]
    #[strum(serialize = "config-replaced")]
    Replaced {
        /// In force from now on; `None` when it was deleted.
        config: Option<Config>,
        actor: String,
        /// Every place at which it differs from the previous configuration.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        difference: Vec<Difference>,
    },
}

impl ConfigFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Replaced { actor, .. } => About::by(actor).in_list(AuditList::Configuration),
            Self::SettingsAdopted { .. } => About::default(),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::SettingsAdopted { .. } | Self::Replaced { .. } => &[],
        }
    }
}
