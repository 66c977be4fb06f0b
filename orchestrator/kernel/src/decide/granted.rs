//! What comes of a request that is granted.

use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// A request that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// There was nothing there before.
    Created,
    /// It is so.
    Done,
    /// It would be granted; nothing was done, as asked.
    Valid,
}

/// What becomes true, and what the asker is told once it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Granted {
    /// In order; none where it is so already.
    pub(super) facts: Vec<Fact>,
    pub(super) accepted: Accepted,
}

impl Granted {
    /// It is so once `facts` are durable.
    pub(super) fn done(facts: Vec<Fact>) -> Self {
        Self { facts, accepted: Accepted::Done }
    }
}
