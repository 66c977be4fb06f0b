//! The router: every route, and the layers around them.

use std::any::Any;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::dot_segment;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::route::Dialect;
use os_upgrade_auth::Authenticator;
use os_upgrade_protocol::text::one_line;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_store::History;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Level;

use crate::context::{Answers, Api, Options};
use crate::description::Description;
use crate::feed::Feed;
use crate::fleet;
use crate::http::call_back_rate::CallBackRate;
use crate::http::dialect::{Dialects, nested};
use crate::http::error::{Cause, Problem, Routine, panic_text};
use crate::http::listener::{self, Limits};
use crate::http::refusal::Refusal;
use crate::http::shared_answer::SharedAnswer;
use crate::http::{authorization, form};
use crate::resources::{self, fleet_lock, hooks};

/// How long a request may take from its last header to its answer. Writes and FleetLock have shorter limits of their
/// own.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// How many large answers are serialized at once, so that readers of a large site do not use up memory and cores.
const RENDERS_MAX: usize = 2;

/// How much of a request's path is logged, in characters.
const PATH_CHARS_MAX: usize = 200;
/// How much of the cause of a failure is logged, in characters: it may repeat what the request had.
const CAUSE_CHARS_MAX: usize = 1_000;

pub(crate) static DESCRIPTION: LazyLock<Description> =
    LazyLock::new(|| Description::of(resources::declarations().iter()));

/// The description of the API: an `OpenAPI` document in JSON.
pub fn description() -> &'static str {
    DESCRIPTION.json()
}

/// Every route, with limits, error bodies and logging around them. `authenticator` authenticates callers.
pub fn router(site: SiteHandle, history: History, authenticator: Authenticator, options: &Options) -> Router {
    Routers::new(site, history, authenticator, options).edge
}

/// The routers of an instance.
#[derive(Debug)]
pub(crate) struct Routers {
    /// For HTTP clients.
    pub(crate) edge: Router,
    /// For requests from other sites, whose callers are already identified. It forwards nothing.
    pub(crate) inner: Router,
    /// For the Unix socket, which knows the callers. It serves fleet's dialects alone.
    pub(crate) at_socket: Router,
    /// The events, which must be run.
    pub(crate) feed: Feed,
}

impl Routers {
    pub(crate) fn new(
        site: SiteHandle,
        history: History,
        authenticator: Authenticator,
        options: &Options,
    ) -> Self {
        let renders = Arc::new(Semaphore::new(RENDERS_MAX));
        let feed = Feed::new(site.clone(), history.clone(), options.limits.subscribers().counts().clone());
        let api = Api {
            site,
            history,
            feed: feed.clone(),
            renders: Arc::clone(&renders),
            whole_state: SharedAnswer::default(),
            answers: Answers::default(),
            call_back_rate: CallBackRate::default(),
            authenticator,
            options: options.clone(),
            description: &DESCRIPTION,
        };
        let routes = |sites| {
            let routes = resources::routes().router(&api.authenticator, sites).fallback(not_found);
            with_limits(routes, Dialect::Specification)
                .with_state(api.clone())
                .layer(middleware::from_fn_with_state(api.whole_state.clone(), note_change))
        };
        let inner = routes(None)
            .layer(middleware::from_fn_with_state(Dialect::Specification, with_timeout))
            .layer(middleware::from_fn(log_failure));
        let dialects = Dialects {
            specification: routes(Some(&options.sites)),
            fleet_lock: fleet_lock::router(api.clone()),
            call_backs: with_limits(hooks::routes(), Dialect::CallBack).with_state(api.clone()),
            fleet_v1_alpha: fleet::router(Version::V1Alpha, api.clone()),
            fleet_v1: fleet::router(Version::V1, api.clone()),
        };
        let fleet = [&dialects.fleet_v1_alpha, &dialects.fleet_v1].map(Router::clone);
        let at_socket = socket_router(fleet, &options.limits);
        let edge = edge_router(dialects, renders, &api.authenticator, &options.limits);
        Self { edge, inner, at_socket, feed }
    }
}

/// The routers of all dialects inside the layers that every request from outside passes; the last one added runs first.
pub(crate) fn edge_router(
    dialects: Dialects,
    renders: Arc<Semaphore>,
    authenticator: &Authenticator,
    limits: &Limits,
) -> Router {
    let guarded = |routes: Router, dialect: Dialect| {
        routes
            .layer(middleware::from_fn_with_state((authenticator.clone(), dialect), authorization::identify))
            .layer(middleware::from_fn_with_state(dialect, with_timeout))
            .layer(middleware::from_fn_with_state((limits.clone(), dialect), listener::enforce))
    };
    // The path is rewritten before routing, and after all other layers.
    let specification = Router::new()
        .fallback_service(dialects.specification.map_request(with_names_of_dots))
        .layer(middleware::from_fn_with_state(renders, form::negotiated));
    let guarded = Dialects {
        specification: guarded(specification, Dialect::Specification),
        fleet_lock: guarded(dialects.fleet_lock, Dialect::FleetLock),
        call_backs: guarded(dialects.call_backs, Dialect::CallBack),
        fleet_v1_alpha: guarded(dialects.fleet_v1_alpha, Dialect::Fleet),
        fleet_v1: guarded(dialects.fleet_v1, Dialect::Fleet),
    };
    nested(guarded).layer(middleware::from_fn(log_failure)).layer(middleware::map_response(without_sniffing))
}

