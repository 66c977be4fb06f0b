//! Which router answers a request: each dialect has one, with layers of its own. Nothing else derives the dialect from the path.

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use os_upgrade_api_types::routes::fleet_lock::{PREFIX, nested_path};
use tower::ServiceExt as _;

/// The router that passes requests to `fleet_lock` or else to `specification`.
pub(crate) fn nested(specification: Router, fleet_lock: Router) -> Router {
    let routers = Router::new().nest_service(PREFIX, fleet_lock).fallback_service(specification);
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
