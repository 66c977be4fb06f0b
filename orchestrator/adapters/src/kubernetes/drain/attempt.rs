//! One attempt to get rid of a pod: the eviction, what its refusal means, and the deletion that may follow.

use std::time::Duration;

use chrono::Utc;
use os_upgrade_kernel::PodObstacle;
use os_upgrade_protocol::limits::bounded_message;

use super::super::error::Error;
use super::super::eviction::Verdict;
use super::super::permit::{Interrupted, NotLeading, Permit};
use super::super::plan::{Fallback, PlannedPod};
use super::session::{SelectingBudget, Session};

/// The longest pause that a server may ask for.
const SERVER_PAUSE_MAX: Duration = Duration::from_mins(1);
/// The status with which a dry run is refused where an admission webhook supports none. It says nothing of the eviction.
const UNSUPPORTED: u16 = 400;
/// The status with which an admission webhook refuses an eviction that it carries out in its own way, as that of `KubeVirt` does by a
/// migration. In a dry run it says the same, so that only the eviction itself shows whether the pod goes. A budget's refusal has a cause
/// besides.
const LATER: u16 = 429;
/// The most budgets that are named.
const BUDGETS_NAMED_MAX: usize = 5;

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    /// The pod is being evicted, or would be.
    Evicted,
    /// The pod is being deleted, or would be.
    Deleted,
    /// The pod is gone, or is another one by now.
    Gone,
    /// The pod stays for the time being.
    Refused {
        /// What is told.
        obstacle: PodObstacle,
        /// The pause before the next attempt.
        retry: Duration,
    },
    /// The server is not able to answer, whichever pod it is asked about.
    Failed(Error),
}

/// What follows from what the server says to an eviction.
enum Meaning {
    Settled(Attempt),
    /// A budget refuses, and the pod may be deleted.
    MayBeDeleted,
}

/// Asks what would come of an attempt.
pub(super) async fn judge(session: &mut Session<'_>, pod: &PlannedPod, fallback: Fallback) -> Attempt {
    let meaning = match session.judge(&pod.pod).await {
        Ok(Verdict::Denied { status: UNSUPPORTED | LATER, message }) => {
            let obstacle = PodObstacle::Failed { detail: bounded_message(&message) };
            Meaning::Settled(Attempt::Refused { obstacle, retry: session.pace().retry })
        }
        Ok(verdict) => meaning(session, pod, fallback, verdict).await,
        Err(error) => Meaning::Settled(failed(session, pod, error).await),
    };
    match meaning {
        Meaning::Settled(attempt) => attempt,
        // The right to delete may be missing where that to evict is there.
        Meaning::MayBeDeleted => {
            let result = session.judge_deletion(&pod.pod).await;
            deleted(session, pod, result).await
        }
    }
}

/// Tries to get rid of a pod.
pub(super) async fn attempt(
    session: &mut Session<'_>,
    pod: &PlannedPod,
    fallback: Fallback,
    permit: Permit<'_>,
) -> Result<Attempt, NotLeading> {
    let meaning = match session.evict(&pod.pod, permit).await {
        Ok(verdict) => meaning(session, pod, fallback, verdict).await,
        Err(Interrupted::NotLeading) => return Err(NotLeading),
        Err(Interrupted::Failed(error)) => Meaning::Settled(failed(session, pod, error).await),
    };
    match meaning {
        Meaning::Settled(attempt) => Ok(attempt),
        Meaning::MayBeDeleted => delete(session, pod, permit).await,
    }
}

async fn meaning(
    session: &mut Session<'_>,
    pod: &PlannedPod,
    fallback: Fallback,
    verdict: Verdict,
) -> Meaning {
    let retry = session.pace().retry;
    let attempt = match (verdict, fallback) {
        (Verdict::Granted, _) => Attempt::Evicted,
        (Verdict::Gone | Verdict::Replaced, _) => Attempt::Gone,
        (Verdict::NamespaceEnds, _) => Attempt::Refused { obstacle: PodObstacle::NamespaceEnds, retry },
        (Verdict::Denied { status, message }, _) => denied(status, &message, retry),
        (Verdict::BudgetPending { message, retry_after }, _) => pending(&message, retry_after),
        (Verdict::Budget { .. }, Fallback::Delete) => return Meaning::MayBeDeleted,
        (Verdict::Budget { message }, Fallback::None) => match budgets_of(session, pod, &message).await {
            Ok(budgets) => Attempt::Refused { obstacle: kept(&budgets, &message), retry },
            Err(error) => Attempt::Failed(error),
        },
    };
    Meaning::Settled(attempt)
}

/// A pod that waits for its budget to be computed. Until then, nobody knows whether the budget protects the pod.
fn pending(message: &str, asked: Duration) -> Attempt {
    let retry = asked.min(SERVER_PAUSE_MAX);
    let obstacle =
        PodObstacle::BudgetPending { message: bounded_message(message), until: Utc::now() + retry };
    Attempt::Refused { obstacle, retry }
}

