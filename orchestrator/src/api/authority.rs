//! Who may call what: the table of routes, and the two steps that keep to it. First it is found who a request comes from,
//! before any route; then, for what is not FleetLock, whether the route lets that caller in.
//!
//! What is not in the table is refused whoever asks: a new route needs its line here, and a test that asks every route
//! of the router as everybody fails without it.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use chrono::Utc;

use super::error::Problem;
use super::fleet_lock;
use crate::auth::{Caller, Denied, Gate, Role, Scheme, Shown};

/// Whom a route lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lets {
    /// Anybody, unasked.
    Anybody,
    /// Whoever has this role, or one above it.
    Role(Role),
}

const ANYBODY: Lets = Lets::Anybody;
const VIEWER: Lets = Lets::Role(Role::Viewer);
const OPERATOR: Lets = Lets::Role(Role::Operator);
const ADMIN: Lets = Lets::Role(Role::Admin);

/// A path as the router has it, and its methods. HEAD is asked as GET is.
pub(super) type Route = (&'static str, &'static [(Method, Lets)]);

/// Every route there is, FleetLock's apart.
pub(super) static ROUTES: &[Route] = &[
    ("/healthz", &[(Method::GET, ANYBODY)]),
    ("/readyz", &[(Method::GET, ANYBODY)]),
    ("/openapi.json", &[(Method::GET, ANYBODY)]),
    ("/docs", &[(Method::GET, ANYBODY)]),
    ("/docs/", &[(Method::GET, ANYBODY)]),
    ("/docs/{file}", &[(Method::GET, ANYBODY)]),
    ("/metrics", &[(Method::GET, VIEWER)]),
    (
        "/v1/config/os-upgrade",
        &[
            (Method::GET, VIEWER),
            (Method::PUT, ADMIN),
            (Method::PATCH, ADMIN),
            (Method::DELETE, ADMIN),
            (Method::OPTIONS, VIEWER),
        ],
    ),
    ("/v1/state/os-upgrade", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/config-history", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/hosts", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/hosts/{hostname}", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/approve-hosts", &[(Method::POST, OPERATOR)]),
    ("/v1/state/os-upgrade/withdraw-host", &[(Method::POST, OPERATOR)]),
    ("/v1/state/os-upgrade/enrolment-history", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/runs", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/runs/{id}", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/windows", &[(Method::GET, VIEWER)]),
    ("/v1/state/os-upgrade/trigger-upgrade-site", &[(Method::POST, OPERATOR)]),
    ("/v1/state/os-upgrade/cancel", &[(Method::POST, OPERATOR)]),
    ("/v1/state/os-upgrade/give-up-host", &[(Method::POST, OPERATOR)]),
    ("/v1/state/cluster", &[(Method::GET, VIEWER)]),
    ("/v1/config/strongbox/secrets", &[(Method::GET, VIEWER)]),
    ("/v1/config/strongbox/secrets/{name}", &[(Method::PUT, ADMIN), (Method::DELETE, ADMIN)]),
    ("/v1/state/strongbox", &[(Method::GET, VIEWER)]),
    ("/v1/state/strongbox/history", &[(Method::GET, VIEWER)]),
    ("/v1/state/strongbox/unseal", &[(Method::POST, ADMIN)]),
    ("/v1/state/fleet-lock", &[(Method::GET, VIEWER)]),
    ("/v1/state/fleet-lock/history", &[(Method::GET, VIEWER)]),
    ("/v1/state/fleet-lock/hold", &[(Method::POST, OPERATOR)]),
    ("/v1/state/fleet-lock/release", &[(Method::POST, OPERATOR)]),
    ("/v1/state/fleet-lock/{group}/{id}", &[(Method::DELETE, OPERATOR)]),
];

/// Whether anybody may ask for everything at `path`.
pub(super) fn is_public(path: &str) -> bool {
    let methods = ROUTES.iter().find(|(known, _)| *known == path).map(|(_, methods)| *methods);
    methods.is_some_and(|methods| methods.iter().all(|(_, lets)| *lets == ANYBODY))
}

/// Who a request comes from, as far as that is known. An extension of every request; who is known is one too, as
/// [`Caller`].
#[derive(Debug, Clone)]
pub(super) struct Identity(pub(super) Result<Caller, Denied>);

/// Where a request comes from.
pub(super) fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}

