//! Moments, as operators write them.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_console::Zone;

/// How operators write a moment.
const MOMENTS: &str = "today, yesterday, 2h or 3d (ago), 21:02 (today), 2026-11-21 or 2026-11-21T01:00:00Z";

/// The moment that `text` means where clocks show the time of `zone`: see [`MOMENTS`].
///
/// # Errors
/// It means none.
pub(crate) fn moment(zone: Zone, text: &str) -> Result<DateTime<Utc>, String> {
    moment_at(zone, text, Utc::now()).ok_or_else(|| format!("{text:?} is no time: write {MOMENTS}"))
}

fn moment_at(zone: Zone, text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let today = match zone {
        Zone::Local => now.with_timezone(&Local).date_naive(),
        Zone::Utc => now.date_naive(),
    };
    match text {
        "now" => return Some(now),
        "today" => return local(zone, today.and_time(NaiveTime::MIN)),
        "yesterday" => return local(zone, today.pred_opt()?.and_time(NaiveTime::MIN)),
        _ => {}
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return local(zone, day.and_time(NaiveTime::MIN));
    }
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
        return local(zone, today.and_time(time));
    }
    let ago: Duration = text.strip_suffix(" ago").unwrap_or(text).parse().ok()?;
    now.checked_sub_signed(ago.to_delta())
}

/// The moment at which clocks of the zone show `time`. Where they skip it, the first full hour after it.
fn local(zone: Zone, time: NaiveDateTime) -> Option<DateTime<Utc>> {
    match zone {
        Zone::Local => (0..24)
            .find_map(|hour| (time + TimeDelta::hours(hour)).and_local_timezone(Local).earliest())
            .map(|time| time.to_utc()),
        Zone::Utc => Some(time.and_utc()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_moments() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-21", "2026-11-21T00:00:00Z"),
            ("2026-11-21T02:00:00+01:00", "2026-11-21T01:00:00Z"),
            ("now", "2026-11-21T12:00:00Z"),
            ("today", "2026-11-21T00:00:00Z"),
            ("yesterday", "2026-11-20T00:00:00Z"),
            ("21:02", "2026-11-21T21:02:00Z"),
            ("2h", "2026-11-21T10:00:00Z"),
            ("3d ago", "2026-11-18T12:00:00Z"),
        ] {
            assert_eq!(
                moment_at(Zone::Utc, text, now).map(|time| Zone::Utc.show(time)).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for wrong in ["", "soon", "2026-13-01", "25:00", "-2h"] {
            let refused = moment(Zone::Utc, wrong).unwrap_err();
            assert!(refused.contains("is no time: write today"), "{refused}");
        }
    }
}
