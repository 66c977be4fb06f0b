//! FleetLock: slots for clients from outside. What is asked for below its paths is answered here, a route or not, in its
//! dialect, whatever happens: a 200 with a JSON object, or a `kind` ([`lock_error`](crate::http::lock_error)) and a `value`. Clients take any 2xx for a
//! grant and may follow redirects, so there is one answer that grants, and none that redirects. The `Content-Type` is
//! not looked at, nor is the query: real clients send none, or any.
//!
//! Its body and what is asked of the core have a limit of time each, so that clients hear in their dialect long before the
//! one of every request is over.

mod body;

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use os_upgrade_api_types::fleet_lock::{Claim, LOCK, PROTOCOL_HEADER, UNLOCK, meant};
use os_upgrade_auth::{Caller, Denied};
use os_upgrade_kernel::LockOperation;
use os_upgrade_site::handle::SiteHandle;

use crate::context::Api;
use crate::http::authority::{self, Identity};
use crate::http::error::panic_text;
use crate::http::lock_error::{Kind, LockError};
use crate::routes::Routes;

/// How long the core may take: clients are to hear within 3 s that nobody knows.
const BACKEND_TIMEOUT: Duration = Duration::from_millis(2_500);

pub(crate) fn routes() -> Routes {
    Routes::default().route(&LOCK, lock).route(&UNLOCK, unlock)
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    /// A slot, answered with 200 once it is durable that the client holds it.
    Lock,
    /// No slot any more, answered with 200 once it is durable that the client holds none.
    Unlock,
    /// Nothing that there is, below `/fleetlock`.
    Nothing,
}

impl Endpoint {
    /// The word in the metrics.
    const fn operation(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Nothing => "none",
        }
    }
}

async fn lock(State(api): State<Api>, request: Request) -> Response {
    served(&api, Endpoint::Lock, request).await
}

async fn unlock(State(api): State<Api>, request: Request) -> Response {
    served(&api, Endpoint::Unlock, request).await
}

/// Answers what is asked for where there is no route.
pub(crate) async fn nothing(api: &Api, request: Request) -> Response {
    served(api, Endpoint::Nothing, request).await
}

/// The request with the path of the route that it means, if it means one of FleetLock's.
pub(crate) fn with_path_of_route(mut request: Request) -> Request {
    if let Some(path) = meant(request.uri().path()) {
        *request.uri_mut() = Uri::from_static(path);
    }
    request
}

async fn served(api: &Api, endpoint: Endpoint, request: Request) -> Response {
    let peer = authority::peer(&request);
    let answer = caught(answer(&api.site, endpoint, request)).await;
    if let Some(reason) = answer.as_ref().err().and_then(LockError::denial) {
        api.gate.denials().note(reason, peer, Instant::now());
    }
    let kind = answer.as_ref().map_or_else(|error| error.kind().as_str(), |()| "granted");
    api.answers.get_or_create(&[("operation", endpoint.operation()), ("kind", kind)]).inc();
    reply(answer)
}

async fn caught(answer: impl Future<Output = Result<(), LockError>>) -> Result<(), LockError> {
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    answer.unwrap_or_else(|panic| Err(LockError::internal(panic_text(&*panic))))
}

fn reply(answer: Result<(), LockError>) -> Response {
    match answer {
        Ok(()) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], "{}").into_response(),
        Err(error) => error.into_response(),
    }
}

/// A slot is held, or not held, as it was asked for.
async fn answer(site: &SiteHandle, endpoint: Endpoint, request: Request) -> Result<(), LockError> {
    let peer = authority::peer(&request);
    let (parts, body) = request.into_parts();
    let (caller, ask) = match expected(endpoint, &parts) {
        Ok(expected) => expected,
        Err(error) => {
            body::discard(&parts.headers, body).await;
            return Err(error);
        }
    };
    let claim = Claim::parse(&body::read(&parts.headers, body).await?)?;
    let Claim { group, id } = claim.clone();
    let refused = |error: LockError| error.about(&group, &id, peer);
    if !caller.may_lock(&group) {
        let value = format!("{} may not ask for slots of the group {group}", caller.actor);
        return Err(refused(LockError::new(Kind::Forbidden, value)));
    }
    let answer =
        site.request_within(os_upgrade_kernel::Request::new(caller.actor, ask(claim)), BACKEND_TIMEOUT).await;
    let answer = answer.map_err(|unavailable| refused(unavailable.into()))?;
    answer.map(drop).map_err(|refusal| refused(refusal.into()))
}

/// What becomes of a claim.
type Ask = fn(Claim) -> LockOperation;

/// Who asks, and what is to be asked of the core, unless the request's head is enough to refuse it.
fn expected(endpoint: Endpoint, head: &Parts) -> Result<(Caller, Ask), LockError> {
    let caller = match head.extensions.get() {
        Some(Identity(caller)) => caller.clone()?,
        None => return Err(Denied::Missing.into()),
    };
    let ask: Ask = match endpoint {
        Endpoint::Lock => |Claim { group, id }| LockOperation::Lock { group, id },
        Endpoint::Unlock => |Claim { group, id }| LockOperation::Unlock { group, id },
        Endpoint::Nothing => {
            let value = format!("there is nothing at {}", head.uri.path());
            return Err(LockError::new(Kind::NotFound, value));
        }
    };
    if head.method != Method::POST {
        return Err(LockError::new(Kind::MethodNotAllowed, "FleetLock requests are POSTed"));
    }
    if !is_meant(&head.headers) {
        let value = format!("the header {PROTOCOL_HEADER} must be there once, with the value true");
        return Err(LockError::new(Kind::MissingFleetLockHeader, value));
    }
    Ok((caller, ask))
}

fn is_meant(headers: &HeaderMap) -> bool {
    headers.get_all(PROTOCOL_HEADER).iter().eq(["true"])
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_in_the_dialect() {
        #[expect(clippy::panic, reason = "it is what is tested")]
        let response = reply(caught(async { panic!("secret") }).await);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(body, r#"{"kind":"internal","value":"internal error; the log has its cause"}"#);
    }
}
