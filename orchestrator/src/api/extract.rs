//! What comes in with a request: query parameters, JSON bodies, path segments, and who asks.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_path_to_error::Segment;
use utoipa::{IntoParams, ToSchema};

use super::error::Problem;
use crate::auth::Caller;

/// How long a client may take to send a body.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The query parameters of an endpoint.
pub(super) trait Parameters: DeserializeOwned {
    /// Every name there is.
    const NAMES: &'static [&'static str];
}

/// Query parameters; an unknown one is refused.
pub(super) struct Params<T>(pub(super) T);

/// No query parameters.
#[derive(Debug, Deserialize)]
pub(super) struct Nothing {}

impl Parameters for Nothing {
    const NAMES: &'static [&'static str] = &[];
}

/// `validate=true`: check, and do nothing.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Validate {
    /// Validate the request but do not actually perform the requested operation.
    #[param(inline)]
    validate: Option<True>,
}

/// The only value that the specification has for `validate`.
#[derive(Debug, Deserialize, ToSchema)]
enum True {
    #[serde(rename = "true")]
    True,
}

impl Parameters for Validate {
    const NAMES: &'static [&'static str] = &["validate"];
}

impl Validate {
    /// Whether the request is only to be checked.
    pub(super) fn only(&self) -> bool {
        matches!(self.validate, Some(True::True))
    }
}

impl<T: Parameters, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parameters(&parts.uri).map(Self)
    }
}

/// Reads the query of `uri`.
pub(super) fn parameters<T: Parameters>(uri: &Uri) -> Result<T, Problem> {
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

/// A body in JSON. Its type is `application/json`, `*/*`, anything `+json`, or not given.
pub(super) struct Body<T>(pub(super) T);

/// The same, which may be absent.
pub(super) struct OptionalBody<T>(pub(super) Option<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let OptionalBody(body) = OptionalBody::from_request(request, state).await?;
        body.map(Self).ok_or_else(|| Problem::bad_request("the body is empty; a JSON object is expected"))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        let bytes = match tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await {
            Ok(bytes) => bytes.map_err(|rejection| unread_body(&rejection))?,
            Err(_) => {
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"));
            }
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(None));
        }
        if !is_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "only JSON is understood: send Content-Type application/json",
            ));
        }
        parse(&bytes).map(|body| Self(Some(body)))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    matches!(essence.as_str(), "application/json" | "*/*") || essence.ends_with("+json")
}

fn unread_body(rejection: &BytesRejection) -> Problem {
    let message = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        format!("the body exceeds {} bytes", super::BODY_BYTES_MAX)
    } else {
        rejection.body_text()
    };
    Problem::new(rejection.status(), message)
}

/// Reads JSON; what is wrong is said with its place, such as `worker-applications/0/name`.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A list would be taken for an object whose fields stand in order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::bad_request("the body must be a JSON object, not a list".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = place(error.path());
        let message =
            if place.is_empty() { error.inner().to_string() } else { format!("{place}: {}", error.inner()) };
        Problem::bad_request(message).with_info(json!({ "place": place }))
    })?;
    reader.end().map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(value)
}

fn place(path: &serde_path_to_error::Path) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } | Segment::Enum { variant: key } => Some(key.clone()),
        Segment::Unknown => None,
    };
    path.iter().filter_map(segment).collect::<Vec<_>>().join("/")
}

/// The last segment of the path.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|rejection| Problem::bad_request(rejection.body_text()))
    }
}

/// The path's `COUNT` named segments.
pub(super) struct Names<const COUNT: usize>(pub(super) [String; COUNT]);

impl<const COUNT: usize, S: Send + Sync> FromRequestParts<S> for Names<COUNT> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = Path::<Vec<String>>::from_request_parts(parts, state).await;
        let Path(names) = names.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
        let names = names.try_into().map_err(|_| Problem::internal("a route without its names"))?;
        Ok(Self(names))
    }
}

/// Who asks, as the audit has it.
pub(super) struct Actor(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal("a write by nobody knows whom"))?;
        Ok(Self(caller.actor.clone()))
    }
}
