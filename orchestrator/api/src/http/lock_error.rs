//! Errors in FleetLock's dialect: `{"kind":"...","value":"..."}`.

use std::net::IpAddr;

use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use os_upgrade_api_types::routes::fleet_lock::ClaimError;
use os_upgrade_auth::Denied;
use os_upgrade_console::describe;
use os_upgrade_kernel::ClientId;
use os_upgrade_kernel::slot::{self, DeniedKind};
use os_upgrade_protocol::GroupName;
use os_upgrade_shell::not_done::NotDone;
use serde_json::json;

use crate::http::error::{Cause, Routine};

/// One entry per kind: its meaning, name, status, and word on the wire.
macro_rules! kinds {
    ($(#[doc = $meaning:literal] $name:ident = $status:ident $word:literal,)*) => {
        /// Every `kind` in an answer: a small fixed set, as FleetLock requires.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $(#[doc = $meaning] $name,)*
        }

        impl Kind {
            /// The word on the wire.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// The HTTP status.
            pub(crate) const fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)*
                }
            }
        }

        /// Every kind with its documented meaning.
        #[cfg(test)]
        const ALL: &[(Kind, &str)] = &[$((Kind::$name, $meaning),)*];
    };
}

kinds! {
    /// every slot of the group is held, or it has none; `value` names holders
    FailedLockSemaphoreFull = CONFLICT "failed_lock_semaphore_full",
    /// no such group is configured
    UnknownGroup = BAD_REQUEST "unknown_group",
    /// this site takes its slots from another lock server: send the request there
    OtherLockServer = CONFLICT "other_lock_server",
    /// the request could not be processed, and nothing was changed: try again
    BackendUnavailable = SERVICE_UNAVAILABLE "backend_unavailable",
    /// it is not known whether the slot is held: try again
    OutcomeUnknown = SERVICE_UNAVAILABLE "outcome_unknown",
    /// the credentials are missing, wrong or expired
    Unauthorized = UNAUTHORIZED "unauthorized",
    /// the credentials are not for this group, or, without tokens, the request comes from a page of another web site or was sent to a name other than localhost
    Forbidden = FORBIDDEN "forbidden",
    /// the header `fleet-lock-protocol: true` is missing, repeated or different
    MissingFleetLockHeader = BAD_REQUEST "missing_fleet_lock_header",
    /// the body is not JSON of the protocol's shape
    InvalidBody = BAD_REQUEST "invalid_body",
    /// the id is empty, longer than 256 bytes, or holds control characters
    InvalidId = BAD_REQUEST "invalid_id",
    /// the group does not match `^[a-zA-Z0-9.-]+$`, or is longer than 255 bytes
    InvalidGroup = BAD_REQUEST "invalid_group",
    /// the body exceeds 64 KiB
    BodyTooLarge = PAYLOAD_TOO_LARGE "body_too_large",
    /// the body did not arrive within 10 s
    BodyTimeout = REQUEST_TIMEOUT "body_timeout",
    /// the request is plain HTTP, and the port accepts HTTPS only
    HttpsOnly = BAD_REQUEST "https_only",
    /// too many requests are under way: try again after `Retry-After`
    Busy = SERVICE_UNAVAILABLE "busy",
    /// too many requests come from this address: try again after `Retry-After`
    TooManyRequests = TOO_MANY_REQUESTS "too_many_requests",
    /// the method is not POST
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed",
    /// there is nothing at this path: FleetLock is at the root and below `/fleetlock`
    NotFound = NOT_FOUND "not_found",
    /// a fault of the orchestrator; its log has the cause
    Internal = INTERNAL_SERVER_ERROR "internal",
}

impl From<DeniedKind> for Kind {
    fn from(kind: DeniedKind) -> Self {
        match kind {
            DeniedKind::UnknownGroup => Self::UnknownGroup,
            DeniedKind::FailedLockSemaphoreFull => Self::FailedLockSemaphoreFull,
            DeniedKind::OtherLockServer => Self::OtherLockServer,
        }
    }
}

/// An error in FleetLock's dialect.
#[derive(Debug)]
pub(crate) struct LockError {
    kind: Kind,
    value: String,
    /// The cause, for the log only.
    cause: Option<String>,
    /// Why the caller is not authenticated; `None` for other errors.
    denied: Option<Denied>,
}

impl LockError {
    pub(crate) fn new(kind: Kind, value: impl Into<String>) -> Self {
        Self { kind, value: value.into(), cause: None, denied: None }
    }

