//! By which time zone data this machine works out maintenance windows.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::OldZones;
use os_upgrade_zones::{ZoneData, ZoneDataProblem};

use super::check::Check;

const NAME: &str = "time zone data";

pub(super) fn examine(data: ZoneData, now: DateTime<Utc>) -> Check {
    let found = data.to_string();
    match (data.problem, data.zones.old(now)) {
        // It is in what was found.
        (None, Some(old @ OldZones::OlderThanBuiltIn { .. })) => Check::warning(NAME, found, old.advice()),
        (None, None) => Check::ok(NAME, found),
        (None, Some(old)) => Check::warning(NAME, format!("{found}; {old}"), old.advice()),
        (Some(problem), None) => Check::warning(NAME, format!("{found}; {problem}"), ZoneDataProblem::ADVICE),
        // An update brings the names that are missing, too.
        (Some(problem), Some(old)) => {
            Check::warning(NAME, format!("{found}; {old}; {problem}"), old.advice())
        }
    }
}
