//! Parses requests without a server, with the functions that serve them. For fuzzing.
//!
//! Errors are the messages that the client would get.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Uri};
use chrono::{DateTime, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{Config, FactCursor};
use os_upgrade_protocol::RunId;
use serde_json::Value;

use crate::http::error::Problem;
use crate::http::form::Syntax;
use crate::resources::config;
use crate::resources::config::patch::Patch;
use crate::resources::run;
use crate::resources::runs;
use crate::sites;

/// The body of `PUT /v1/config/os-upgrade` in JSON.
///
/// # Errors
/// It is invalid.
pub fn config(body: &[u8]) -> Result<Config, String> {
    config::read_body(body, Syntax::Json).map_err(Problem::into_message)
}

/// The body of `PUT /v1/config/os-upgrade` in YAML.
///
/// # Errors
/// It is invalid.
pub fn config_in_yaml(body: &[u8]) -> Result<Config, String> {
    config::read_body(body, Syntax::Yaml).map_err(Problem::into_message)
}

/// Converts an answer to YAML, keeping the order of keys.
///
/// # Errors
/// It is not JSON.
pub fn to_yaml(json: &[u8]) -> Result<String, String> {
    crate::http::form::to_yaml(json)
}

/// The body of a trigger: how long the run may take, if given.
///
/// # Errors
/// It is invalid.
pub fn trigger(body: &[u8]) -> Result<Option<Duration>, String> {
    run::read_trigger(body, Syntax::Json).map_err(Problem::into_message)
}

/// The query of the list of runs: the limit, and the run to begin after.
///
/// # Errors
/// It is invalid.
pub fn runs_query(uri: &Uri) -> Result<(Option<u32>, Option<RunId>), String> {
    runs::read_list_query(uri).map_err(Problem::into_message)
}

/// The query of a run: the limit of facts, and the fact to begin after.
///
/// # Errors
/// It is invalid.
pub fn run_query(uri: &Uri) -> Result<(Option<u32>, Option<FactCursor>), String> {
    runs::read_run_query(uri).map_err(Problem::into_message)
}

/// Applies a patch of this `Content-Type` to a configuration. The result is not validated.
///
/// # Errors
/// The patch is invalid or cannot be applied.
pub fn patched(content_type: HeaderValue, patch: &[u8], configuration: Value) -> Result<Value, String> {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
    let patch = Patch::read(&headers, patch).map_err(Problem::into_message)?;
    patch.apply(configuration, &config::FIELDS).map_err(Problem::into_message)
}

/// The request that a message from another site contains, received at `now`. The caller is in its extensions.
///
/// # Errors
/// It is invalid or too old.
pub fn site_request(message: &Bytes, now: DateTime<Utc>) -> Result<Request, String> {
    sites::read_request(message, now).map_err(Problem::into_message)
}

/// The answer of another site: the status, the content type, and the body.
///
/// # Errors
/// It is malformed.
pub fn site_answer(message: &Bytes) -> Result<(u16, Option<HeaderValue>, Bytes), String> {
    let (status, mut headers, body) = sites::read_answer(message)?;
    Ok((status.as_u16(), headers.remove(CONTENT_TYPE), body))
}
