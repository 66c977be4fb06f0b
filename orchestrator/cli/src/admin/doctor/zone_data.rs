//! By which time zone data this machine works out maintenance windows.

use chrono::{DateTime, Utc};
use os_upgrade_zones::{ZoneData, ZoneDataProblem};

use super::check::Check;

const NAME: &str = "time zone data";

pub(super) fn examine(data: ZoneData, now: DateTime<Utc>) -> Check {
    let found = data.to_string();
    if let Some(problem) = data.problem {
        return Check::warning(NAME, format!("{found}; {problem}"), ZoneDataProblem::ADVICE);
    }
    match data.zones.old(now) {
        Some(old) => Check::warning(NAME, format!("{found}; {old}"), old.advice()),
        None => Check::ok(NAME, found),
    }
}
