//! `/v1/state/os-upgrade/pause` and `/resume`: nothing further begins on the site, or again. Extensions of the specification.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::body::Stamp;
use crate::query::Validate;
use crate::route::{Answer, Method, OPERATOR, Route, Tag};
use crate::text::AuditReasonText;

/// 204 once it is durable that nothing further begins: no run, no host of the active one, no reboot. What is under way is finished.
pub const PAUSE: Route<Pause> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/pause",
    OPERATOR,
    Tag::Upgrades,
    "pause-site",
    "Begin nothing further on this site: no run, no host of the active run, and no reboot",
)
.body::<Pause>(|| json!({"reason": "the fair is on", "until": "2026-11-23T07:00:00Z"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the site is paused, or would be"),
    Answer::new(409, "the end of the pause has passed"),
]);

/// 204 once it is durable that the site is not paused, also if it was not before.
pub const RESUME: Route<Resume> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/resume",
    OPERATOR,
    Tag::Upgrades,
    "resume-site",
    "End the pause of this site",
)
.optional_body::<Resume>(|| json!({"reason": "the fair is over"}))
.query::<Validate>()
.answers(&[Answer::new(204, "the site is not paused, or would not be")]);

/// A pause.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Why, for the history.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
    /// When it ends by itself, in the future; absent: when somebody resumes the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
}

/// The end of a pause.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}
