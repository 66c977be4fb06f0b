//! Why a system outside of the bus has not answered.

use serde::{Deserialize, Serialize};

use crate::secrets::Sealed;

/// Why a system outside of the bus has not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NoAnswer {
    /// No such system is configured.
    NotConfigured,
    /// The secret that it requires cannot be used.
    Sealed {
        /// Why the secret cannot be used.
        why: Sealed,
    },
    /// It did not answer in time.
    TimedOut,
    /// No connection to it could be made, so no request was sent.
    NotSent {
        /// The library's error message.
        detail: String,
    },
    /// The request failed, and may have been sent.
    Failed {
        /// The library's error message.
        detail: String,
    },
}
