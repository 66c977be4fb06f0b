//! What a granted request leads to, and what kind of refusal another one gets.

use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// A request that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// The resource was created.
    Created,
    /// The request is carried out, or there was nothing to change.
    Done,
    /// The request would be granted; nothing was changed, because it was only to be validated.
    Valid,
}

/// The facts of a granted request, and the answer once they are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// In order; none if there is nothing to change.
    pub(crate) facts: Vec<Fact>,
    pub(crate) accepted: Accepted,
}

impl Granted {
    /// Answered with [`Accepted::Done`] once `facts` are durable.
    pub(crate) fn done(facts: Vec<Fact>) -> Self {
        Self { facts, accepted: Accepted::Done }
    }
}

/// The class of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// The request itself is wrong.
    Invalid,
    /// It names something that does not exist.
    Missing,
    /// The state of the site does not allow it now.
    Conflict,
    /// What it changes is not what the caller has read.
    Changed,
    /// Something has to be repaired first.
    Unavailable,
}
