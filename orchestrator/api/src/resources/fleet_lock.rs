//! FleetLock: slots for external clients. Every request below its paths is answered here in its dialect, with or
//! without a route: a 200 with a JSON object, or a `kind` ([`lock_error`](crate::http::lock_error)) and a `value`.
//! Clients take any 2xx for a grant and may follow redirects, so exactly one answer grants, and none redirects. The
//! `Content-Type` and the query are ignored, because real clients send any or none.
//!
//! Reading the body and the request to the instance have shorter timeouts than requests in general, so that clients get an
//! answer in their dialect.

mod body;

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::FutureExt as _;
use os_upgrade_api_types::route::Declaration;
use os_upgrade_api_types::routes::fleet_lock::{Claim, LOCK, PROTOCOL_HEADER, UNLOCK};
use os_upgrade_auth::{Caller, Denied};
use os_upgrade_kernel::{LockOperation, State as Site};
use os_upgrade_protocol::{GroupName, HostName};
use os_upgrade_site::handle::SiteHandle;

use crate::context::Api;
use crate::http::authorization::{self, Identity};
use crate::http::error::panic_text;
use crate::http::lock_error::{Kind, LockError};

/// How long the instance may take: clients must get an answer within 3 s, even if the outcome is unknown.
const BACKEND_TIMEOUT: Duration = Duration::from_millis(2_500);

/// The routes, which refuse other methods themselves.
pub(crate) const DECLARATIONS: [&Declaration; 2] = [LOCK.declaration(), UNLOCK.declaration()];

/// The router of every request in FleetLock's dialect.
pub(crate) fn router(api: Api) -> Router {
    let routes = Router::new().route(LOCK.path(), any(lock)).route(UNLOCK.path(), any(unlock));
    routes.fallback(not_found).with_state(api)
}

/// The endpoint that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    /// Take a slot: 200 once the grant is durable.
    Lock,
    /// Release a slot: 200 once it is durable that the client holds none.
    Unlock,
    /// An unknown path below `/fleetlock`.
    Unknown,
}

impl Endpoint {
    /// The label in the metrics.
    const fn operation(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Unknown => "none",
        }
    }
}

async fn lock(State(api): State<Api>, request: Request) -> Response {
    serve(&api, Endpoint::Lock, request).await
}

async fn unlock(State(api): State<Api>, request: Request) -> Response {
    serve(&api, Endpoint::Unlock, request).await
}

async fn not_found(State(api): State<Api>, request: Request) -> Response {
    serve(&api, Endpoint::Unknown, request).await
}

async fn serve(api: &Api, endpoint: Endpoint, request: Request) -> Response {
    let peer = authorization::peer(&request);
    let answer = catch_panic(answer(&api.site, endpoint, request)).await;
    if let Some(reason) = answer.as_ref().err().and_then(LockError::denial) {
        api.authenticator.denials().record(reason, peer, Instant::now());
    }
    let kind = answer.as_ref().map_or_else(|error| error.kind().as_str(), |done| done.kind());
    api.answers.fleet_lock.get_or_create(&[("operation", endpoint.operation()), ("kind", kind)]).inc();
    reply(answer)
}

/// What a request was answered with a 200 for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// The slot is durably held or released.
    Granted,
    /// An unlock of a client that held no slot, as far as this instance knew. It may have waited for one.
    NothingHeld,
}

impl Done {
    /// The label in the metrics.
    const fn kind(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::NothingHeld => "nothing_held",
        }
    }
}

async fn catch_panic(answer: impl Future<Output = Result<Done, LockError>>) -> Result<Done, LockError> {
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    answer.unwrap_or_else(|panic| Err(LockError::internal(panic_text(&*panic))))
}

fn reply(answer: Result<Done, LockError>) -> Response {
    match answer {
        Ok(_) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], "{}").into_response(),
        Err(error) => error.into_response(),
    }
}

