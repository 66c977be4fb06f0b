//! The outcome of a request that is granted.

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
pub(super) struct Granted {
    /// In order; none if there is nothing to change.
    pub(super) facts: Vec<Fact>,
    pub(super) accepted: Accepted,
}

impl Granted {
    /// Answered with [`Accepted::Done`] once `facts` are durable.
    pub(super) fn done(facts: Vec<Fact>) -> Self {
        Self { facts, accepted: Accepted::Done }
    }
}
