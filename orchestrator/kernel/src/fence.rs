//! The fence: the message in the control stream under which commands are sent.

use serde::{Deserialize, Serialize};

/// The fence under which commands are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fence {
    /// Its sequence in the control stream.
    pub sequence: u64,
    /// The instance whose it is.
    pub leader: String,
    /// Whether everything before it has been read.
    pub passed: bool,
}