/// Handles a request; `Ok` once the slot is durably held or released.
async fn answer(site: &SiteHandle, endpoint: Endpoint, request: Request) -> Result<Done, LockError> {
    let peer = authorization::peer(&request);
    let (parts, body) = request.into_parts();
    let (caller, operation) = match check_head(endpoint, &parts) {
        Ok(checked) => checked,
        Err(error) => {
            body::discard(&parts.headers, body).await;
            return Err(error);
        }
    };
    let claim = Claim::parse(&body::read(&parts.headers, body).await?)?;
    let Claim { group, id } = claim.clone();
    let refused = |error: LockError| error.with_context(&group, &id, peer);
    if !caller.may_lock(&group) {
        let value = format!("{} may not request slots of the group {group}", caller.actor);
        return Err(refused(LockError::new(Kind::Forbidden, value)));
    }
    let done = match endpoint {
        Endpoint::Unlock if !is_held(&site.published().state, &claim) => Done::NothingHeld,
        Endpoint::Lock | Endpoint::Unlock | Endpoint::Unknown => Done::Granted,
    };
    let answer = site
        .request_within(os_upgrade_kernel::Request::new(caller.actor, operation(claim)), BACKEND_TIMEOUT)
        .await;
    let answer = answer.map_err(|unavailable| refused(unavailable.into()))?;
    answer.map(|_| done).map_err(|refusal| {
        let error = LockError::from(refusal);
        let kept =
            (error.kind() == Kind::FailedLockSemaphoreFull).then(|| kept(&site.published().state, &group));
        refused(error.with_note(kept.flatten()))
    })
}

/// Whether the client holds the slot that it names.
fn is_held(state: &Site, Claim { group, id }: &Claim) -> bool {
    state.semaphores.get(group).is_some_and(|semaphore| semaphore.is_held_by_client(id))
}

/// That a host keeps a slot of `group` although its run has ended, if one does: then waiting may be in vain.
fn kept(state: &Site, group: &GroupName) -> Option<String> {
    let mut holders = state.semaphores.get(group)?.holders.keys();
    let host = holders.find(|id| HostName::new(id).is_ok_and(|host| state.keeps_slot(&host)))?;
    Some(format!("{host} did not succeed, and keeps its slot until an operator has looked after it"))
}

/// Turns a claim into the operation of an endpoint.
type ToOperation = fn(Claim) -> LockOperation;

/// Checks the head of a request. Returns the caller and the operation to request.
fn check_head(endpoint: Endpoint, head: &Parts) -> Result<(Caller, ToOperation), LockError> {
    let caller = match head.extensions.get() {
        Some(Identity(caller)) => caller.clone()?,
        None => return Err(Denied::Missing.into()),
    };
    let operation: ToOperation = match endpoint {
        Endpoint::Lock => |Claim { group, id }| LockOperation::Lock { group, id },
        Endpoint::Unlock => |Claim { group, id }| LockOperation::Unlock { group, id },
        Endpoint::Unknown => {
            let value = format!("nothing exists at {}", head.uri.path());
            return Err(LockError::new(Kind::NotFound, value));
        }
    };
    if head.method != Method::POST {
        return Err(LockError::new(Kind::MethodNotAllowed, "FleetLock requests use POST"));
    }
    if !has_protocol_header(&head.headers) {
        let value = format!("the header {PROTOCOL_HEADER} must be given once, with the value true");
        return Err(LockError::new(Kind::MissingFleetLockHeader, value));
    }
    Ok((caller, operation))
}

fn has_protocol_header(headers: &HeaderMap) -> bool {
    headers.get_all(PROTOCOL_HEADER).iter().eq(["true"])
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn panic_is_answered_in_the_dialect() {
        #[expect(clippy::panic, reason = "it is what is tested")]
        let response = reply(catch_panic(async { panic!("secret") }).await);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(body, r#"{"kind":"internal","value":"internal error; the log has its cause"}"#);
    }
}
