//! `/v1/state/os-upgrade/windows`: when the maintenance windows are open, by the current configuration.

use axum::extract::State;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::windows::{LIST, ListParameters, Occurrence as Times, Windows};
use os_upgrade_kernel::forecast::calendar;
use os_upgrade_kernel::{CalendarError, Occurrence};

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::routes::Routes;

/// Occurrences in an answer without `count`.
const COUNT_DEFAULT: u32 = 10;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&LIST, list)
}

async fn list(State(api): State<Api>, Params(params): Params<ListParameters>) -> Result<Response, Problem> {
    let published = api.published()?;
    let config =
        published.state.config.clone().ok_or_else(|| Problem::not_found("there is no configuration"))?;
    let from = params.from.unwrap_or_else(Utc::now);
    let count = params.count.unwrap_or(COUNT_DEFAULT) as usize;
    let work = count.saturating_mul(config.maintenance_windows.len() + config.deny_windows.len());
    api.render(work, move || {
        let occurrences =
            calendar(&config, &published.state.settings, &published.view.zones).occurrences(from).take(count);
        serde_json::to_vec(&windows(occurrences))
    })
    .await
}

fn windows(occurrences: impl Iterator<Item = Result<Occurrence, CalendarError>>) -> Windows {
    let (mut windows, mut problem) = (Vec::new(), None);
    for occurrence in occurrences {
        match occurrence {
            Ok(Occurrence { start, end }) => windows.push(Times { start: Stamp(start), end: Stamp(end) }),
            Err(error) => problem = Some(error.to_string()),
        }
    }
    Windows { windows, problem }
}