/// Finds out who a request comes from, for all that comes after.
pub(super) async fn identify(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let scheme = if fleet_lock::is_asked(&request) { Scheme::FleetLock } else { Scheme::Bearer };
    let headers = request.headers();
    let certificate = request.extensions().get();
    let shown = Shown { scheme, headers, certificate, peer: peer(&request) };
    let caller = gate.caller(shown, Utc::now()).await;
    if let Ok(caller) = &caller {
        request.extensions_mut().insert(caller.clone());
    }
    request.extensions_mut().insert(Identity(caller));
    next.run(request).await
}

/// Lets a request through to its route, or refuses it. What has no route is answered like that.
pub(super) async fn admit(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let Some(path) = matched.map(|matched| matched.as_str().to_owned()) else {
        return next.run(request).await;
    };
    match admitted(&path, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            if let Some(reason) = refusal.reason() {
                gate.denials().note(reason, peer(&request), Instant::now());
            }
            refusal.into_response(&path)
        }
    }
}

/// Why a request does not reach its route.
#[derive(Debug)]
enum Refusal {
    /// The path has no line.
    NoLine,
    /// The line has no such method.
    NoMethod(&'static [(Method, Lets)]),
    /// Nobody knows who asks.
    Denied(Denied),
    /// Who asks may not.
    Forbidden(Role),
}

fn admitted(path: &str, request: &Request) -> Result<(), Refusal> {
    let (_, methods) = ROUTES.iter().find(|(known, _)| *known == path).ok_or(Refusal::NoLine)?;
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let line = methods.iter().find(|(known, _)| known == method).ok_or(Refusal::NoMethod(methods))?;
    let Lets::Role(role) = line.1 else {
        return Ok(());
    };
    let Some(Identity(caller)) = request.extensions().get() else {
        return Err(Refusal::Denied(Denied::Missing));
    };
    match caller {
        Ok(caller) if caller.may(role) => Ok(()),
        Ok(_) => Err(Refusal::Forbidden(role)),
        Err(denied) => Err(Refusal::Denied(*denied)),
    }
}

impl Refusal {
    /// Its word in the metrics, if it says something about who asks.
    fn reason(&self) -> Option<&'static str> {
        match self {
            Self::NoLine | Self::NoMethod(_) => None,
            Self::Denied(denied) => Some(denied.as_str()),
            Self::Forbidden(_) => Some("forbidden"),
        }
    }

    fn into_response(self, path: &str) -> Response {
        match self {
            Self::NoLine => {
                tracing::error!(path, "a route without a line in the table of who may call it");
                Problem::new(StatusCode::FORBIDDEN, "nobody may call this").into_response()
            }
            Self::NoMethod(methods) => {
                let mut response = Problem::method_not_allowed().into_response();
                response.headers_mut().extend(allow(methods).map(|value| (ALLOW, value)));
                response
            }
            Self::Denied(Denied::Unavailable) => {
                Problem::unavailable(Denied::Unavailable.to_string()).into_response()
            }
            Self::Denied(Denied::Elsewhere) => {
                Problem::new(StatusCode::FORBIDDEN, Denied::Elsewhere.to_string()).into_response()
            }
            Self::Denied(denied) => unauthorized(denied),
            Self::Forbidden(role) => {
                let message = format!("this needs the role {role}");
                Problem::new(StatusCode::FORBIDDEN, message).into_response()
            }
        }
    }
}

fn unauthorized(denied: Denied) -> Response {
    let challenge = match denied {
        Denied::Missing | Denied::Unavailable | Denied::Elsewhere => "Bearer realm=\"os-upgrade\"",
        Denied::Invalid | Denied::Expired => "Bearer realm=\"os-upgrade\", error=\"invalid_token\"",
    };
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, denied.to_string()).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

/// The methods as `Allow` lists them.
fn allow(methods: &[(Method, Lets)]) -> Option<HeaderValue> {
    let with_head = |(method, _): &(Method, Lets)| match *method {
        Method::GET => vec!["GET".to_owned(), "HEAD".to_owned()],
        _ => vec![method.to_string()],
    };
    methods.iter().flat_map(with_head).collect::<Vec<_>>().join(",").parse().ok()
}
