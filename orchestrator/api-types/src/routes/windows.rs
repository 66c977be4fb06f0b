//! `/v1/state/os-upgrade/windows`: when the maintenance windows are open.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::body::Stamp;
use crate::query::{self, Parameters};
use crate::route::{Answer, Method, Route, Shape, Tag, VIEWER};

/// Most occurrences in an answer.
pub const COUNT_MAX: u32 = 1_000;

/// The occurrences from now on, or from another time. There may be fewer than requested; 404 without a configuration.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/windows",
    VIEWER,
    Tag::Upgrades,
    "list-windows",
    "List when the maintenance windows are open",
)
.description(
    "Overlapping windows are merged, and deny windows are cut out. A window that is open at `from` is listed first.",
)
.query::<ListParameters>()
.answers(&[
    Answer::json("the times, in order", Shape::of::<Windows>(), || {
        json!({"windows": [
            {"start": "2026-11-27T01:00:00Z", "end": "2026-11-27T05:00:00Z"},
            {"start": "2026-11-28T01:00:00Z", "end": "2026-11-28T05:00:00Z"},
        ], "site-timezone": "Europe/Berlin"})
    }),
    Answer::new(404, "there is no configuration"),
]);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// The maximum number of times; the default is 10.
    #[param(minimum = 1, maximum = 1_000)]
    #[serde(default, deserialize_with = "query::limit::<_, COUNT_MAX>")]
    pub count: Option<u32>,
    /// The time to start from, RFC 3339; the default is now.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<Stamp>)]
    pub from: Option<DateTime<Utc>>,
}

impl Parameters for ListParameters {
    const NAMES: &'static [&'static str] = &["count", "from"];
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = DateTime::parse_from_rfc3339(&text).map_err(|error| {
        let wanted = "expected RFC 3339, such as 2026-11-21T01:00:00Z; a + is written %2B in a query";
        de::Error::custom(format!("from: {text:?} is not a time ({error}); {wanted}"))
    })?;
    Ok(Some(time.to_utc()))
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Windows {
    pub windows: Vec<Occurrence>,
    /// Why no further times are listed: they cannot be determined, or deny windows keep the maintenance windows closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When the deny window ends that is in force now and keeps runs from starting automatically, or the last of those that follow it
    /// without a gap, which are followed for two years, and 4 096 of them at most; absent if none is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_until: Option<Stamp>,
    /// The time zone of windows that name none: the site's.
    #[serde(default)]
    #[schema(required)]
    pub site_timezone: Cow<'static, str>,
}

/// A time in which upgrades may run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    pub start: Stamp,
    /// The first instant after the time.
    pub end: Stamp,
}
