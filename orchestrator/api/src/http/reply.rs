//! Responses: JSON serialized from borrowed state, and bodies that several endpoints share.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::body::{HostOfRun, LateAnswer, ReasonFields, Stamp};
use os_upgrade_kernel::{Accepted, HostStatus, RunHost};
use os_upgrade_protocol::HostName;
use serde::Serialize;

use crate::http::error::Problem;

/// A page of a list.
#[derive(Serialize)]
pub(crate) struct Page<T, N> {
    pub(crate) items: Vec<T>,
    /// Where the next page begins; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<N>,
}

/// `value` as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response, Problem> {
    serde_json::to_vec(value).map(json_bytes).map_err(|error| Problem::internal(error.to_string()))
}

pub(crate) fn json_bytes(bytes: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, "application/json")], bytes.into()).into_response()
}

/// The status of a write that was granted.
pub(crate) fn granted(accepted: &Accepted) -> StatusCode {
    match accepted {
        Accepted::Created => StatusCode::CREATED,
        Accepted::Done | Accepted::Valid => StatusCode::NO_CONTENT,
    }
}

/// The state of `host` in its run.
pub(crate) fn host_of_run<'a>(name: &'a HostName, host: &'a RunHost) -> HostOfRun<'a> {
    HostOfRun {
        hostname: name.as_str(),
        status: HostStatus::as_str(host.status),
        since: Stamp(host.since),
        reason: ReasonFields::of(host.reason.as_ref()),
        late_answer: LateAnswer::of(host),
    }
}
