//! What the API server says to an eviction, and to a deletion of a pod.
//!
//! Statuses, causes and pauses tell refusals apart; texts are only shown. Two budgets over a pod are an error of the server without a
//! reason: whoever asks has to look at the budgets.

use std::time::Duration;

use super::answer::Answer;
use super::error::Error;
use super::rights::Right;

/// The cause in the details of a budget's refusal.
const BUDGET_CAUSE: &str = "DisruptionBudget";
/// The cause in the details when a namespace is being deleted.
const NAMESPACE_CAUSE: &str = "NamespaceTerminating";
/// The group of budgets, which the details name when a budget's status makes no sense.
const BUDGET_GROUP: &str = "policy";

/// What came of an eviction or of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The pod is being terminated.
    Granted,
    /// The pod is gone.
    Gone,
    /// Another pod has the name by now. The budget may be spent all the same, so nothing is sent again without a fresh list.
    Replaced,
    /// A budget does not allow it.
    Budget {
        /// The server's message, which names the budget.
        message: String,
    },
    /// The status of a budget is being computed, so that the server does not know whether the budget allows it.
    BudgetPending {
        /// The server's message, which names the budget.
        message: String,
        /// The pause that the server asks for.
        retry_after: Duration,
    },
    /// The namespace is being deleted, and the pod with it.
    NamespaceEnds,
    /// Something else, such as an admission webhook, refuses.
    Denied {
        /// The HTTP status.
        status: u16,
        message: String,
    },
}

/// Reads an answer.
pub(super) fn read(answer: &Answer, right: Right) -> Result<Verdict, Error> {
    if answer.is_success() {
        return Ok(Verdict::Granted);
    }
    let details = answer.status().and_then(|status| status.details);
    let causes = details.iter().flat_map(|details| details.causes.iter().flatten());
    let cause = |name: &str| causes.clone().find(|cause| cause.reason.as_deref() == Some(name));
    let is_about_budget =
        details.as_ref().is_some_and(|details| details.group.as_deref() == Some(BUDGET_GROUP));
    let pause = answer.pause();
    match answer.code {
        404 => Ok(Verdict::Gone),
        409 => Ok(Verdict::Replaced),
        429 if let Some(cause) = cause(BUDGET_CAUSE) => {
            let message = cause.message.clone().unwrap_or_else(|| answer.message());
            Ok(match pause {
                Some(retry_after) => Verdict::BudgetPending { message, retry_after },
                None => Verdict::Budget { message },
            })
        }
        403 if cause(NAMESPACE_CAUSE).is_some() => Ok(Verdict::NamespaceEnds),
        403 if is_about_budget => Ok(Verdict::Budget { message: answer.message() }),
        403 if answer.is_about_right() => Err(answer.error(right)),
        // A server that throttles says for how long, or answers in plain text. A webhook does neither.
        429 if pause.is_some() || answer.status().is_none() => Err(answer.error(right)),
        status @ 400..500 if status != 401 => Ok(Verdict::Denied { status, message: answer.message() }),
        _ => Err(answer.error(right)),
    }
}

#[cfg(test)]
mod tests;
