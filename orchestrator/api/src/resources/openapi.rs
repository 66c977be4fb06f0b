//! `/openapi.json`: the `OpenAPI` document, built from the declarations of all routes.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::documentation::OPENAPI;

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
    Params(NoParameters {}): Params<NoParameters>,
    form: Form,
) -> Result<Response, Problem> {
    let description = api.description;
    let text = match form.syntax {
        // The layer around this handler adds `Vary` to JSON only.
        Syntax::Json => {
            return Ok(([(CONTENT_TYPE, form.media_type)], description.json()).into_response());
        }
        Syntax::Yaml => tokio::task::spawn_blocking(|| description.yaml()).await,
    };
    let text = text.map_err(|error| Problem::internal(error.to_string()))?.map_err(Problem::internal)?;
    Ok(form::vary(([(CONTENT_TYPE, form.media_type)], text).into_response()))
}
