//! One attempt to get rid of a pod: the eviction, what its refusal means, and the deletion that may follow.

use std::time::Duration;

use super::super::api::Mode;
use super::super::error::Error;
use super::super::eviction::Verdict;
use super::super::permit::Interrupted;
use super::super::plan::{Fallback, PlannedPod};
use super::report::Reason;
use super::session::{SelectingBudget, Session};

/// The longest pause that a server may ask for.
const SERVER_PAUSE_MAX: Duration = Duration::from_mins(1);

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    /// The pod is being evicted, or would be.
    Evicted,
    /// The pod is being deleted.
    Deleted,
    /// The pod is gone, or is another one by now.
    Gone,
    /// The pod stays for the time being.
    Refused {
        /// The reason that is reported.
        reason: Reason,
        /// The pause before the next attempt; without one there is none.
        retry: Option<Duration>,
    },
    /// The server is not able to answer, whichever pod it is asked about.
    Interrupted {
        /// What went wrong.
        error: Error,
        /// The pause before the next request.
        pause: Duration,
    },
}

/// The pause that a server asks for, within bounds, or ours.
pub(super) fn pause(asked: Option<Duration>, own: Duration) -> Duration {
    asked.map_or(own, |asked| asked.min(SERVER_PAUSE_MAX))
}

/// Tries to get rid of a pod. In a dry run, a refusal after which it would be deleted counts as an eviction.
pub(super) async fn attempt(
    session: &mut Session<'_>,
    pod: &PlannedPod,
    fallback: Fallback,
    mode: Mode,
) -> Result<Attempt, Interrupted> {
    let retry = session.pace().retry;
    let verdict = match session.evict(&pod.pod, mode).await {
        Ok(verdict) => verdict,
        Err(Interrupted::Failed(error)) => return failed(session, pod, error).await,
        Err(stopped) => return Err(stopped),
    };
    match (verdict, fallback, mode) {
        (Verdict::Granted, ..) => Ok(Attempt::Evicted),
        (Verdict::Gone | Verdict::Replaced, ..) => Ok(Attempt::Gone),
        (Verdict::NamespaceEnds, ..) => {
            Ok(Attempt::Refused { reason: Reason::NamespaceEnds, retry: Some(retry) })
        }
        (Verdict::Denied { status, message }, ..) => {
            Ok(Attempt::Refused { reason: Reason::Denied { status, message }, retry: Some(retry) })
        }
        (Verdict::Budget { .. }, Fallback::Delete, Mode::DryRun) => Ok(Attempt::Deleted),
        (Verdict::Budget { .. }, Fallback::Delete, Mode::Real) => delete(session, pod).await,
        (Verdict::Budget { message, retry_after }, Fallback::None, _) => {
            let reason = match budgets_of(session, pod).await? {
                Ok(budgets) => match &budgets[..] {
                    [budget] if budget.has_nothing_to_count => {
                        Reason::UncountedPods { budget: budget.name.clone() }
                    }
                    budgets => Reason::Budget { budgets: names(budgets), message, unread: None },
                },
                Err(error) => Reason::Budget { budgets: Vec::new(), message, unread: Some(error) },
            };
            Ok(Attempt::Refused { reason, retry: Some(pause(retry_after, retry)) })
        }
    }
}

/// The budgets that select a pod, or why they cannot be read: names are not worth holding up other pods.
async fn budgets_of(
    session: &mut Session<'_>,
    pod: &PlannedPod,
) -> Result<Result<Vec<SelectingBudget>, Error>, Interrupted> {
    match session.budgets_of(pod).await {
        Ok(budgets) => Ok(Ok(budgets)),
        Err(Interrupted::Failed(error)) if error.is_passing() || error.is_missing_right() => Ok(Err(error)),
        Err(interrupted) => Err(interrupted),
    }
}

fn names(budgets: &[SelectingBudget]) -> Vec<String> {
    budgets.iter().map(|budget| budget.name.clone()).collect()
}

async fn delete(session: &mut Session<'_>, pod: &PlannedPod) -> Result<Attempt, Interrupted> {
    let retry = Some(session.pace().retry);
    match session.delete(&pod.pod).await {
        Ok(Verdict::Granted) => Ok(Attempt::Deleted),
        Ok(Verdict::Gone | Verdict::Replaced) => Ok(Attempt::Gone),
        Ok(Verdict::NamespaceEnds) => Ok(Attempt::Refused { reason: Reason::NamespaceEnds, retry }),
        Ok(Verdict::Denied { status, message }) => {
            Ok(Attempt::Refused { reason: Reason::Denied { status, message }, retry })
        }
        // No budget is asked about deletions.
        Ok(Verdict::Budget { message, .. }) => {
            let reason = Reason::Budget { budgets: Vec::new(), message, unread: None };
            Ok(Attempt::Refused { reason, retry })
        }
        Err(Interrupted::Failed(error)) => failed_otherwise(session, error),
        Err(stopped) => Err(stopped),
    }
}

/// The meaning of a failed eviction. That several budgets select the pod is told by a failure without a reason.
async fn failed(session: &mut Session<'_>, pod: &PlannedPod, error: Error) -> Result<Attempt, Interrupted> {
    if matches!(error, Error::ServerFailed { .. })
        && let Ok(budgets) = budgets_of(session, pod).await?
        && budgets.len() > 1
    {
        let reason = Reason::SeveralBudgets { budgets: names(&budgets) };
        return Ok(Attempt::Refused { reason, retry: None });
    }
    failed_otherwise(session, error)
}

fn failed_otherwise(session: &Session<'_>, error: Error) -> Result<Attempt, Interrupted> {
    let retry = session.pace().retry;
    match error {
        Error::Throttled { retry_after } => {
            Ok(Attempt::Interrupted { pause: pause(retry_after, retry), error })
        }
        Error::Unreachable { .. } | Error::TimedOut { .. } | Error::NoCredentials { .. } => {
            Ok(Attempt::Interrupted { pause: retry, error })
        }
        // It may be about this pod alone.
        Error::ServerFailed { .. } => {
            Ok(Attempt::Refused { reason: Reason::Failed(error), retry: Some(retry) })
        }
        // It may be missing in this namespace alone.
        Error::Forbidden { right, detail } => {
            Ok(Attempt::Refused { reason: Reason::MissingRight { right, detail }, retry: Some(retry) })
        }
        Error::Unauthorized
        | Error::NotFound { .. }
        | Error::Conflict { .. }
        | Error::Inapplicable { .. }
        | Error::Refused { .. }
        | Error::Malformed { .. } => Err(error.into()),
    }
}
