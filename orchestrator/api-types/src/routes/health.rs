//! `/healthz` and `/readyz`, for supervisors and load balancers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
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
/// reason. Where an operator has to intervene, `error-info` has its `kind`: `data-lost`, `copied`, `other-version`,
/// `stray-message` or `journal`.
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
    || {
        json!({
            "ready": true, "role": "leader", "leader": "orchestrator-1",
            "zone-data": {"version": "2026f", "source": "system"},
        })
    },
)]);

/// The orchestrator runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    pub healthy: bool,
}

/// The orchestrator accepts writes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Ready<'a> {
    pub ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RoleWord>)]
    pub role: Option<Cow<'static, str>>,
    /// The instance that leads; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<Cow<'a, str>>,
    /// Whether there are secrets to which this instance has no key, and which it does not need.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub sealed: bool,
    /// How many messages of the journal the history of this instance is behind; absent if none. What was decided last is not in
    /// lists of runs and in events yet.
    #[serde(rename = "history-behind", skip_serializing_if = "Option::is_none")]
    pub history_behind: Option<u64>,
    /// The setting of a NATS stream that somebody has changed, and what it must be; absent if all are as they must be.
    #[serde(rename = "changed-setting", skip_serializing_if = "Option::is_none")]
    pub changed_setting: Option<Cow<'a, str>>,
    /// The time zone data by which this instance works out windows while it leads.
    #[serde(rename = "zone-data", default)]
    #[schema(required)]
    pub zone_data: ZoneData<'a>,
}

/// Time zone data of the IANA database.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ZoneData<'a> {
    /// The release, such as `2026f`; absent if the system does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Cow<'a, str>>,
    /// `system`, or `built-in` where the system has none.
    pub source: Cow<'static, str>,
    /// Why they should be replaced by newer ones; absent if they need not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
}
