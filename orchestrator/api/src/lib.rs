//! The REST API: `/v1/config/os-upgrade` and `/v1/state/os-upgrade...`, as the specification and its conventions
//! have them, the health endpoints, and FleetLock.
//!
//! The routes are declared in `os-upgrade-api-types`; here is one file of handlers per group of them, each of which is
//! registered with its declaration (`routes`). What they share is in `extract` (what comes in), `reply`
//! (what goes out) and `error` (the error policy). Nothing is decided here: a write goes to the core
//! through [`SiteHandle`] and is answered after it is durable; the present state is read from the same handle, and
//! the past from the projection's [`History`], which is a moment behind and waited for.
//!
//! JSON or YAML in and out, as `form` has it. Whoever may not call a route is refused in `authority`, and who calls is
//! found out in [`os_upgrade_auth`].

mod audit;
mod authority;
mod changes;
mod cluster;
mod conditions;
mod config;
mod document;
mod enrolment;
mod error;
mod extract;
mod fields;
mod fleet_lock;
mod form;
mod health;
mod hosts;
mod listener;
mod metrics;
pub mod offline;
mod openapi;
mod page;
mod patch;
mod reply;
mod routes;
mod run;
mod runs;
mod sites;
mod slots;
mod state;
mod strongbox;
mod windows;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::fleet_lock::dialect_of;
use os_upgrade_api_types::route::Dialect;
use os_upgrade_auth::Gate;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::snapshot::Present;
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::History;
use os_upgrade_tls::server_files::Tls;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Level;

use self::error::{Cause, Problem, Routine};
pub use self::listener::{Limits, serve};
use self::routes::Routes;
pub use self::sites::Sites;

/// How long a request may take from its last header to its answer. Writes are answered sooner, by the site handle, and
/// FleetLock too.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the history is waited for; a store that cannot be written is read as it is.
const HISTORY_WITHIN: Duration = Duration::from_secs(2);

/// How many large answers are written out at once: with more, a large site's memory and cores would go to readers.
const RENDERS_MAX: usize = 2;

/// What every endpoint has at hand.
#[derive(Debug, Clone)]
struct Api {
    site: SiteHandle,
    history: History,
    renders: Arc<Semaphore>,
    answers: metrics::Answers,
    gate: Gate,
    options: Options,
}

impl Api {
    /// The present state.
    ///
    /// # Errors
    /// It has not been read since the start: an empty one would be taken for the site's.
    fn present(&self) -> Result<Arc<Present>, Problem> {
        let present = self.site.shown(chrono::Utc::now());
        match present.readiness.why_not() {
            Some(why) if !present.is_read => Err(Problem::unavailable(why)),
            Some(_) | None => Ok(present),
        }
    }

    /// The same for who asks for a change, which has not been made where there is none.
    ///
    /// # Errors
    /// As [`Self::present`].
    fn present_for_change(&self) -> Result<Arc<Present>, Problem> {
        self.present().map_err(|problem| NotDone::unchanged(problem.into_message()).into())
    }

    /// The history, with everything that the present state shows: who has read there of a run finds it here.
    async fn history(&self) -> &History {
        let has = self.history.has(self.site.present().recorded);
        if tokio::time::timeout(HISTORY_WITHIN, has).await.is_err() {
            tracing::debug!("the history is behind");
        }
        &self.history
    }
}

/// How the API is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// With TLS, if there is any; whoever builds the router alone does without.
    pub tls: Option<Tls>,
    /// How many requests.
    pub limits: Limits,
    /// With the key to the site's secrets, or without.
    pub strongbox: Strongbox,
    /// With other sites behind `?site=`, or without any.
    pub sites: Sites,
}

/// Every route, with what answers it.
fn routes() -> Routes {
    Routes::default()
        .merge(config::routes())
        .merge(changes::routes())
        .merge(state::routes())
        .merge(windows::routes())
        .merge(hosts::routes())
        .merge(enrolment::routes())
        .merge(run::routes())
        .merge(runs::routes())
        .merge(cluster::routes())
        .merge(health::routes())
        .merge(slots::routes())
        .merge(strongbox::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
        .merge(page::routes())
        .merge(fleet_lock::routes())
}

/// The description of the API: an `OpenAPI` document in JSON.
pub fn description() -> &'static str {
    openapi::document()
}

