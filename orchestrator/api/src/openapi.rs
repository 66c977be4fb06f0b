//! `/openapi.json`: the API described for programs, from the declarations of the routes that are served.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::documentation::OPENAPI;
use os_upgrade_api_types::openapi;
use os_upgrade_api_types::query::Nothing;

use super::error::Problem;
use super::extract::Params;
use super::form::{self, Form, Syntax};
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default().route(&OPENAPI, read)
}

/// The document of the API, in JSON.
pub(super) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let document = openapi::document(super::routes().declarations());
        serde_json::to_string_pretty(&document).expect("a document has string keys and no fallible part")
    });
    &DOCUMENT
}

/// The same in YAML, or why not.
fn document_in_yaml() -> Result<&'static str, Problem> {
    static DOCUMENT: LazyLock<Result<String, String>> =
        LazyLock::new(|| form::to_yaml(document().as_bytes()));
    DOCUMENT.as_deref().map_err(|why| Problem::internal(why.clone()))
}

/// Anybody may ask for it, so it is kept in both syntaxes.
async fn read(Params(Nothing {}): Params<Nothing>, form: Form) -> Result<Response, Problem> {
    let text = match form.syntax {
        // What is JSON is known to differ.
        Syntax::Json => return Ok(([(CONTENT_TYPE, form.media_type)], document()).into_response()),
        Syntax::Yaml => tokio::task::spawn_blocking(document_in_yaml).await,
    };
    let text = text.map_err(|error| Problem::internal(error.to_string()))??;
    Ok(form::vary(([(CONTENT_TYPE, form.media_type)], text).into_response()))
}
