//! Units and machines in fleet's two dialects, below `/v1-alpha/` and `/fleet/v1/`. What requests ask for and the bodies are in
//! `os-upgrade-api-types`; the kernel decides what changes. Every refusal is fleet's error entity.
//!
//! The routers are built from the tables of routes, which have no place in the `OpenAPI` document: fleet has discovery documents.

mod change;
mod path;
mod read;

use std::any::Any;
use std::collections::BTreeSet;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{ALLOW, HeaderValue};
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::any;
use os_upgrade_api_types::fleet::discovery;
use os_upgrade_api_types::fleet::error::{FleetError, Methods};
use os_upgrade_api_types::fleet::routes::Operation;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::route::{self, Dialect};
use tower_http::catch_panic::CatchPanicLayer;

use crate::context::Api;
use crate::http::error::{Problem, panic_text};
use crate::http::{authorization, reply};
use crate::sites;

/// The router of every request in this dialect, below its prefix.
pub(crate) fn router(version: Version, api: Api) -> Router {
    let paths: BTreeSet<&'static str> = version.routes().iter().map(|route| route.path).collect();
    let routes = paths.into_iter().fold(Router::new(), |router, path| {
        let answer = move |State(api): State<Api>, request: Request| answer(api, version, path, request);
        router.route(path, any(answer))
    });
    routes
        .fallback(async move |uri: Uri| not_found(version, &uri))
        .layer(DefaultBodyLimit::max(Dialect::Fleet.body_bytes_max()))
        .layer(CatchPanicLayer::custom(|panic: Box<dyn Any + Send>| {
            Problem::internal(panic_text(&*panic)).into_fleet_response()
        }))
        .with_state(api)
}

/// The answer to a request at `path` of the table of routes.
async fn answer(api: Api, version: Version, path: &'static str, request: Request) -> Response {
    let Some(operation) = operation(version, path, request.method()) else {
        return method_not_allowed(version, path);
    };
    if let Err(refusal) = authorization::check(&api.authenticator, operation.role(), &request) {
        return refusal.fleet_answer(request.method());
    }
    // Others ignore unknown parameters, but a change would be made on another site than the one that is meant.
    if sites::names_site(request.uri()) {
        let message = "this path takes no site: ask an orchestrator of that site";
        return Problem::bad_request(message).into_fleet_response();
    }
    let answer = match operation {
        Operation::Discover => reply::json(&discovery::document(version)),
        Operation::ListMachines => read::machines(&api, version, request.uri()).await,
        Operation::ListUnits => read::units(&api, version, request.uri()).await,
        Operation::GetUnit => read::unit(&api, version, request.uri()),
        Operation::PutUnit => change::put(&api, version, request).await,
        Operation::DestroyUnit => change::destroy(&api, version, request).await,
        Operation::ListStates => read::states(&api, request.uri()).await,
        Operation::GetState => read::state(&api, request.uri()),
    };
    answer.unwrap_or_else(Problem::into_fleet_response)
}

/// What a request by `method` at `path` asks for. A HEAD is a GET whose body is not sent.
fn operation(version: Version, path: &str, method: &Method) -> Option<Operation> {
    let method = if *method == Method::HEAD { Method::GET.as_str() } else { method.as_str() };
    let mut routes = version.routes().iter();
    let route = routes.find(|route| route.path == path && route.method.as_str() == method)?;
    Some(route.operation)
}

fn method_not_allowed(version: Version, path: &str) -> Response {
    let methods = version.methods(path);
    let allowed: Vec<&str> = methods.iter().flat_map(|method| names(*method)).copied().collect();
    let is_discovery = operation(version, path, &Method::GET) == Some(Operation::Discover);
    let error = match version {
        Version::V1 if is_discovery => FleetError::DiscoveryIsReadOnly,
        Version::V1 | Version::V1Alpha => FleetError::MethodNotAllowed(Methods(methods)),
    };
    let mut response = Problem::from(error).into_fleet_response();
    if let Ok(allowed) = HeaderValue::try_from(allowed.join(",")) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

/// The names in `Allow` of a method and of what is answered with it.
const fn names(method: route::Method) -> &'static [&'static str] {
    match method {
        route::Method::Get => &["GET", "HEAD"],
        route::Method::Put => &["PUT"],
        route::Method::Post => &["POST"],
        route::Method::Patch => &["PATCH"],
        route::Method::Delete => &["DELETE"],
        route::Method::Options => &["OPTIONS"],
    }
}

fn not_found(version: Version, uri: &Uri) -> Response {
    let path = format!("{}{}", version.prefix(), uri.path());
    Problem::from(FleetError::UnknownPath { path }).into_fleet_response()
}
