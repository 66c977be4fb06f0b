//! What the layers around a router answer in the place of its endpoints, in the router's dialect.

use std::time::Duration;

use axum::http::Method;
use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::route::Dialect;
use os_upgrade_shell::not_done::NotDone;

use crate::http::error::{Problem, Routine};
use crate::http::lock_error::{Kind, LockError};

/// Why a layer answers in the place of an endpoint.
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
    /// Without tokens: a page of another web site.
    ForeignPage,
    /// There was no answer in time, so the outcome is unknown.
    NoAnswer {
        /// How long it was waited for.
        within: Duration,
    },
}

impl Refusal {
    /// The label in the metrics, which count all but the time limit.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::HttpsOnly => "https-only",
            Self::Busy => "busy",
            Self::TooMany { .. } => "rate",
            Self::ForeignPage => "elsewhere",
            Self::NoAnswer { .. } => "no-answer",
        }
    }

    fn kind_and_message(self) -> (Kind, String) {
        let (kind, message) = match self {
            Self::HttpsOnly => (Kind::HttpsOnly, "this port accepts HTTPS only: begin the URL with https://"),
            Self::Busy => (Kind::Busy, "too many requests are under way: try again later"),
            Self::TooMany { .. } => (
                Kind::TooManyRequests,
                "too many requests come from this address: try again later, and less often",
            ),
            Self::ForeignPage => (
                Kind::Forbidden,
                "the request comes from a page of another site, or was sent to another name than localhost; without tokens \
                 only programs on this machine may call: set [api] tokens",
            ),
            Self::NoAnswer { within } => {
                return (Kind::OutcomeUnknown, format!("no answer within {} s", within.as_secs()));
            }
        };
        (kind, message.to_owned())
    }

    /// The error of a request by `method`, except in FleetLock's dialect.
    fn problem(self, method: &Method) -> Problem {
        let (kind, message) = self.kind_and_message();
        match self {
            Self::Busy => Problem::not_done(method, NotDone::unchanged(message)),
            Self::NoAnswer { .. } => Problem::not_done(method, NotDone::unknown(message)),
            Self::HttpsOnly | Self::TooMany { .. } | Self::ForeignPage => {
                Problem::new(kind.status(), message)
            }
        }
    }

    /// The answer to a request by `method`.
    pub(crate) fn answer(self, method: &Method, dialect: Dialect) -> Response {
        let mut response = match dialect {
            Dialect::FleetLock => {
                let (kind, message) = self.kind_and_message();
                LockError::new(kind, message).into_response()
            }
            Dialect::Specification | Dialect::CallBack => self.problem(method).into_response(),
            Dialect::Fleet => self.problem(method).into_fleet_response(),
        };
        match self {
            Self::HttpsOnly => {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                // It does not pass the router, which sets it for every other answer.
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            }
            Self::Busy => retry_after(&mut response, 1),
            Self::TooMany { wait } => retry_after(&mut response, wait.as_secs() + 1),
            Self::ForeignPage | Self::NoAnswer { .. } => {}
        }
        response
    }
}

/// Sets `Retry-After`. There may be thousands of these answers a second, so they are not logged individually.
pub(crate) fn retry_after(response: &mut Response, seconds: u64) {
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    response.extensions_mut().insert(Routine);
}
