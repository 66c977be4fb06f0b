//! The fence of a leader in the marks of nodes.

use serde::{Deserialize, Serialize};

/// The fence of a leader in the marks of nodes: a later one is greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeFence {
    /// When the site was last restored, in seconds since 1970; 0 if it never was. The stream, and with it its sequences, may have
    /// begun anew then.
    pub restored: i64,
    /// The sequence of the fence in the control stream.
    pub sequence: u64,
}

impl NodeFence {
    /// Whether a leader with this fence leaves alone what has the fence `mark`: a later leader has written it, or one of another journal.
    /// A site that was restored goes on from the journal before.
    pub fn yields_to(self, mark: Self, is_of_other_journal: bool) -> bool {
        mark > self || (is_of_other_journal && mark.restored == self.restored)
    }
}
