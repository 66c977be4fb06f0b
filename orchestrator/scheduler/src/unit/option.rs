//! An option of a unit file.

use serde::{Deserialize, Serialize};

/// An assignment in a unit file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitOption {
    /// The section without its brackets.
    pub section: String,
    /// What is assigned to.
    pub name: String,
    /// The value as it is written; of one that is continued, each line with its backslash.
    pub value: String,
}
