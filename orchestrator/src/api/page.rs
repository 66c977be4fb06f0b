//! `/docs/`: a page to read the description of the API and to try it, Swagger UI. Its files are in the program, because
//! a site may have no way to the internet.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Redirect, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::Config;

use super::Api;
use super::error::Problem;
use super::extract::{Nothing, Params};
use super::openapi::tag;

/// Nothing but what is served here may be loaded or asked; the page may not be shown within another.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(enter)).routes(routes!(read)).routes(routes!(read_file))
}

/// To the page.
#[utoipa::path(
    get, path = "/docs", operation_id = "find-page", tag = tag::ORCHESTRATOR,
    summary = "Find the page that shows this API",
    responses((status = 308, description = "it is at `/docs/`", headers(("location" = String))))
)]
async fn enter(Params(Nothing {}): Params<Nothing>) -> Redirect {
    Redirect::permanent("docs/")
}

/// 200 with the page.
#[utoipa::path(
    get, path = "/docs/", operation_id = "read-page", tag = tag::ORCHESTRATOR,
    summary = "Show this API on a page",
    responses((status = 200, description = "the page", body = String, content_type = "text/html"))
)]
async fn read(Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    file("index.html")
}

/// 200 with a file that the page needs, or 404.
#[utoipa::path(
    get, path = "/docs/{file}", operation_id = "read-page-file", tag = tag::ORCHESTRATOR,
    summary = "Read a file of that page",
    params(("file" = String, Path, description = "the name of a file", example = "swagger-ui.css")),
    responses(
        (
            status = 200, description = "the file",
            content(
                (String = "text/css"), (String = "text/html"), (String = "text/javascript"), (String = "image/png")
            )
        ),
        (status = 404, description = "there is no such file"),
    )
)]
async fn read_file(
    Path(name): Path<String>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, Problem> {
    file(&name)
}

fn file(name: &str) -> Result<Response, Problem> {
    static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
        // A validator elsewhere would be shown the whole document.
        let config = Config::from("../openapi.json").validator_url("none").try_it_out_enabled(true);
        Arc::new(config.use_base_layout().display_operation_id(true))
    });
    let found = utoipa_swagger_ui::serve(name, Arc::clone(&CONFIG));
    let found = found.map_err(|error| Problem::internal(error.to_string()))?;
    let found = found.ok_or_else(|| Problem::not_found(format!("the page has no file {name:?}")))?;
    let kind = HeaderValue::from_str(&found.content_type);
    let kind = kind.map_err(|error| Problem::internal(error.to_string()))?;
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
    ]);
    if found.gzpipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok((headers, found.bytes.into_owned()).into_response())
}
