//! Access control in two steps: the caller is identified before routing, and admitted by the route's declaration.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use os_upgrade_api_types::Role;
use os_upgrade_api_types::route::Dialect;
use os_upgrade_auth::{Authenticator, Caller, Denied, Presented, Scheme, WatchedTokens};
use os_upgrade_shell::not_done::NotDone;

use crate::http::error::Problem;
use crate::http::refusal;

/// The caller of a request, or why it is unknown. An extension of every request; a known caller is also one by itself,
/// as [`Caller`].
#[derive(Debug, Clone)]
pub(crate) struct Identity(pub(crate) Result<Caller, Denied>);

/// The role that the route of a request needs. An extension of every request that was admitted for it.
#[derive(Debug, Clone, Copy)]
struct Needed(Role);

/// How often the caller of a request is identified again whose answer goes on: a token may expire.
const IDENTIFIED_EVERY: Duration = Duration::from_secs(5);

/// The address that a request comes from; `None` for requests from another site, or over the Unix socket.
pub(crate) fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}

/// Identifies the caller, for all later layers. Without tokens a page of another web site reaches no route.
pub(crate) async fn identify(
    State((authenticator, dialect)): State<(Authenticator, Dialect)>,
    mut request: Request,
    next: Next,
) -> Response {
    if authenticator.is_foreign_page(request.headers()) {
        let refusal = refusal::Refusal::ForeignPage;
        authenticator.denials().record(refusal.reason(), peer(&request), Instant::now());
        return refusal.answer(request.method(), dialect);
    }
    let scheme = match dialect {
        Dialect::Specification | Dialect::Fleet => Scheme::Bearer,
        Dialect::FleetLock => Scheme::FleetLock,
        // The tokens of call-backs are not the authenticator's, and its own do not count there.
        Dialect::CallBack => return next.run(request).await,
    };
    let headers = request.headers();
    let certificate = request.extensions().get();
    let shown = Presented { scheme, headers, certificate, peer: peer(&request) };
    let caller = authenticator.caller(shown, Utc::now()).await;
    note_caller(request.extensions_mut(), caller);
    next.run(request).await
}

/// Says in the extensions of a request who its caller is, for all later layers.
pub(crate) fn note_caller(extensions: &mut Extensions, caller: Result<Caller, Denied>) {
    if let Ok(caller) = &caller {
        extensions.insert(caller.clone());
    }
    extensions.insert(Identity(caller));
}

/// Passes a request to its route if the caller has `role`, or refuses it.
pub(crate) async fn admit(
    State((authenticator, role)): State<(Authenticator, Role)>,
    mut request: Request,
    next: Next,
) -> Response {
    match check(&authenticator, role, &request) {
        Ok(()) => {
            request.extensions_mut().insert(Needed(role));
            next.run(request).await
        }
        Err(refusal) => refusal.answer(request.method()),
    }
}

/// Checks that the caller of `request` has `role`, and counts refusals.
pub(crate) fn check(authenticator: &Authenticator, role: Role, request: &Request) -> Result<(), Refusal> {
    admitted(role, request).inspect_err(|refusal| {
        authenticator.denials().record(refusal.reason(), peer(request), Instant::now());
    })
}

/// Ends once the caller of `request`, whose answer goes on, would not be admitted any more: its token was revoked or has expired, or
/// nobody can tell.
pub(crate) fn dismissed(
    authenticator: &Authenticator,
    request: &Request,
) -> impl Future<Output = ()> + Send + use<> {
    let (authenticator, peer) = (authenticator.clone(), peer(request));
    let role = request.extensions().get().map(|Needed(role)| *role);
    let credentials = request.headers().get_all(AUTHORIZATION).iter();
    let headers: HeaderMap = credentials.map(|value| (AUTHORIZATION, value.clone())).collect();
    async move {
        let mut changes = authenticator.tokens().map(WatchedTokens::changes);
        loop {
            let shown = Presented { scheme: Scheme::Bearer, headers: &headers, certificate: None, peer };
            match (authenticator.caller(shown, Utc::now()).await, role) {
                (Ok(caller), Some(role)) if caller.may(role) => {}
                _ => return,
            }
            let revision = async {
                match &mut changes {
                    Some(changes) => changes.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            // Whatever ends the wait, the caller is identified again.
            let _ = tokio::time::timeout(IDENTIFIED_EVERY, revision).await;
        }
    }
}

/// Why a request does not reach its route.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The caller is not authenticated.
    Denied(Denied),
    /// The caller lacks the role.
    Forbidden(Role),
}

fn admitted(role: Role, request: &Request) -> Result<(), Refusal> {
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
    /// The label in the metrics.
    const fn reason(&self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.as_str(),
            Self::Forbidden(_) => "forbidden",
        }
    }

    /// The answer to a request by `method`.
    pub(crate) fn answer(&self, method: &Method) -> Response {
        self.with_challenge(self.problem(method).into_response())
    }

    /// The answer to a request by `method`, in the dialects of fleet.
    pub(crate) fn fleet_answer(&self, method: &Method) -> Response {
        self.with_challenge(self.problem(method).into_fleet_response())
    }

    fn problem(&self, method: &Method) -> Problem {
        match self {
            Self::Denied(Denied::Unavailable) => {
                Problem::not_done(method, NotDone::unchanged(Denied::Unavailable.to_string()))
            }
            Self::Denied(denied) => Problem::new(StatusCode::UNAUTHORIZED, denied.to_string()),
            Self::Forbidden(role) => {
                Problem::new(StatusCode::FORBIDDEN, format!("this needs the role {role}"))
            }
        }
    }

    /// `response` with what the caller has to show, if that is what is missing.
    fn with_challenge(&self, mut response: Response) -> Response {
        let challenge = match self {
            Self::Denied(Denied::Missing) => "Bearer realm=\"os-upgrade\"",
            Self::Denied(Denied::Invalid | Denied::Expired) => {
                "Bearer realm=\"os-upgrade\", error=\"invalid_token\""
            }
            Self::Denied(Denied::Unavailable) | Self::Forbidden(_) => return response,
        };
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        response
    }
}
