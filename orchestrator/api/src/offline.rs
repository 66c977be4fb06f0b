//! What requests say, read without a server: the same functions that serve them, for fuzzing.
//!
//! Errors are what the client would be told.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Uri};
use chrono::{DateTime, Utc};
use os_upgrade_kernel::duration::Duration;
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
/// It cannot be meant.
pub fn config(body: &[u8]) -> Result<Config, String> {
    config::read_body(body, Syntax::Json).map_err(Problem::into_message)
}

/// The same in YAML.
///
/// # Errors
/// It cannot be meant.
pub fn config_in_yaml(body: &[u8]) -> Result<Config, String> {
    config::read_body(body, Syntax::Yaml).map_err(Problem::into_message)
}

/// What answers in YAML are made of: the same document, its keys in the same order.
///
/// # Errors
/// It is no JSON.
pub fn to_yaml(json: &[u8]) -> Result<String, String> {
    crate::http::form::to_yaml(json)
}

/// The body of a trigger: how long the run may take, if it says so.
///
/// # Errors
/// It cannot be meant.
pub fn trigger(body: &[u8]) -> Result<Option<Duration>, String> {
    run::read_trigger(body, Syntax::Json).map_err(Problem::into_message)
}

/// The query of the list of runs: how many, and after which.
///
/// # Errors
/// It cannot be meant.
pub fn runs_query(uri: &Uri) -> Result<(Option<u32>, Option<RunId>), String> {
    runs::read_list_query(uri).map_err(Problem::into_message)
}

/// The query of a run: how many facts, and after which.
///
/// # Errors
/// It cannot be meant.
pub fn run_query(uri: &Uri) -> Result<(Option<u32>, Option<FactCursor>), String> {
    runs::read_run_query(uri).map_err(Problem::into_message)
}

/// What a patch of this `Content-Type` makes of a configuration; the result is not looked at.
///
/// # Errors
/// It cannot be meant, or not be applied.
pub fn patched(content_type: HeaderValue, patch: &[u8], configuration: Value) -> Result<Value, String> {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
    let patch = Patch::read(&headers, patch).map_err(Problem::into_message)?;
    patch.apply(configuration).map_err(Problem::into_message)
}

/// What another site asks at `now`, as it is handed to the routes: who asks stands in its extensions.
///
/// # Errors
/// It cannot be meant, or comes too late.
pub fn site_request(message: &Bytes, now: DateTime<Utc>) -> Result<Request, String> {
    sites::received(message, now).map_err(Problem::into_message)
}

/// What another site answers: the status, what the body is, and the body.
///
/// # Errors
/// It cannot be read.
pub fn site_answer(message: &Bytes) -> Result<(u16, Option<HeaderValue>, Bytes), String> {
    let (status, mut headers, body) = sites::read_answer(message)?;
    Ok((status.as_u16(), headers.remove(CONTENT_TYPE), body))
}
