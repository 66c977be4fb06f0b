//! `/openapi.json`: the API described for programs, from the declarations of the routes that are served.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::documentation::OPENAPI;
use os_upgrade_api_types::query::Nothing;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::http::form::{self, Form, Syntax};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&OPENAPI, read)
}

async fn read(
    State(api): State<Api>,
    Params(Nothing {}): Params<Nothing>,
    form: Form,
) -> Result<Response, Problem> {
    let description = api.description;
    let text = match form.syntax {
        // What is JSON is known to differ.
        Syntax::Json => {
            return Ok(([(CONTENT_TYPE, form.media_type)], description.json()).into_response());
        }
        Syntax::Yaml => tokio::task::spawn_blocking(|| description.yaml()).await,
    };
    let text = text.map_err(|error| Problem::internal(error.to_string()))?.map_err(Problem::internal)?;
    Ok(form::vary(([(CONTENT_TYPE, form.media_type)], text).into_response()))
}
