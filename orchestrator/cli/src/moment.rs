//! Moments, as operators write them.

use chrono::{DateTime, Datelike as _, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc, Weekday};
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
    let today = today(zone, now);
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

/// How operators write a moment to come.
const FUTURE_MOMENTS: &str = "2h or 3d (from now), 21:02, tomorrow, Friday, 2026-11-21 or 2026-11-21T01:00:00Z; a day means its beginning";

/// The moment to come that `text` means where clocks show the time of `zone`: see [`FUTURE_MOMENTS`]. A time of day or a day of the week
/// is the next one. Whether a date has passed is for the caller to judge.
///
/// # Errors
/// It means none.
pub(crate) fn future(zone: Zone, text: &str) -> Result<DateTime<Utc>, String> {
    future_at(zone, text, Utc::now())
        .ok_or_else(|| format!("{text:?} is no time to come: write {FUTURE_MOMENTS}"))
}

fn future_at(zone: Zone, text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return local(zone, day.and_time(NaiveTime::MIN));
    }
    if let Ok(after) = text.parse::<Duration>() {
        return now.checked_add_signed(after.to_delta());
    }
    let mut days = today(zone, now).iter_days();
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
        return days.take(2).filter_map(|day| local(zone, day.and_time(time))).find(|at| *at > now);
    }
    days.next();
    let weekday = text.parse::<Weekday>().ok();
    let is_it = |day: &NaiveDate| text == "tomorrow" || weekday == Some(day.weekday());
    let day = days.take(7).find(is_it)?;
    local(zone, day.and_time(NaiveTime::MIN))
}

fn today(zone: Zone, now: DateTime<Utc>) -> NaiveDate {
    match zone {
        Zone::Local => now.with_timezone(&Local).date_naive(),
        Zone::Utc => now.date_naive(),
    }
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

    #[test]
    fn moments_to_come_are_ahead() {
        // A Saturday.
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-12-27", "2026-12-27T00:00:00Z"),
            ("2026-11-22T02:00:00+01:00", "2026-11-22T01:00:00Z"),
            ("tomorrow", "2026-11-22T00:00:00Z"),
            ("Friday", "2026-11-27T00:00:00Z"),
            ("sat", "2026-11-28T00:00:00Z"),
            ("21:02", "2026-11-21T21:02:00Z"),
            ("12:00", "2026-11-22T12:00:00Z"),
            ("90m", "2026-11-21T13:30:00Z"),
        ] {
            let found = future_at(Zone::Utc, text, now).map(|time| Zone::Utc.show(time));
            assert_eq!(found.as_deref(), Some(expected), "{text}");
        }
        for wrong in ["", "yesterday", "2h ago", "25:00", "-2h", "292000000000y"] {
            let refused = future(Zone::Utc, wrong).unwrap_err();
            assert!(refused.contains("is no time to come: write 2h"), "{refused}");
        }
    }
}