    /// The label in the metrics, if the client was not admitted.
    pub(crate) const fn denial(&self) -> Option<&'static str> {
        match (self.denied, self.kind) {
            (Some(denied), _) => Some(denied.as_str()),
            (None, Kind::Forbidden) => Some("forbidden"),
            (None, _) => None,
        }
    }

    /// The kind of error.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Adds the group, the client's id and its address to the log line: one of hundreds of clients may have the wrong
    /// group. Refusals of a full group are not logged.
    pub(crate) fn with_context(self, group: &GroupName, id: &ClientId, peer: Option<IpAddr>) -> Self {
        if self.kind == Kind::FailedLockSemaphoreFull {
            return self;
        }
        let what = self.cause.as_deref().unwrap_or(&self.value);
        let from = peer.map(|peer| format!(" from {peer}")).unwrap_or_default();
        Self { cause: Some(format!("{what} (id {id}, group {group}{from})")), ..self }
    }

    /// Adds what the client should know, if there is something.
    pub(crate) fn with_note(self, note: Option<String>) -> Self {
        match note {
            Some(note) => Self { value: format!("{}; {note}", self.value), ..self },
            None => self,
        }
    }

    /// A fault of this program. The cause goes to the log only.
    pub(crate) fn internal(cause: String) -> Self {
        Self { cause: Some(cause), ..Self::new(Kind::Internal, "internal error; the log has its cause") }
    }
}

impl IntoResponse for LockError {
    fn into_response(self) -> Response {
        let body = json!({ "kind": self.kind.as_str(), "value": self.value }).to_string();
        let mut response = (self.kind.status(), body).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.kind == Kind::Unauthorized {
            let challenge = HeaderValue::from_static("Basic realm=\"os-upgrade\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        if self.kind == Kind::MethodNotAllowed {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response.extensions_mut().insert(Cause(self.cause.unwrap_or(self.value)));
        if self.kind == Kind::FailedLockSemaphoreFull {
            response.extensions_mut().insert(Routine);
        }
        response
    }
}

impl From<Denied> for LockError {
    fn from(denied: Denied) -> Self {
        let (kind, value) = match denied {
            Denied::Missing => {
                (Kind::Unauthorized, "HTTP Basic credentials or a client certificate are needed")
            }
            Denied::Invalid => (Kind::Unauthorized, "the credentials are not valid"),
            Denied::Expired => (Kind::Unauthorized, "the credentials have expired"),
            Denied::Unavailable => (Kind::BackendUnavailable, "the credentials cannot be checked now"),
        };
        Self { denied: Some(denied), ..Self::new(kind, value) }
    }
}

impl From<ClaimError> for LockError {
    fn from(error: ClaimError) -> Self {
        let kind = match &error {
            ClaimError::TooLarge => Kind::BodyTooLarge,
            ClaimError::Body(_) => Kind::InvalidBody,
            ClaimError::Id(_) => Kind::InvalidId,
            ClaimError::Group(_) => Kind::InvalidGroup,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<NotDone> for LockError {
    fn from(not_done: NotDone) -> Self {
        let kind = match &not_done {
            NotDone::Unchanged { .. } => Kind::BackendUnavailable,
            NotDone::Unknown { .. } => Kind::OutcomeUnknown,
        };
        Self::new(kind, not_done.to_string())
    }
}

impl From<slot::Denied> for LockError {
    fn from(denied: slot::Denied) -> Self {
        Self::new(denied.kind().into(), describe(&denied).to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::description;

    const DOCUMENT: &str = include_str!("../../../../docs/fleetlock.md");

    #[test]
    fn kinds_match_the_documentation() {
        let documented: Vec<&str> = DOCUMENT
            .lines()
            .skip_while(|line| !line.starts_with("| `kind` "))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let row = |(kind, meaning): &(Kind, &str)| {
            format!("| `{}` | {} | {} |", kind.as_str(), kind.status().as_u16(), meaning.trim())
        };
        assert_eq!(documented, ALL.iter().map(row).collect::<Vec<_>>());
    }

    /// Except those of an unknown method or path, which the description does not contain.
    #[test]
    fn every_status_is_described() {
        let described: Value = serde_json::from_str(description()).unwrap();
        let undescribed = [Kind::MethodNotAllowed, Kind::NotFound];
        for (kind, _) in ALL.iter().filter(|(kind, _)| !undescribed.contains(kind)) {
            for path in ["/v1/pre-reboot", "/v1/steady-state"] {
                let answers = &described["paths"][path]["post"]["responses"];
                let schema = &answers[kind.status().as_str()]["content"]["application/json"]["schema"];
                assert_eq!(schema["$ref"], "#/components/schemas/LockError", "{path} {kind:?}");
            }
        }
    }

    #[test]
    fn denial_words_match_the_kernel() {
        for kind in
            [DeniedKind::UnknownGroup, DeniedKind::FailedLockSemaphoreFull, DeniedKind::OtherLockServer]
        {
            assert_eq!(Kind::from(kind).as_str(), kind.as_str());
        }
    }
}
