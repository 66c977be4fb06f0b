//! What becomes true when the site is restored.

use serde::{Deserialize, Serialize};

use super::record::{Outstanding, RestoreSource};
use crate::about::{About, Part};

/// Something that has become true of the site as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RestorationFact {
    /// The site was restored from data kept outside the bus: earlier leaderships no longer count, and every slot that
    /// may be held is held.
    Restored {
        /// Where the state was restored from.
        source: RestoreSource,
        /// Who restored it.
        actor: String,
        /// Whether the control stream is still the one with the commands sent before.
        control_kept: bool,
        /// Commands in the control stream without a reply.
        outstanding: Vec<Outstanding>,
    },
}

impl RestorationFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        let Self::Restored { actor, .. } = self;
        About::by(actor)
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        let Self::Restored { .. } = self;
        &[]
    }
}
