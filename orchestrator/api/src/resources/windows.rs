//! `/v1/state/os-upgrade/windows`: when the maintenance windows are open, by the current configuration.

use axum::extract::State;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::windows::{LIST, ListParameters, Occurrence as Times, Windows};
use os_upgrade_calendar::{Calendar, CalendarError, Occurrence};
use os_upgrade_kernel::denied;
use os_upgrade_kernel::start::calendar;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::routes::Routes;

/// Why no further occurrences are listed where there would be some without deny windows.
const DENIED: &str = "deny windows keep the maintenance windows closed that follow, for two years at least";
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
        let settings = &published.state.settings;
        let occurrences = calendar(&config, settings, &published.view.zones).occurrences(from).take(count);
        let denied = denied(&published.state, &published.view, Utc::now());
        let (windows, problem) = windows(occurrences);
        let listed_to = windows.last().map_or(from, |last: &Times| last.end.0);
        let is_all = problem.is_none() && windows.len() < count;
        let undenied =
            Calendar::new(&config.maintenance_windows, &[], settings.timezone, &published.view.zones);
        // One that had begun by then may have been cut short by a deny window: it says nothing about what follows.
        let follows =
            || undenied.occurrences(listed_to).map_while(Result::ok).any(|later| listed_to <= later.start);
        let are_denied = is_all && follows();
        let problem = problem.or_else(|| are_denied.then(|| DENIED.to_owned()));
        serde_json::to_vec(&Windows {
            windows,
            problem,
            denied_until: denied.map(|denied| Stamp(denied.end)),
            site_timezone: settings.timezone.name().into(),
        })
    })
    .await
}

/// The times, and why there are no further ones.
fn windows(
    occurrences: impl Iterator<Item = Result<Occurrence, CalendarError>>,
) -> (Vec<Times>, Option<String>) {
    let (mut windows, mut problem) = (Vec::new(), None);
    for occurrence in occurrences {
        match occurrence {
            Ok(Occurrence { start, end }) => windows.push(Times { start: Stamp(start), end: Stamp(end) }),
            Err(error) => problem = Some(error.to_string()),
        }
    }
    (windows, problem)
}