fn denied(status: u16, message: &str, retry: Duration) -> Attempt {
    let detail = if message.is_empty() { format!("status {status}") } else { bounded_message(message) };
    Attempt::Refused { obstacle: PodObstacle::Denied { detail }, retry }
}

/// What keeps a pod whose eviction a budget refuses.
fn kept(budgets: &[SelectingBudget], message: &str) -> PodObstacle {
    match budgets {
        [] => PodObstacle::UnreadBudget { message: bounded_message(message) },
        [budget] if budget.has_nothing_to_count => {
            PodObstacle::UncountedPods { budget: bounded_message(&budget.name) }
        }
        budgets => PodObstacle::Budget { budgets: names(budgets) },
    }
}

/// The budgets that select a pod, or none where they cannot be read: names are not worth holding up other pods.
async fn budgets_of(
    session: &mut Session<'_>,
    pod: &PlannedPod,
    message: &str,
) -> Result<Vec<SelectingBudget>, Error> {
    match session.budgets_of(pod).await {
        Err(error) if error.is_passing() || error.is_missing_right() => {
            let (namespace, name) = (&pod.pod.namespace, &pod.pod.name);
            tracing::info!(namespace, name, message, %error, "a budget refuses, and cannot be read");
            Ok(Vec::new())
        }
        result => result,
    }
}

fn names(budgets: &[SelectingBudget]) -> Vec<String> {
    budgets.iter().take(BUDGETS_NAMED_MAX).map(|budget| bounded_message(&budget.name)).collect()
}

async fn delete(
    session: &mut Session<'_>,
    pod: &PlannedPod,
    permit: Permit<'_>,
) -> Result<Attempt, NotLeading> {
    let result = match session.delete(&pod.pod, permit).await {
        Ok(verdict) => Ok(verdict),
        Err(Interrupted::NotLeading) => return Err(NotLeading),
        Err(Interrupted::Failed(error)) => Err(error),
    };
    Ok(deleted(session, pod, result).await)
}

/// The meaning of what the server says to a deletion.
async fn deleted(session: &mut Session<'_>, pod: &PlannedPod, result: Result<Verdict, Error>) -> Attempt {
    let retry = session.pace().retry;
    match result {
        Ok(Verdict::Granted) => Attempt::Deleted,
        Ok(Verdict::Gone | Verdict::Replaced) => Attempt::Gone,
        Ok(Verdict::NamespaceEnds) => Attempt::Refused { obstacle: PodObstacle::NamespaceEnds, retry },
        Ok(Verdict::Denied { status, message }) => denied(status, &message, retry),
        // No budget is asked about deletions.
        Ok(Verdict::Budget { message } | Verdict::BudgetPending { message, .. }) => {
            Attempt::Refused { obstacle: kept(&[], &message), retry }
        }
        Err(error) => failed_otherwise(session, pod, error).await,
    }
}

/// The meaning of a failed eviction. That several budgets select the pod is told by a failure without a reason.
async fn failed(session: &mut Session<'_>, pod: &PlannedPod, error: Error) -> Attempt {
    if let Error::ServerFailed { detail, .. } = &error {
        match budgets_of(session, pod, detail).await {
            Ok(budgets) if budgets.len() > 1 => {
                let obstacle = PodObstacle::SeveralBudgets { budgets: names(&budgets) };
                return Attempt::Refused { obstacle, retry: session.pace().retry };
            }
            Ok(_) => {}
            Err(error) => return Attempt::Failed(error),
        }
    }
    failed_otherwise(session, pod, error).await
}

async fn failed_otherwise(session: &mut Session<'_>, pod: &PlannedPod, error: Error) -> Attempt {
    let retry = session.pace().retry;
    match error {
        // It may be about this pod alone.
        Error::ServerFailed { .. } => {
            let obstacle = PodObstacle::Failed { detail: bounded_message(&error.to_string()) };
            Attempt::Refused { obstacle, retry }
        }
        // An admission plugin of the server refuses in the same form.
        Error::Forbidden { right, detail } if session.has_right(right, &pod.pod.namespace).await => {
            Attempt::Refused { obstacle: PodObstacle::Denied { detail: bounded_message(&detail) }, retry }
        }
        // It may be missing in this namespace alone.
        Error::Forbidden { right, detail } => {
            let detail = bounded_message(&format!("{right}: {detail}"));
            Attempt::Refused { obstacle: PodObstacle::MissingRight { detail }, retry }
        }
        Error::Throttled { .. }
        | Error::Unreachable { .. }
        | Error::TimedOut { .. }
        | Error::NoCredentials { .. }
        | Error::Unauthorized
        | Error::NotFound { .. }
        | Error::Conflict { .. }
        | Error::Inapplicable { .. }
        | Error::Refused { .. }
        | Error::AnswerTooLarge { .. }
        | Error::ListTooLarge { .. }
        | Error::Malformed { .. } => Attempt::Failed(error),
    }
}
