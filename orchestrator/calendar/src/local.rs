//! Local time in a zone: always computed from UTC to local time, which is never ambiguous.
//!
//! It relies on no zone changing its clocks twice within two days. [`super::Offsets`] refuses others, and
//! `tests/calendar/main.rs` checks what is compiled in.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};

use super::zones::Zone;

/// Offsets from UTC, and jumps of local time, are less than this.
const DAY: TimeDelta = TimeDelta::days(1);

/// The first instant after `from` at which `zone` has the offset it has at `to`, to the second.
fn change(zone: Zone<'_>, from: DateTime<Utc>, to: DateTime<Utc>) -> DateTime<Utc> {
    let after = zone.offset(to);
    let (mut low, mut high) = (0, (to - from).num_seconds());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if zone.offset(from + TimeDelta::seconds(middle)) == after {
            high = middle;
        } else {
            low = middle;
        }
    }
    from + TimeDelta::seconds(high)
}

/// The local time in `zone` at `at`.
pub(super) fn shown(zone: Zone<'_>, at: DateTime<Utc>) -> NaiveDateTime {
    at.naive_utc() + zone.offset(at)
}

/// The first instant at which the local time in `zone` is `local` or later: the first of two instants when it occurs
/// twice, the end of the gap when it is skipped. `local` is in whole seconds.
pub(super) fn first_shown(zone: Zone<'_>, local: NaiveDateTime) -> DateTime<Utc> {
    let (low, high) = (local.and_utc() - DAY, local.and_utc() + DAY);
    let (before, after) = (zone.offset(low), zone.offset(high));
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
pub(super) fn latest_shown(zone: Zone<'_>, at: DateTime<Utc>) -> NaiveDateTime {
    let at = DateTime::from_timestamp(at.timestamp(), 0).expect("earlier than another time");
    let before = zone.offset(at - DAY);
    let now = shown(zone, at);
    if before <= zone.offset(at) {
        return now;
    }
    now.max(change(zone, at - DAY, at).naive_utc() + before)
}

/// Whether `day` exists in `zone`: where the date line was moved, a day may have been skipped.
pub(super) fn has_day(zone: Zone<'_>, day: NaiveDate) -> bool {
    let first = first_shown(zone, day.and_time(NaiveTime::MIN));
    shown(zone, first).date() == day
}
