//! Errors, in the dialect of the specification, and those of fleet, which have the same sentences in an entity of their own.
//!
//! The policy:
//! - Every error has a body `{"errors":[{"error-message":"...","error-info":{...}}]}`, even where no endpoint was
//!   reached (404, 405, 413, 415, 408) and after a panic. `error-info` is present when a program could use it.
//! - 400: the request is invalid; the message names the place. 404: the resource does not exist. 409: the request is
//!   valid but impossible in the current state. 503: the outcome is unknown, or nothing can be done now; a retry may
//!   help. For a change, `outcome` in the info is `unchanged` or `unknown`. 500: a fault of this program or its
//!   history file; the message gives no details, the log does.
//! - The instance's refusals are matched by kind, never by text. Their sentence is the message, and the serialized refusal
//!   is the info.
//! - The cause is logged at the boundary, through [`Cause`].

use std::any::Any;

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use os_upgrade_api_types::fleet::error::FleetError;
use os_upgrade_api_types::headers;
use os_upgrade_console::{Describe, describe};
use os_upgrade_kernel::{
    ConfigRefusal, DesiredRefusal, EnrolmentRefusal, NodeRefusal, PauseRefusal, RebootRefusal, RefusalClass,
    RunRefusal, SecretRefusal, SlotRefusal, UnitRefusal,
};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_store::StoreError;
use serde::Serialize;
use serde_json::{Value, json};

/// An error response.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
    info: Option<Value>,
    /// The cause, for the log only.
    cause: Option<String>,
    /// Whether it is logged elsewhere.
    is_routine: bool,
}

/// The cause of a response, for the log line.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) String);

/// Marks an expected error, such as the answer to a poll. It is not logged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Routine;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ErrorEntry {
    error_message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_info: Option<Value>,
}

impl Problem {
    /// An error with `status` and `message`.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), info: None, cause: None, is_routine: false }
    }

    /// 400: the request is invalid.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404: the resource does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 503: nothing can be done now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// 503: there is no answer. The outcome is reported for changes only.
    pub(crate) fn not_done(method: &Method, not_done: NotDone) -> Self {
        if method.is_safe() { Self::unavailable(not_done.why()) } else { not_done.into() }
    }

    /// 500: a fault of this program. The cause goes to the log only.
    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error; the log has its cause");
        Self { cause: Some(cause.into()), ..problem }
    }

    /// 405: the endpoint does not have this method; the router adds `Allow`.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this method is not allowed here; Allow names those that are",
        )
    }

    /// A refusal by the instance.
    fn refused(class: RefusalClass, refusal: &(impl Describe + Serialize)) -> Self {
        let status = match class {
            RefusalClass::Invalid => StatusCode::BAD_REQUEST,
            RefusalClass::Missing => StatusCode::NOT_FOUND,
            RefusalClass::Conflict => StatusCode::CONFLICT,
            RefusalClass::Changed => StatusCode::PRECONDITION_FAILED,
            RefusalClass::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self { info: serde_json::to_value(refusal).ok(), ..Self::new(status, describe(refusal).to_string()) }
    }

    /// The HTTP status.
    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// The message for the client.
    pub(crate) fn into_message(self) -> String {
        self.message
    }

    /// The same with another message.
    pub(crate) fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// The same with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same, without a log line for each.
    pub(crate) fn logged_elsewhere(self) -> Self {
        Self { is_routine: true, ..self }
    }

    /// The same with `info` for programs.
    pub(crate) fn with_info(self, info: Value) -> Self {
        Self { info: Some(info), ..self }
    }

    /// The answer in the dialects of fleet. Their error entity has no place for the info: the outcome of a change is in a header.
    pub(crate) fn into_fleet_response(self) -> Response {
        let error = FleetError::Other { status: self.status.as_u16(), message: self.message.clone() };
        let outcome = self.info.as_ref().and_then(|info| info["outcome"].as_str());
        let outcome = outcome.and_then(|word| HeaderValue::from_str(word).ok());
        let mut response = self.response_with(&error.body());
        if let Some(outcome) = outcome {
            response.headers_mut().insert(headers::OUTCOME, outcome);
        }
        response
    }

    /// The answer with this body.
    fn response_with(self, body: &impl Serialize) -> Response {
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(Cause(self.cause.unwrap_or(self.message)));
        if self.is_routine {
            response.extensions_mut().insert(Routine);
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        let entry = ErrorEntry { error_message: self.message.clone(), error_info: self.info.take() };
        self.response_with(&json!({ "errors": [entry] }))
    }
}

impl From<FleetError> for Problem {
    fn from(error: FleetError) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, error.to_string())
    }
}

macro_rules! from_refusals {
    ($($refusal:ty),+) => {
        $(impl From<$refusal> for Problem {
            fn from(refusal: $refusal) -> Self {
                Self::refused(refusal.class(), &refusal)
            }
        })+
    };
}

from_refusals!(
    RunRefusal,
    DesiredRefusal,
    PauseRefusal,
    ConfigRefusal,
    EnrolmentRefusal,
    RebootRefusal,
    NodeRefusal,
    SecretRefusal,
    UnitRefusal
);

impl From<SlotRefusal> for Problem {
    fn from(refusal: SlotRefusal) -> Self {
        let problem = Self::refused(refusal.class(), &refusal);
        let SlotRefusal::LockDenied { denied } = refusal else { return problem };
        // The kind and value that a FleetLock client would get.
        problem.with_info(json!({
            "kind": "lock-denied",
            "lock-kind": denied.kind().as_str(),
            "value": describe(&denied).to_string(),
        }))
    }
}

impl From<NotDone> for Problem {
    fn from(not_done: NotDone) -> Self {
        Self::unavailable(not_done.to_string()).with_info(json!(not_done))
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownRun(id) => Self::bad_request(format!("after: there is no run {id:?}")),
            StoreError::Busy => Self::unavailable("the history is busy"),
            StoreError::CannotOpen(source) => Self::unavailable(format!(
                "the history cannot be opened: {source}; if its file was deleted, restart this instance, so that it is \
                 filled again from the journal"
            )),
            StoreError::DiskFull(_) => Self::unavailable("the history cannot be read: its disk is full"),
            StoreError::Sqlite(source) => Self::internal(format!("the history cannot be read: {source}")),
            StoreError::Damaged(source) => Self::internal(format!("the history is damaged: {source}")),
            StoreError::BadValue { .. } => Self::internal(error.to_string()),
        }
    }
}

/// The log text for a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    format!("panic: {text}")
}
