//! Which router answers a request: each dialect has one, with layers of its own. Nothing else derives the dialect from the path.

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::routes::fleet_lock::nested_path;
use os_upgrade_api_types::routes::{fleet_lock, hooks};
use tower::ServiceExt as _;

/// The router of each dialect.
#[derive(Debug)]
pub(crate) struct Dialects {
    pub(crate) specification: Router,
    pub(crate) fleet_lock: Router,
    pub(crate) call_backs: Router,
    pub(crate) fleet_v1_alpha: Router,
    pub(crate) fleet_v1: Router,
}

/// The router that passes requests to that of the dialect whose prefix the path has, or else to that of the specification.
pub(crate) fn nested(dialects: Dialects) -> Router {
    let Dialects { specification, fleet_lock, call_backs, fleet_v1_alpha, fleet_v1 } = dialects;
    let routers = Router::new()
        .nest_service(fleet_lock::PREFIX, fleet_lock)
        .nest_service(hooks::PREFIX, call_backs)
        .nest_service(Version::V1Alpha.prefix(), fleet_v1_alpha)
        .nest_service(Version::V1.prefix(), fleet_v1)
        .fallback_service(specification);
    // The path is rewritten before routing.
    Router::new().fallback_service(routers.map_request(below_prefix))
}

/// Rewrites the path of a request of FleetLock. Its query is ignored.
fn below_prefix(mut request: Request) -> Request {
    if let Some(uri) = nested_path(request.uri().path()).and_then(|path| Uri::try_from(path).ok()) {
        *request.uri_mut() = uri;
    }
    request
}
