//! `/docs/`: Swagger UI, to read the description of the API and to try it. Its files are embedded in the program,
//! because a site may have no internet access.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse as _, Redirect, Response};
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::documentation::{PAGE, PAGE_FILE, PAGE_REDIRECT};
use utoipa_swagger_ui::Config;

use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::routes::Routes;

/// The page may load and call only this origin, and may not be framed.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(crate) fn routes() -> Routes {
    Routes::default().route(&PAGE_REDIRECT, enter).route(&PAGE, read).route(&PAGE_FILE, read_file)
}

async fn enter(Params(NoParameters {}): Params<NoParameters>) -> Redirect {
    Redirect::permanent("docs/")
}

async fn read(Params(NoParameters {}): Params<NoParameters>) -> Result<Response, Problem> {
    file("index.html")
}

async fn read_file(
    Path(name): Path<String>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    file(&name)
}

fn file(name: &str) -> Result<Response, Problem> {
    static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
        // An external validator would receive the whole document.
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
    ]);
    if found.gzpipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok((headers, found.bytes.into_owned()).into_response())
}
