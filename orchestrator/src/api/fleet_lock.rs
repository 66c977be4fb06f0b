//! FleetLock: slots for clients from outside, `POST /v1/pre-reboot` and `/v1/steady-state`, also under `/fleetlock`.
//!
//! Errors are in FleetLock's dialect, `{"kind":"...","value":"..."}`, not in the rest of the API's. Clients take any
//! 2xx for a grant and may follow redirects, so there is one answer that grants, a 200 with a JSON object, and none
//! that redirects. The `Content-Type` is not looked at, nor is the query: real clients send none, or any.

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use os_upgrade_kernel as kernel;
use os_upgrade_kernel::Refusal;
use os_upgrade_kernel::semaphore::DeniedKind;
use serde_json::json;

use super::Api;
use super::error::Cause;
use super::extract::BODY_TIMEOUT;
use crate::fleetlock::request::{Claim, ClaimError, REQUEST_BYTES_MAX};
use crate::site::Unavailable;

/// It shows that the request is meant for a FleetLock server, and has not come here by a redirect.
const PROTOCOL_HEADER: &str = "fleet-lock-protocol";

pub(super) fn routes() -> Router<Api> {
    let endpoint = |method: MethodRouter<Api>| method.fallback(method_not_allowed);
    let router = ["", "/fleetlock"].into_iter().fold(Router::new(), |router, base| {
        router
            .route(&format!("{base}/v1/pre-reboot"), endpoint(post(lock)))
            .route(&format!("{base}/v1/steady-state"), endpoint(post(unlock)))
    });
    router.layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
}

/// 200 once it is durable that the client holds a slot.
async fn lock(State(api): State<Api>, Asked(Claim { group, id }): Asked) -> Result<Response, LockError> {
    ask(&api, kernel::Request::Lock { group, id }).await
}

/// 200 once it is durable that the client holds none.
async fn unlock(State(api): State<Api>, Asked(Claim { group, id }): Asked) -> Result<Response, LockError> {
    ask(&api, kernel::Request::Unlock { group, id }).await
}

async fn ask(api: &Api, request: kernel::Request) -> Result<Response, LockError> {
    let _accepted = api.site.request(request).await??;
    Ok(Json(json!({})).into_response())
}

async fn method_not_allowed() -> Response {
    let error = LockError::new(Kind::MethodNotAllowed, "FleetLock requests are POSTed");
    ([(ALLOW, "POST")], error).into_response()
}

/// A request that says who asks.
struct Asked(Claim);

impl<S: Send + Sync> FromRequest<S> for Asked {
    type Rejection = LockError;

    async fn from_request(request: Request, state: &S) -> Result<Self, LockError> {
        if !is_meant(request.headers()) {
            let value = format!("the header {PROTOCOL_HEADER}: true is missing");
            return Err(LockError::new(Kind::MissingFleetLockHeader, value));
        }
        let body = match tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await {
            Ok(Ok(body)) => body,
            Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                return Err(ClaimError::TooLarge.into());
            }
            Ok(Err(rejection)) => return Err(LockError::new(Kind::InvalidBody, rejection.body_text())),
            Err(_) => return Err(LockError::new(Kind::BodyTimeout, "the body did not arrive in time")),
        };
        Ok(Self(Claim::parse(&body)?))
    }
}

fn is_meant(headers: &HeaderMap) -> bool {
    headers.get_all(PROTOCOL_HEADER).iter().eq(["true"])
}

/// Every `kind` that a client can be answered: a small fixed set, as FleetLock asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    MissingFleetLockHeader,
    InvalidBody,
    InvalidId,
    InvalidGroup,
    BodyTooLarge,
    BodyTimeout,
    MethodNotAllowed,
    Denied(DeniedKind),
    BackendUnavailable,
    Internal,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::MissingFleetLockHeader => "missing_fleet_lock_header",
            Self::InvalidBody => "invalid_body",
            Self::InvalidId => "invalid_id",
            Self::InvalidGroup => "invalid_group",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Denied(kind) => kind.as_str(),
            Self::BackendUnavailable => "backend_unavailable",
            Self::Internal => "internal",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::MissingFleetLockHeader
            | Self::InvalidBody
            | Self::InvalidId
            | Self::InvalidGroup
            | Self::Denied(DeniedKind::UnknownGroup) => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Denied(DeniedKind::FailedLockSemaphoreFull | DeniedKind::OtherLockServer) => {
                StatusCode::CONFLICT
            }
            Self::BackendUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An error as FleetLock has it.
#[derive(Debug)]
struct LockError {
    kind: Kind,
    value: String,
}

impl LockError {
    fn new(kind: Kind, value: impl Into<String>) -> Self {
        Self { kind, value: value.into() }
    }
}

impl IntoResponse for LockError {
    fn into_response(self) -> Response {
        let body = json!({ "kind": self.kind.as_str(), "value": self.value });
        let mut response = (self.kind.status(), Json(body)).into_response();
        response.extensions_mut().insert(Cause(self.value));
        response
    }
}

impl From<ClaimError> for LockError {
    fn from(error: ClaimError) -> Self {
        let kind = match &error {
            ClaimError::TooLarge => Kind::BodyTooLarge,
            ClaimError::Body(_) => Kind::InvalidBody,
            ClaimError::Id(_) => Kind::InvalidId,
            ClaimError::Group(_) => Kind::InvalidGroup,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<Unavailable> for LockError {
    fn from(unavailable: Unavailable) -> Self {
        Self::new(Kind::BackendUnavailable, unavailable.reason)
    }
}

impl From<Refusal> for LockError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::LockDenied { lock_kind, value } => Self::new(Kind::Denied(lock_kind), value),
            // Refusals of what operators ask for; a client does not get to see them.
            Refusal::InvalidConfig { .. }
            | Refusal::TimeoutTooShort
            | Refusal::NoConfiguration
            | Refusal::NoHosts { .. }
            | Refusal::RunActive { .. }
            | Refusal::NoRun
            | Refusal::NoHolder { .. }
            | Refusal::HolderAtWork { .. }
            | Refusal::HolderUncertain { .. }
            | Refusal::ReclaimsNothing
            | Refusal::InInventory { .. }
            | Refusal::ClockSkew { .. } => Self::new(Kind::Internal, refusal.to_string()),
        }
    }
}
