//! What a zone's clocks show, and when: always worked out from UTC to local time, which is never ambiguous.
//!
//! It relies on no zone changing its clocks twice within two days, which a test holds the database to (`tests/windows.rs`).

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// Local time differs from UTC, and jumps, by less than this.
const DAY: TimeDelta = TimeDelta::days(1);

fn offset(zone: Tz, at: DateTime<Utc>) -> TimeDelta {
    let seconds = zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc();
    TimeDelta::seconds(i64::from(seconds))
}

/// The first instant after `from` at which `zone` has the offset it has at `to`, to the second.
fn change(zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> DateTime<Utc> {
    let after = offset(zone, to);
    let (mut low, mut high) = (0, (to - from).num_seconds());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset(zone, from + TimeDelta::seconds(middle)) == after {
            high = middle;
        } else {
            low = middle;
        }
    }
    from + TimeDelta::seconds(high)
}

/// What clocks in `zone` show at `at`.
pub(super) fn shown(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    at.naive_utc() + offset(zone, at)
}

/// The first instant at which clocks in `zone` show `local` or later: the first of two, and the end of a gap.
/// `local` has no fraction of a second.
pub(super) fn first_shown(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let (low, high) = (local.and_utc() - DAY, local.and_utc() + DAY);
    let (before, after) = (offset(zone, low), offset(zone, high));
    if before == after {
        return local.and_utc() - before;
    }
    let change = change(zone, low, high);
    if local.and_utc() - before < change {
        local.and_utc() - before
    } else {
        change.max(local.and_utc() - after)
    }
}

/// The latest that clocks in `zone` have shown up to `at`, or what they would have shown next: more than they show
/// at `at` when they were put back shortly before. Fractions of a second are left out.
pub(super) fn latest_shown(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    let at = DateTime::from_timestamp(at.timestamp(), 0).expect("earlier than another time");
    let before = offset(zone, at - DAY);
    let now = shown(zone, at);
    if before <= offset(zone, at) {
        return now;
    }
    now.max(change(zone, at - DAY, at).naive_utc() + before)
}

/// Whether clocks in `zone` show `day` at all: where the date line was moved, a day may have been left out.
pub(super) fn has_day(zone: Tz, day: NaiveDate) -> bool {
    let first = first_shown(zone, day.and_time(NaiveTime::MIN));
    shown(zone, first).date() == day
}
