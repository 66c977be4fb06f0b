//! What is refused before any endpoint is reached, in the dialect of what is asked for.

use std::time::Duration;

use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_shell::not_done::NotDone;

use crate::http::error::{Problem, Routine};
use crate::http::lock_error::{self, Kind};

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Plain HTTP on a port that speaks TLS.
    HttpsOnly,
    /// As many requests as may be are under way, of this client's or of all.
    Busy,
    /// The client has sent as many as it may.
    TooMany {
        /// How long until it may send another.
        wait: Duration,
    },
}

impl Refusal {
    /// The word in the metrics.
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
                "this port speaks HTTPS only: begin the URL with https://",
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                Kind::Busy,
                "as many requests as may be are under way: ask again later",
            ),
            Self::TooMany { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                Kind::TooManyRequests,
                "too many requests come from this address: ask again later, and less often",
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
            }
            Self::Busy => retry_after(&mut response, 1),
            Self::TooMany { wait } => retry_after(&mut response, wait.as_secs() + 1),
        }
        response
    }
}

/// `seconds` are whole, as HTTP has them. There may be thousands of these answers a second: the log has one line for all.
fn retry_after(response: &mut Response, seconds: u64) {
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    response.extensions_mut().insert(Routine);
}
