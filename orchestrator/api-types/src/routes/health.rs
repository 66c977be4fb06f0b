//! `/healthz` and `/readyz`, for supervisors and load balancers.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::route::{ANYBODY, Answer, Method, Route, Shape, Tag};
use crate::text::RoleWord;

/// 200 as long as the instance answers requests.
pub const HEALTHY: Route = Route::new(
    Method::Get,
    "/healthz",
    ANYBODY,
    Tag::Orchestrator,
    "read-health",
    "Check whether the orchestrator runs",
)
.answers(&[Answer::json("the orchestrator runs", Shape::of::<Health>(), || json!({"healthy": true}))]);

/// 200 once writes are accepted, by this instance or by the leader to which it forwards them; until then 503 with the
/// reason. Where an operator has to intervene, `error-info` has its `kind`: `data-lost`, `copied`, `other-version` or
/// `journal`.
pub const READY: Route = Route::new(
    Method::Get,
    "/readyz",
    ANYBODY,
    Tag::Orchestrator,
    "read-readiness",
    "Check whether the orchestrator accepts writes",
)
.answers(&[Answer::json(
    "it accepts writes, or forwards them to the leader",
    Shape::of::<Ready<'static>>(),
    || json!({"ready": true, "role": "leader", "leader": "orchestrator-1"}),
)]);

/// The orchestrator runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    pub healthy: bool,
}

/// The orchestrator accepts writes.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ready<'a> {
    pub ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RoleWord>)]
    pub role: Option<&'static str>,
    /// The instance that leads; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<&'a str>,
    /// Whether there are secrets to which this instance has no key, and which it does not need.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}
