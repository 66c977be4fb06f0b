//! FleetLock: slots for clients from outside, `POST /v1/pre-reboot` and `/v1/steady-state`, also under `/fleetlock`.
//!
//! Clients join these paths to their base URL with too few slashes or too many, so any number of them is taken, and
//! requests are told apart here, before the routes of the rest of the API. What is asked here is answered here,
//! whatever happens, in FleetLock's dialect: a 200 with a JSON object, or a `kind` ([`kind`]) and a `value`. Clients
//! take any 2xx for a grant and may follow redirects, so there is one answer that grants, and none that redirects. The
//! `Content-Type` is not looked at, nor is the query: real clients send none, or any.
//!
//! There is no limit on the request as a whole: its body and what is asked of the core have one each.

mod body;
mod kind;

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use os_upgrade_kernel::LockOperation;

pub(super) use self::kind::Kind;
use self::kind::LockError;
use super::authority::{self, Identity};
use super::metrics::Answers;
use super::panic_text;
use crate::auth::{Caller, Denied, Gate};
use crate::fleetlock::request::Claim;
use crate::site::SiteHandle;

/// It shows that the request is meant for a FleetLock server, and has not come here by a redirect.
const PROTOCOL_HEADER: &str = "fleet-lock-protocol";

/// How long the core may take: clients are to hear within 3 s that nobody knows.
const BACKEND_TIMEOUT: Duration = Duration::from_millis(2_500);

/// What a path asks for.
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

    /// What `path` asks of FleetLock, if anything.
    fn of(path: &str) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty()).peekable();
        let below = segments.next_if_eq(&"fleetlock").is_some();
        match [segments.next(), segments.next(), segments.next()] {
            [Some("v1"), Some("pre-reboot"), None] => Some(Self::Lock),
            [Some("v1"), Some("steady-state"), None] => Some(Self::Unlock),
            _ => below.then_some(Self::Nothing),
        }
    }
}

/// What is at hand here.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    /// Who is asked.
    pub(super) site: SiteHandle,
    /// What was answered is counted here.
    pub(super) answers: Answers,
    /// Who was not let in is noted here.
    pub(super) gate: Gate,
}

/// Whether it is FleetLock that a request asks.
pub(super) fn is_asked(request: &Request) -> bool {
    Endpoint::of(request.uri().path()).is_some()
}

/// Answers what is asked of FleetLock; everything else goes on.
pub(super) async fn edge(State(edge): State<Edge>, request: Request, next: Next) -> Response {
    match Endpoint::of(request.uri().path()) {
        Some(endpoint) => {
            let peer = authority::peer(&request);
            let answer = caught(answer(&edge.site, endpoint, request)).await;
            if let Some(reason) = answer.as_ref().err().and_then(LockError::denial) {
                edge.gate.denials().note(reason, peer, Instant::now());
            }
            let kind = answer.as_ref().map_or_else(|error| error.kind().as_str(), |()| "granted");
            edge.answers.get_or_create(&[("operation", endpoint.operation()), ("kind", kind)]).inc();
            reply(answer)
        }
        None => next.run(request).await,
    }
}

/// `kind` in FleetLock's dialect, if `path` asks for something of FleetLock.
pub(super) fn refuse(path: &str, kind: Kind, value: &str) -> Option<Response> {
    Endpoint::of(path).map(|_| LockError::new(kind, value).into_response())
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

    #[test]
    fn paths() {
        for base in ["", "/", "//", "/fleetlock", "/fleetlock/", "//fleetlock//"] {
            for (path, expected) in [
                ("/v1/pre-reboot", Endpoint::Lock),
                ("/v1/pre-reboot/", Endpoint::Lock),
                ("/v1//steady-state//", Endpoint::Unlock),
            ] {
                assert_eq!(Endpoint::of(&format!("{base}{path}")), Some(expected), "{base}{path}");
            }
        }
        for path in [
            "/fleetlock",
            "/fleetlock/",
            "/fleetlock/v1",
            "/fleetlock/v1/pre-reboot/x",
            "/fleetlock/fleetlock/v1/pre-reboot",
        ] {
            assert_eq!(Endpoint::of(path), Some(Endpoint::Nothing), "{path}");
        }
        for path in [
            "",
            "*",
            "/",
            "/v1",
            "/v1/pre-reboot/x",
            "/v1/state/fleet-lock",
            "/V1/pre-reboot",
            "/x/v1/pre-reboot",
            "/fleetlocks/v1/pre-reboot",
        ] {
            assert_eq!(Endpoint::of(path), None, "{path}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_in_the_dialect() {
        #[expect(clippy::panic, reason = "it is what is tested")]
        let response = reply(caught(async { panic!("secret") }).await);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(body, r#"{"kind":"internal","value":"internal error; the log has its cause"}"#);
    }
}
