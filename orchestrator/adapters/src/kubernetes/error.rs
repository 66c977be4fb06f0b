//! Why a request was not carried out, or is not known to have been.

use std::time::Duration;

use super::rights::Right;

/// Why a request failed. Refusals of evictions that are about the pod are in [`super::eviction`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no answer. The request may have been carried out.
    #[error("the API server cannot be reached: {detail}")]
    Unreachable {
        /// The causes.
        detail: String,
    },
    /// There is no answer in time. The request may have been carried out, or may yet be.
    #[error("the API server has not answered within {} ms", .limit.as_millis())]
    TimedOut { limit: Duration },
    /// There are no credentials to send, so nothing was sent: a program that the kubeconfig names has failed, or a file cannot
    /// be read.
    #[error("there are no credentials: {detail}")]
    NoCredentials {
        /// The causes.
        detail: String,
    },
    /// The credentials are wrong or have expired.
    #[error("the API server does not accept the credentials")]
    Unauthorized,
    /// A right is missing.
    #[error("no right to {right}: {detail}")]
    Forbidden {
        right: Right,
        /// The server's message.
        detail: String,
    },
    /// The object is not there.
    #[error("what was meant by {right} is not there: {detail}")]
    NotFound {
        /// The right that the request needed.
        right: Right,
        /// The server's message.
        detail: String,
    },
    /// The object has changed, or is another one of the same name.
    #[error("the object has changed: {detail}")]
    Conflict {
        /// The server's message.
        detail: String,
    },
    /// A patch does not apply to the object as it is.
    #[error("the patch does not apply: {detail}")]
    Inapplicable {
        /// The server's message.
        detail: String,
    },
    /// The server has too many requests at the moment.
    #[error("the API server throttles{}", pause_text(*.retry_after))]
    Throttled {
        /// The pause that it asks for.
        retry_after: Option<Duration>,
    },
    /// The request is refused for another reason.
    #[error("refused with status {status}: {detail}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        detail: String,
    },
    /// The server failed. The request may have been carried out.
    #[error("the API server failed with status {status}: {detail}")]
    ServerFailed {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        detail: String,
    },
    /// The answer is larger than answers about one object are. The request may have been carried out.
    #[error("the answer has more than {bytes_max} bytes")]
    AnswerTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// A list is longer than lists may be.
    #[error("the list of the {what} has more than {mebibytes_max} MiB or {objects_max} objects")]
    ListTooLarge {
        /// The right that the list needs.
        right: Right,
        /// What is listed.
        what: String,
        /// The limit in MiB, over all pages.
        mebibytes_max: usize,
        /// The limit in objects.
        objects_max: usize,
    },
    /// The answer cannot be read. The request may have been carried out.
    #[error("the answer cannot be read: {detail}")]
    Malformed {
        /// What is wrong.
        detail: String,
    },
}

fn pause_text(pause: Option<Duration>) -> String {
    pause.map_or_else(String::new, |pause| format!(", and asks for a pause of {} s", pause.as_secs()))
}

impl Error {
    /// Whether the same request may succeed a moment later, without anybody changing rights, credentials or settings.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::NoCredentials { .. }
            | Self::Conflict { .. }
            | Self::Inapplicable { .. }
            | Self::Throttled { .. }
            | Self::ServerFailed { .. } => true,
            Self::Unauthorized
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::AnswerTooLarge { .. }
            | Self::ListTooLarge { .. }
            | Self::Malformed { .. } => false,
        }
    }

    /// Whether a right is missing. It may be there for other objects, such as those of another namespace.
    pub fn is_missing_right(&self) -> bool {
        matches!(self, Self::Forbidden { .. })
    }

    /// Whether a write that failed so may have been carried out all the same.
    pub fn leaves_outcome_unknown(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::ServerFailed { .. }
            | Self::AnswerTooLarge { .. }
            | Self::Malformed { .. } => true,
            Self::NoCredentials { .. }
            | Self::Unauthorized
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Conflict { .. }
            | Self::Inapplicable { .. }
            | Self::Throttled { .. }
            | Self::ListTooLarge { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// The pause that the server asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Throttled { retry_after } = self { *retry_after } else { None }
    }
}
