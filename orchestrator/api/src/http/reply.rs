//! Responses: JSON serialized from borrowed state.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_kernel::Accepted;
use serde::Serialize;

use crate::http::error::Problem;

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
