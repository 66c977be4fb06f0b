//! `/docs/`: Swagger UI, to read the description of the API and to try it. Its files are embedded in the program,
//! because a site may have no internet access.

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, VARY,
};
use axum::response::{IntoResponse as _, Redirect, Response};
use flate2::read::GzDecoder;
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::documentation::{PAGE, PAGE_FILE, PAGE_REDIRECT};
use utoipa_swagger_ui::Config;

use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::http::form::accepts_gzip;
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

async fn read(Params(NoParameters {}): Params<NoParameters>, wanted: HeaderMap) -> Result<Response, Problem> {
    file("index.html", &wanted).await
}

async fn read_file(
    Path(name): Path<String>,
    Params(NoParameters {}): Params<NoParameters>,
    wanted: HeaderMap,
) -> Result<Response, Problem> {
    file(&name, &wanted).await
}

/// The file `name`, in the coding that is `wanted`: most are embedded compressed.
async fn file(name: &str, wanted: &HeaderMap) -> Result<Response, Problem> {
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
    let mut bytes = found.bytes;
    if found.gzpipped {
        headers.insert(VARY, HeaderValue::from(ACCEPT_ENCODING));
        if accepts_gzip(wanted) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        } else {
            let plain = tokio::task::spawn_blocking(move || decompressed(&bytes)).await;
            bytes = plain.map_err(|error| Problem::internal(error.to_string()))??;
        }
    }
    Ok((headers, bytes.into_owned()).into_response())
}

/// An embedded file, whose size is known.
fn decompressed(bytes: &[u8]) -> Result<Cow<'static, [u8]>, Problem> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(bytes).read_to_end(&mut plain);
    read.map_err(|error| Problem::internal(error.to_string()))?;
    Ok(Cow::Owned(plain))
}
