//! The fence of the control stream: it shows which commands may still appear there.

use serde::{Deserialize, Serialize};

/// The fence under which commands are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fence {
    /// Its sequence in the control stream.
    pub sequence: u64,
    /// The instance that stored it.
    pub leader: String,
    /// Whether everything before it has been read.
    pub passed: bool,
}
