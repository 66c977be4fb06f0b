//! When the API servers of a cluster reboot.

use serde::{Deserialize, Serialize};

/// Whether API servers reboot before other nodes or after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiServerOrder {
    /// Before them, as CKE's documentation says.
    #[default]
    First,
    /// After them, as CKE has learned: the API servers' role may move to a node that has not rebooted yet.
    Last,
}

impl ApiServerOrder {
    /// The word in the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
