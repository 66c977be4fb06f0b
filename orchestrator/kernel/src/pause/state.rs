//! The pause of a site, while there is one.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A pause of the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pause {
    /// Why it is paused.
    pub cause: PauseCause,
    /// Since when it is.
    pub since: DateTime<Utc>,
    /// When it ends by itself; absent if it lasts until somebody resumes the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

/// Why a site is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum PauseCause {
    /// An operator paused it.
    Operator {
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// The site was restored, so what became of its hosts is not known.
    Restored {
        /// Who restored it.
        actor: String,
    },
}

impl PauseCause {
    /// Who paused the site, or restored it.
    pub fn actor(&self) -> &str {
        match self {
            Self::Operator { actor, .. } | Self::Restored { actor } => actor,
        }
    }

    /// The operator's reason, if one paused it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Operator { reason, .. } => Some(reason),
            Self::Restored { .. } => None,
        }
    }
}
