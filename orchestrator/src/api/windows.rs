//! `/v1/state/os-upgrade/windows`: when the maintenance windows are open, as configured now.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::forecast::calendar;
use os_upgrade_kernel::{CalendarError, Occurrence};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Parameters, Params};
use super::listing;
use super::openapi::tag;
use super::reply::Stamp;

/// Occurrences in an answer, when nothing is asked for, and at most.
const COUNT_DEFAULT: u32 = 10;
const COUNT_MAX: u32 = 1_000;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(list))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListParameters {
    /// How many at most; 10 unless given.
    #[param(minimum = 1, maximum = 1_000)]
    #[serde(default, deserialize_with = "listing::limit::<_, COUNT_MAX>")]
    count: Option<u32>,
    /// From when on, RFC 3339; from now on unless given.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<Stamp>)]
    from: Option<DateTime<Utc>>,
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

/// 200 with what there is of them, which may be fewer, or none; 404 without a configuration.
#[utoipa::path(
    get, path = "/v1/state/os-upgrade/windows", operation_id = "list-windows", tag = tag::UPGRADES,
    summary = "List when the maintenance windows are open",
    description = "Windows that overlap are one, and deny windows are cut out. One that is open at `from` is the first.",
    params(ListParameters),
    responses(
        (status = 200, description = "times in order", body = WindowList),
        (status = 404, description = "there is no configuration"),
    )
)]
async fn list(State(api): State<Api>, Params(params): Params<ListParameters>) -> Result<Response, Problem> {
    let present = api.present()?;
    let config =
        present.state.config.clone().ok_or_else(|| Problem::not_found("there is no configuration"))?;
    let from = params.from.unwrap_or_else(Utc::now);
    let count = params.count.unwrap_or(COUNT_DEFAULT) as usize;
    let work = count.saturating_mul(config.maintenance_windows.len() + config.deny_windows.len());
    api.render(work, move || {
        let occurrences = calendar(&config, &present.state.settings).occurrences(from).take(count);
        serde_json::to_vec(&WindowList::of(occurrences))
    })
    .await
}

#[derive(Serialize, ToSchema)]
#[schema(as = Windows)]
struct WindowList {
    windows: Vec<Times>,
    /// Why there are no more: when the windows open after that cannot be worked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl WindowList {
    fn of(occurrences: impl Iterator<Item = Result<Occurrence, CalendarError>>) -> Self {
        let (mut windows, mut problem) = (Vec::new(), None);
        for occurrence in occurrences {
            match occurrence {
                Ok(occurrence) => windows.push(Times::of(occurrence)),
                Err(error) => problem = Some(error.to_string()),
            }
        }
        Self { windows, problem }
    }
}

/// A time in which upgrades may run.
#[derive(Serialize, ToSchema)]
#[schema(as = Occurrence)]
struct Times {
    start: Stamp,
    /// The first instant after it.
    end: Stamp,
}

impl Times {
    fn of(Occurrence { start, end }: Occurrence) -> Self {
        Self { start: Stamp(start), end: Stamp(end) }
    }
}
