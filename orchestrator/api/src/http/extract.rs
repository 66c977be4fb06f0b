//! Extractors: query parameters, bodies, path segments, and the caller.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use os_upgrade_api_types::Role;
use os_upgrade_api_types::query::Parameters;
use os_upgrade_api_types::route::Dialect;
use os_upgrade_auth::Caller;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::http::document::parse;
use crate::http::error::Problem;
use crate::http::form::Syntax;

/// How long a client may take to send a body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Query parameters; unknown ones are refused.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: Parameters, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parameters(&parts.uri).map(Self)
    }
}

/// Reads the query of `uri`.
pub(crate) fn parameters<T: Parameters>(uri: &Uri) -> Result<T, Problem> {
    let bad = |error: axum::extract::rejection::QueryRejection| Problem::bad_request(error.body_text());
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(bad)?;
    if let Some((name, _)) = pairs.iter().find(|(name, _)| !T::NAMES.contains(&name.as_str())) {
        return Err(unknown_parameter(name, T::NAMES));
    }
    Query::<T>::try_from_uri(uri).map(|Query(params)| params).map_err(bad)
}

fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    let here = if known.is_empty() {
        "none is known here".to_owned()
    } else {
        format!("known here: {}", known.join(", "))
    };
    Problem::bad_request(format!("unknown query parameter {name:?}; {here}"))
        .with_info(json!({ "parameter": name, "known": known }))
}

/// A body in JSON or YAML, by its `Content-Type`; one that has none is JSON.
pub(crate) struct Body<T>(pub(crate) T);

/// As [`Body`], but may be absent.
pub(crate) struct OptionalBody<T>(pub(crate) Option<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let OptionalBody(body) = OptionalBody::from_request(request, state).await?;
        body.map(Self).ok_or_else(empty_body)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let content = Content::of(request.headers());
        let bytes = bytes(request, state).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(None));
        }
        match content {
            Some(Content::Document(syntax)) => parse(&bytes, syntax).map(|body| Self(Some(body))),
            Some(Content::MergePatch | Content::JsonPatch) | None => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "only JSON and YAML are supported: send Content-Type application/json or application/yaml",
            )),
        }
    }
}

/// The error of a request that lacks a required body.
pub(crate) fn empty_body() -> Problem {
    Problem::bad_request("the body is empty; a JSON or YAML object is expected")
}

/// The whole body of a request of the specification; an error if it is too large or does not arrive in time.
pub(crate) async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    bytes_in(Dialect::Specification, request, state).await
}

/// The whole body of a request in `dialect`, whose limit its router has set.
pub(crate) async fn bytes_in<S: Send + Sync>(
    dialect: Dialect,
    request: Request,
    state: &S,
) -> Result<Bytes, Problem> {
    match tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await {
        Ok(bytes) => bytes.map_err(|rejection| unread_body(dialect, &rejection)),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

/// The content type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A JSON or YAML document.
    Document(Syntax),
    /// A merge patch (RFC 7396).
    MergePatch,
    /// A JSON Patch (RFC 6902).
    JsonPatch,
}

impl Content {
    /// Reads the `Content-Type`: JSON when absent, `None` for an unknown type.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Some(Self::Document(Syntax::Json));
        };
        let essence = value.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/merge-patch+json" => Some(Self::MergePatch),
            "application/json-patch+json" => Some(Self::JsonPatch),
            // Another kind of patch must not be mistaken for a document.
            other if other.contains("patch") => None,
            "application/json" | "*/*" => Some(Self::Document(Syntax::Json)),
            "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => {
                Some(Self::Document(Syntax::Yaml))
            }
            other if other.ends_with("+json") => Some(Self::Document(Syntax::Json)),
            other if other.ends_with("+yaml") => Some(Self::Document(Syntax::Yaml)),
            _ => None,
        }
    }
}

fn unread_body(dialect: Dialect, rejection: &BytesRejection) -> Problem {
    let message = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        format!("the body exceeds {} bytes", dialect.body_bytes_max())
    } else {
        rejection.body_text()
    };
    Problem::new(rejection.status(), message)
}

/// Longest reason that an operator may give, in bytes.
const REASON_BYTES_MAX: usize = 1_000;

/// An operator's reason, for the history: one line, not empty.
pub(crate) fn checked_reason(text: &str) -> Result<String, Problem> {
    let reason = text.trim();
    if reason.is_empty() {
        return Err(Problem::bad_request("reason: give a reason, for the history"));
    }
    if reason.len() > REASON_BYTES_MAX || reason.chars().any(char::is_control) {
        let wanted = format!("reason: one line of at most {REASON_BYTES_MAX} bytes is expected");
        return Err(Problem::bad_request(wanted));
    }
    Ok(reason.to_owned())
}

/// The last segment of the path.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|rejection| Problem::bad_request(rejection.body_text()))
    }
}

/// The path's `COUNT` named segments.
pub(crate) struct Names<const COUNT: usize>(pub(crate) [String; COUNT]);

impl<const COUNT: usize, S: Send + Sync> FromRequestParts<S> for Names<COUNT> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = Path::<Vec<String>>::from_request_parts(parts, state).await;
        let Path(names) = names.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
        let names = names.try_into().map_err(|_| Problem::internal("a route without its names"))?;
        Ok(Self(names))
    }
}

/// Whether the caller may see what operators' commands printed, which may hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeesOutput(pub(crate) bool);

impl<S: Send + Sync> FromRequestParts<S> for SeesOutput {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>();
        Ok(Self(caller.is_some_and(|caller| caller.may(Role::Operator))))
    }
}

/// The caller's name, as recorded in the audit.
pub(crate) struct Actor(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal("a write without a caller"))?;
        Ok(Self(caller.actor.clone()))
    }
}
