//! Operators' control of the pause of a site.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::fact::PauseFact;
use super::state::{Pause, PauseCause};
use crate::answer::{Granted, RefusalClass};
use crate::fact::Fact;
use crate::state::State;

/// An operation on the pause of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum PauseOperation {
    /// Begin nothing further until the site is resumed.
    Pause {
        /// Why, as the operator says.
        reason: String,
        /// When it ends by itself; absent if it lasts until somebody resumes the site.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
    },
    /// Go on. Without a pause, nothing changes.
    Resume {
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum PauseRefusal {
    /// The pause would be over already.
    UntilPassed {
        until: DateTime<Utc>,
        /// What time it is.
        now: DateTime<Utc>,
    },
}

impl PauseRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::UntilPassed { .. } => RefusalClass::Conflict,
        }
    }
}

pub(crate) fn decide(
    state: &State,
    operation: &PauseOperation,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<Granted, PauseRefusal> {
    let fact = match operation {
        PauseOperation::Pause { reason, until } => {
            if let Some(until) = until.filter(|until| *until <= now) {
                return Err(PauseRefusal::UntilPassed { until, now });
            }
            let cause = PauseCause::Operator { actor: actor.to_owned(), reason: reason.clone() };
            let is_known = |pause: &Pause| pause.cause == cause && pause.until == *until;
            let is_new = !state.pause.as_ref().is_some_and(is_known);
            is_new.then_some(PauseFact::Paused { cause, until: *until })
        }
        PauseOperation::Resume { reason } => {
            let (actor, reason) = (Some(actor.to_owned()), reason.clone());
            state.pause.is_some().then_some(PauseFact::Resumed { actor, reason })
        }
    };
    Ok(Granted::done(fact.map(Fact::from).into_iter().collect()))
}
