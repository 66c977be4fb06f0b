//! What becomes true of the pause of a site.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::state::PauseCause;
use crate::about::{About, Part};

/// Something that has become true of the pause of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum PauseFact {
    /// The site is paused, or a pause has another end or reason from here on.
    #[serde(rename = "site-paused")]
    #[strum(serialize = "site-paused")]
    Paused {
        #[serde(flatten)]
        cause: PauseCause,
        /// When it ends by itself; absent if it lasts until somebody resumes the site.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
    },
    /// The site is no longer paused.
    #[serde(rename = "site-resumed")]
    #[strum(serialize = "site-resumed")]
    Resumed {
        /// Who resumed it; absent if the end of the pause had come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl PauseFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Paused { cause, .. } => About::by(cause.actor()),
            Self::Resumed { actor, .. } => About { actor: actor.as_deref(), ..About::default() },
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::Paused { .. } | Self::Resumed { .. } => &[],
        }
    }
}
