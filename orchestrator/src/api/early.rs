//! What is refused before any endpoint is reached, in the dialect of what is asked for.

use axum::http::StatusCode;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::{IntoResponse as _, Response};

use super::error::Problem;
use super::fleet_lock;

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Plain HTTP on a port that speaks TLS.
    HttpsOnly,
}

impl Refusal {
    /// The answer to a request for `path`.
    pub(super) fn answer(self, path: &str) -> Response {
        match self {
            Self::HttpsOnly => {
                let message = "this port speaks HTTPS only: begin the URL with https://";
                let mut response = fleet_lock::refuse(path, fleet_lock::Kind::HttpsOnly, message)
                    .unwrap_or_else(|| Problem::new(StatusCode::BAD_REQUEST, message).into_response());
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
        }
    }
}
