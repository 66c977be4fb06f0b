//! Why the cluster could not be asked, or what it refuses, in words for operators.

use std::time::Duration;

use os_upgrade_kernel::{NoAnswer, NodeOutcome};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_shell::fleet_lock::RetryAfter;

use crate::kubernetes::client::BuildError;
use crate::kubernetes::error::Error;
use crate::kubernetes::rights::{GET_NODE, LIST_NAMESPACES, LIST_NODES, LIST_PODS, PATCH_NODE, Right};

/// The longest pause that a server may ask for. It holds for all nodes.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Why there is no result. `Display` says what to do, where somebody has to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no client, so nothing was sent.
    #[error("{}", with_causes(.0))]
    NoClient(BuildError),
    /// A request failed.
    #[error("{}", sentence(.0))]
    Request(Error),
    /// It is not known which node belongs to a host.
    #[error("{detail}")]
    NoNode {
        /// What is wrong.
        detail: String,
    },
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::NoClient(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Request(error)
    }
}

fn sentence(error: &Error) -> String {
    match error {
        Error::Unauthorized => {
            "the API server does not accept the credentials of the orchestrator: they have to be renewed"
                .to_owned()
        }
        Error::Forbidden { right, detail } => format!(
            "the orchestrator lacks the right to {right}, which config/kubernetes/rbac.yaml grants: {detail}"
        ),
        Error::NotFound { right, detail } if is_of_node(*right) => {
            format!("the cluster has no such node, or the host has another one: {detail}")
        }
        Error::Conflict { .. } | Error::Inapplicable { .. } => {
            format!("others change the node all the time: {error}")
        }
        Error::ListTooLarge { right, .. } => format!("{error}: {}", shorter(*right)),
        Error::Unreachable { .. }
        | Error::TimedOut { .. }
        | Error::NoCredentials { .. }
        | Error::NotFound { .. }
        | Error::Throttled { .. }
        | Error::Refused { .. }
        | Error::ServerFailed { .. }
        | Error::AnswerTooLarge { .. }
        | Error::Malformed { .. } => error.to_string(),
    }
}

/// What makes a list shorter.
fn shorter(right: Right) -> &'static str {
    match right {
        LIST_NODES => {
            "shorten what nodes say, such as their images (nodeStatusMaxImages of the kubelets) and annotations"
        }
        LIST_PODS => "delete finished pods, and shorten the annotations and environments of others",
        LIST_NAMESPACES => {
            "shorten their annotations, or do without protected-namespaces, which needs the list"
        }
        _ => "delete those that nobody needs, and shorten the annotations of others",
    }
}

fn is_of_node(right: Right) -> bool {
    [GET_NODE, PATCH_NODE].contains(&right)
}

impl Failure {
    /// Whether a node is not there (any more).
    pub(super) fn is_node_gone(&self) -> bool {
        matches!(self, Self::Request(Error::NotFound { right, .. }) if is_of_node(*right))
    }

    /// The outcome of a job that failed so, and how long the server does not want to be asked.
    pub(super) fn into_outcome(self) -> (NodeOutcome, Option<RetryAfter>) {
        let detail = bounded_message(&self.to_string());
        let unreachable = |why| NodeOutcome::Unreachable { why };
        match self {
            Self::NoClient(_) => (unreachable(NoAnswer::NotSent { detail }), None),
            Self::NoNode { .. } => (NodeOutcome::Refused { detail }, None),
            Self::Request(error) => match error {
                Error::TimedOut { .. } => (unreachable(NoAnswer::TimedOut), None),
                // Earlier requests of the same job may have been sent.
                Error::Unreachable { .. } | Error::NoCredentials { .. } | Error::ServerFailed { .. } => {
                    (unreachable(NoAnswer::Failed { detail }), None)
                }
                Error::Throttled { retry_after } => {
                    let pause = retry_after.map(|pause| RetryAfter::Server(pause.min(PAUSE_MAX)));
                    (unreachable(NoAnswer::Failed { detail }), pause)
                }
                Error::Unauthorized
                | Error::Forbidden { .. }
                | Error::NotFound { .. }
                | Error::Conflict { .. }
                | Error::Inapplicable { .. }
                | Error::Refused { .. }
                | Error::AnswerTooLarge { .. }
                | Error::ListTooLarge { .. }
                | Error::Malformed { .. } => (NodeOutcome::Refused { detail }, None),
            },
        }
    }
}

#[cfg(test)]
mod tests;