/// The routers of fleet's dialects inside the layers of [`edge_router`], but for the one that identifies callers: the listener does.
fn socket_router([v1_alpha, v1]: [Router; 2], limits: &Limits) -> Router {
    let not_found = async |uri: Uri| {
        let message = format!("nothing exists at {}: this socket serves fleet's API alone", uri.path());
        Problem::not_found(message).into_fleet_response()
    };
    Router::new()
        .nest_service(Version::V1Alpha.prefix(), v1_alpha)
        .nest_service(Version::V1.prefix(), v1)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(Dialect::Fleet, with_timeout))
        .layer(middleware::from_fn_with_state((limits.clone(), Dialect::Fleet), listener::enforce))
        .layer(middleware::from_fn(log_failure))
        .layer(middleware::map_response(without_sniffing))
}

/// Rewrites a path with names that are only dots, which clients write in another way.
fn with_names_of_dots(mut request: Request) -> Request {
    let uri = request.uri();
    if let Some(path) = dot_segment::restored(uri.path()) {
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = format!("{path}{query}").try_into().ok();
        // Without a path it would not be valid: then nothing exists there.
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Lets everybody see what a request has changed. What is refused changes nothing.
async fn note_change(State(whole_state): State<SharedAnswer>, request: Request, next: Next) -> Response {
    let is_change = !request.method().is_safe();
    let response = next.run(request).await;
    if is_change && !response.status().is_client_error() {
        whole_state.changed();
    }
    response
}

/// Forbids browsers to guess the type of a body.
async fn without_sniffing(mut response: Response) -> Response {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(crate) fn with_limits<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    dialect: Dialect,
) -> Router<S> {
    routes
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(DefaultBodyLimit::max(dialect.body_bytes_max()))
        .layer(CatchPanicLayer::custom(panicked))
}

/// Answers where there is no route.
async fn not_found(uri: Uri) -> Problem {
    Problem::not_found(format!("nothing exists at {}", uri.path()))
}

/// Limits the time for all of it: identifying the caller, handling the request, and serializing the answer.
pub(crate) async fn with_timeout(
    State(dialect): State<Dialect>,
    method: Method,
    request: Request,
    next: Next,
) -> Response {
    let answered = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    answered.unwrap_or_else(|_| Refusal::NoAnswer { within: REQUEST_TIMEOUT }.answer(&method, dialect))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that tower-http requires")]
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    Problem::internal(panic_text(&*panic)).into_response()
}

/// Logs one line for each request that fails, here at the boundary and nowhere else. Bodies, queries and headers may
/// hold secrets and are left out.
async fn log_failure(method: Method, uri: Uri, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let cause = response.extensions().get::<Cause>().map_or("", |cause| cause.0.as_str());
    let cause = one_line(cause, CAUSE_CHARS_MAX);
    let code = status.as_u16();
    // Called only where a line is logged.
    let path = || one_line(uri.path(), PATH_CHARS_MAX);
    let is_routine = response.extensions().get::<Routine>().is_some();
    match failure_level(status, is_routine) {
        Some(Level::ERROR) => {
            tracing::error!(%method, path = path(), status = code, cause, "request failed");
        }
        // Lines are paced by their place in the code. Anybody can cause these, and must not displace the others.
        Some(Level::INFO) if [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status) => {
            tracing::info!(%method, path = path(), status = code, cause, "request refused");
        }
        Some(Level::INFO) => tracing::info!(%method, path = path(), status = code, cause, "request refused"),
        Some(_) => {
            tracing::debug!(%method, path = path(), status = code, cause, "answered");
        }
        None => {}
    }
    response
}

/// The level at which an answer is logged; none for a success.
pub(crate) fn failure_level(status: StatusCode, is_routine: bool) -> Option<Level> {
    // Refused clients may send at any rate. They are logged elsewhere, once a minute.
    let is_logged_elsewhere =
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    if is_routine || is_logged_elsewhere {
        Some(Level::DEBUG)
    } else if status.is_server_error() {
        Some(Level::ERROR)
    } else if status.is_client_error() {
        Some(Level::INFO)
    } else {
        None
    }
}