/// Every route, with limits, error bodies and logging around them, for those whom `gate` lets in.
pub fn router(site: SiteHandle, history: History, gate: Gate, options: &Options) -> Router {
    Routers::new(site, history, gate, options).edge
}

/// The ways in.
#[derive(Debug)]
struct Routers {
    /// For whoever connects.
    edge: Router,
    /// For what other sites pass on, once it is known who asks there; it passes nothing on.
    inner: Router,
}

impl Routers {
    fn new(site: SiteHandle, history: History, gate: Gate, options: &Options) -> Self {
        let renders = Arc::new(Semaphore::new(RENDERS_MAX));
        let api = Api {
            site,
            history,
            renders: Arc::clone(&renders),
            answers: metrics::Answers::default(),
            gate: gate.clone(),
            options: options.clone(),
        };
        let inner = with_limits(routes().router(&gate, None).fallback(nothing))
            .with_state(api.clone())
            .layer(middleware::from_fn(in_time))
            .layer(middleware::from_fn(log_failure));
        let edge = routes().router(&gate, Some(&options.sites)).fallback(nothing);
        let edge = with_limits(edge).with_state(api);
        Self { edge: from_outside(edge, renders, gate, options.limits.clone()), inner }
    }
}

/// `routes`, with what every request from outside passes before it, from the last to the first.
fn from_outside(routes: Router, renders: Arc<Semaphore>, gate: Gate, limits: Limits) -> Router {
    // What changes the path comes before the router, and everything else here before that.
    Router::new()
        .fallback_service(routes.map_request(fleet_lock::with_path_of_route))
        .layer(middleware::from_fn_with_state(renders, form::negotiated))
        .layer(middleware::from_fn_with_state(gate, authority::identify))
        .layer(middleware::from_fn(in_time))
        .layer(middleware::from_fn_with_state(limits, listener::within))
        .layer(middleware::from_fn(log_failure))
}

fn with_limits<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(DefaultBodyLimit::max(Dialect::Specification.body_bytes_max()))
        .layer(CatchPanicLayer::custom(panicked))
}

/// What is answered where there is no route.
async fn nothing(State(api): State<Api>, request: Request) -> Response {
    let path = request.uri().path();
    match dialect_of(path) {
        Dialect::Specification => Problem::not_found(format!("there is nothing at {path}")).into_response(),
        Dialect::FleetLock => fleet_lock::nothing(&api, request).await,
    }
}

/// Bounds all of it: finding out who asks, doing it, and writing the answer out.
async fn in_time(method: Method, uri: Uri, request: Request, next: Next) -> Response {
    tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await.unwrap_or_else(|_| {
        let message = format!("there is no answer after {} s", REQUEST_TIMEOUT.as_secs());
        let refused = fleet_lock::refuse(uri.path(), fleet_lock::Kind::OutcomeUnknown, &message);
        refused.unwrap_or_else(|| Problem::not_done(&method, NotDone::unknown(message)).into_response())
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature tower-http asks for")]
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    Problem::internal(panic_text(&*panic)).into_response()
}

/// What the log says of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    format!("panic: {text}")
}

/// One line for each request that fails, here at the boundary and nowhere else. Bodies, queries and headers, which
/// may hold secrets, are not in it.
async fn log_failure(method: Method, uri: Uri, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let cause = response.extensions().get::<Cause>().map_or("", |cause| cause.0.as_str());
    let is_routine = response.extensions().get::<Routine>().is_some();
    match failure_level(status, is_routine) {
        Some(Level::ERROR) => {
            tracing::error!(%method, path = uri.path(), status = status.as_u16(), cause, "request failed");
        }
        Some(Level::INFO) => {
            tracing::info!(%method, path = uri.path(), status = status.as_u16(), cause, "request refused");
        }
        Some(_) => {
            tracing::debug!(%method, path = uri.path(), status = status.as_u16(), cause, "answered");
        }
        None => {}
    }
    response
}

/// At which level a failure is logged, if it is one.
fn failure_level(status: StatusCode, is_routine: bool) -> Option<Level> {
    // Whoever is not let in, or asks too often, may ask at any rate: lines of their own, once a minute, are about that.
    let is_noted_elsewhere =
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    if is_routine || is_noted_elsewhere {
        Some(Level::DEBUG)
    } else if status.is_server_error() {
        Some(Level::ERROR)
    } else if status.is_client_error() {
        Some(Level::INFO)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
