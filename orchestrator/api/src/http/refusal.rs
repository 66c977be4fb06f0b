//! Refusals before any endpoint is reached, in the dialect of the requested path.

use std::time::Duration;

use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_shell::not_done::NotDone;

use crate::http::error::{Problem, Routine};
use crate::http::lock_error::{self, Kind};

/// Why a request is refused early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Plain HTTP on a port that speaks TLS.
    HttpsOnly,
    /// Too many requests are under way, of this client or in total.
    Busy,
    /// The client exceeds its request rate.
    TooMany {
        /// Time until it may send another request.
        wait: Duration,
    },
}

impl Refusal {
    /// The label in the metrics.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::HttpsOnly => "https-only",
            Self::Busy => "busy",
            Self::TooMany { .. } => "rate",
        }
    }

    /// The answer to a request by `method` for `path`.
    pub(crate) fn answer(self, method: &Method, path: &str) -> Response {
        let (status, kind, message) = match self {
            Self::HttpsOnly => (
                StatusCode::BAD_REQUEST,
                Kind::HttpsOnly,
                "this port accepts HTTPS only: begin the URL with https://",
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                Kind::Busy,
                "too many requests are under way: try again later",
            ),
            Self::TooMany { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                Kind::TooManyRequests,
                "too many requests come from this address: try again later, and less often",
            ),
        };
        let response = lock_error::refuse(path, kind, message);
        let mut response = response.unwrap_or_else(|| {
            let problem = match self {
                Self::Busy => Problem::not_done(method, NotDone::unchanged(message)),
                Self::HttpsOnly | Self::TooMany { .. } => Problem::new(status, message),
            };
            problem.into_response()
        });
        match self {
            Self::HttpsOnly => {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                // It does not pass the router, which sets it for every other answer.
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            }
            Self::Busy => retry_after(&mut response, 1),
            Self::TooMany { wait } => retry_after(&mut response, wait.as_secs() + 1),
        }
        response
    }
}

/// Sets `Retry-After`. There may be thousands of these answers a second, so they are not logged individually.
fn retry_after(response: &mut Response, seconds: u64) {
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    response.extensions_mut().insert(Routine);
}
