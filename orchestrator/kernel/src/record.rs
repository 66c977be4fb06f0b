//! A record: the unit that is journaled. Its facts take effect together or not at all.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// Facts that were decided together. One without facts is a barrier: it proves that its writer still leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// When it was decided, by the leader's clock.
    pub at: DateTime<Utc>,
    /// The position in the control stream up to which messages have been taken into account.
    pub control: u64,
    /// What was decided, in order.
    pub facts: Vec<Fact>,
}
