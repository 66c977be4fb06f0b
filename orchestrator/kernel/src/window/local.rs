//! Local time in a zone: always computed from UTC to local time, which is never ambiguous.
//!
//! It relies on no zone changing its clocks twice within two days; `tests/kernel/windows.rs` checks the database for this.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// Offsets from UTC, and jumps of local time, are less than this.
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

/// The local time in `zone` at `at`.
pub(super) fn shown(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    at.naive_utc() + offset(zone, at)
}

/// The first instant at which the local time in `zone` is `local` or later: the first of two instants when it occurs
/// twice, the end of the gap when it is skipped. `local` is in whole seconds.
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

/// The latest local time that clocks in `zone` have reached up to `at`: later than the local time at `at` when clocks were
/// put back shortly before. In whole seconds.
pub(super) fn latest_shown(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    let at = DateTime::from_timestamp(at.timestamp(), 0).expect("earlier than another time");
    let before = offset(zone, at - DAY);
    let now = shown(zone, at);
    if before <= offset(zone, at) {
        return now;
    }
    now.max(change(zone, at - DAY, at).naive_utc() + before)
}

/// Whether `day` exists in `zone`: where the date line was moved, a day may have been skipped.
pub(super) fn has_day(zone: Tz, day: NaiveDate) -> bool {
    let first = first_shown(zone, day.and_time(NaiveTime::MIN));
    shown(zone, first).date() == day
}
