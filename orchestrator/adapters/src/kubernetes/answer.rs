//! Answers of the API server, and what the status says. Who may be asked what is not known here.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use os_upgrade_protocol::limits::bounded_message;
use serde::de::DeserializeOwned;

use super::error::Error;
use super::rights::Right;

/// An answer, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The HTTP status.
    pub(super) code: u16,
    /// The header `Retry-After`.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The pause that the server asks for, in the header or, where something in between has removed it, in the details.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.retry_after.or_else(|| {
            let seconds = self.status()?.details?.retry_after_seconds?;
            u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
        })
    }

    /// Whether the request was carried out.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The `Status` in the body. What comes before the API's own handlers, such as throttling, is answered in plain text.
    pub(super) fn status(&self) -> Option<Status> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The message of a refusal.
    pub(super) fn message(&self) -> String {
        let message = self.status().and_then(|status| status.message);
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&self.body).trim().to_owned());
        bounded_message(&message)
    }

    /// Whether a refusal is about an object. A server that does not know the path names none.
    fn names_object(&self) -> bool {
        let details = self.status().and_then(|status| status.details);
        details.is_some_and(|details| details.name.is_some())
    }

    /// Whether a refusal is about a right. It names the resource then, and gives no causes; an admission policy does, and a webhook
    /// does neither.
    pub(super) fn is_about_right(&self) -> bool {
        let details = self.status().and_then(|status| status.details);
        details.is_some_and(|details| details.kind.is_some()) && !self.has_causes()
    }

    /// Whether a refusal gives causes.
    fn has_causes(&self) -> bool {
        let causes = self.status().and_then(|status| status.details?.causes);
        causes.is_some_and(|causes| !causes.is_empty())
    }

    /// Why the request was not carried out.
    pub(super) fn error(&self, right: Right) -> Error {
        let detail = self.message();
        match self.code {
            401 => Error::Unauthorized,
            403 if self.is_about_right() => Error::Forbidden { right, detail },
            404 if self.names_object() => Error::NotFound { right, detail },
            409 => Error::Conflict { detail },
            // What an admission policy or the validation of the object refuses has causes, a patch that does not apply has none.
            422 if !self.has_causes() => Error::Inapplicable { detail },
            429 => Error::Throttled { retry_after: self.pause() },
            status @ 400..500 => Error::Refused { status, detail },
            status @ 500..600 => Error::ServerFailed { status, detail },
            status => Error::Malformed { detail: format!("status {status}") },
        }
    }

    /// The object in the body.
    pub(super) fn object<T: DeserializeOwned>(&self, right: Right) -> Result<T, Error> {
        if !self.is_success() {
            return Err(self.error(right));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Error::Malformed { detail: bounded_message(&error.to_string()) })
    }
}
