//! `/healthz` and `/readyz`, for whatever starts and watches the orchestrator.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::route::{ANYBODY, Answer, Method, Route, Shape, Tag};
use crate::text::RoleWord;

/// 200 as long as requests are answered at all.
pub const HEALTHY: Route = Route::new(
    Method::Get,
    "/healthz",
    ANYBODY,
    Tag::Orchestrator,
    "read-health",
    "Ask whether the orchestrator runs",
)
.answers(&[Answer::json("it does", Shape::of::<Health>(), || json!({"healthy": true}))]);

/// 200 once a write can be taken, by this instance or by the leader to which it passes it on; until then 503 with the
/// reason.
pub const READY: Route = Route::new(
    Method::Get,
    "/readyz",
    ANYBODY,
    Tag::Orchestrator,
    "read-readiness",
    "Ask whether the orchestrator can take a write",
)
.answers(&[Answer::json(
    "it can, or passes it on to the leader",
    Shape::of::<Ready<'static>>(),
    || json!({"ready": true, "role": "leader", "leader": "orchestrator-1"}),
)]);

/// That it runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    pub healthy: bool,
}

/// That it can take a write, and who leads, if anybody does.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ready<'a> {
    pub ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RoleWord>)]
    pub role: Option<&'static str>,
    /// The instance that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<&'a str>,
    /// There are secrets that this instance has no key to, and it does without.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}
