//! What requests say, read without a server: the same functions that serve them, for fuzzing.
//!
//! Errors are what the client would be told.

use axum::http::Uri;
use os_upgrade_kernel::Config;
use os_upgrade_kernel::duration::Duration;
use os_upgrade_protocol::RunId;

use super::form::Syntax;
use super::{config, run, runs};
use crate::store::FactCursor;

/// The body of `PUT /v1/config/os-upgrade` in JSON.
///
/// # Errors
/// It cannot be meant.
pub fn config(body: &[u8]) -> Result<Config, String> {
    config::read_body(body, Syntax::Json).map_err(super::error::Problem::into_message)
}

/// The same in YAML.
///
/// # Errors
/// It cannot be meant.
pub fn config_in_yaml(body: &[u8]) -> Result<Config, String> {
    config::read_body(body, Syntax::Yaml).map_err(super::error::Problem::into_message)
}

/// What answers in YAML are made of: the same document, its keys in the same order.
///
/// # Errors
/// It is no JSON.
pub fn to_yaml(json: &[u8]) -> Result<String, String> {
    super::form::to_yaml(json)
}

/// The body of a trigger: how long the run may take, if it says so.
///
/// # Errors
/// It cannot be meant.
pub fn trigger(body: &[u8]) -> Result<Option<Duration>, String> {
    run::read_trigger(body, Syntax::Json).map_err(super::error::Problem::into_message)
}

/// The query of the list of runs: how many, and after which.
///
/// # Errors
/// It cannot be meant.
pub fn runs_query(uri: &Uri) -> Result<(Option<u32>, Option<RunId>), String> {
    runs::read_list_query(uri).map_err(super::error::Problem::into_message)
}

/// The query of a run: how many facts, and after which.
///
/// # Errors
/// It cannot be meant.
pub fn run_query(uri: &Uri) -> Result<(Option<u32>, Option<FactCursor>), String> {
    runs::read_run_query(uri).map_err(super::error::Problem::into_message)
}
