//! The occurrences of one window, one after the other.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::definition::{DstPolicy, Occurrence, Starts, Window};
use super::local::{first_shown, has_day, latest_shown, shown};
use super::zones::{Zone, Zones};

/// The first and the last day on which a window may start.
const FIRST_DAY: NaiveDate = NaiveDate::from_ymd_opt(1970, 1, 1).expect("a day");
const LAST_DAY: NaiveDate = NaiveDate::from_ymd_opt(9999, 12, 31).expect("a day");

/// Times before and after all occurrences of all windows.
pub(super) const BEFORE_ALL: DateTime<Utc> =
    NaiveDate::from_ymd_opt(1969, 1, 1).expect("a day").and_time(NaiveTime::MIN).and_utc();
pub(super) const AFTER_ALL: DateTime<Utc> =
    NaiveDate::from_ymd_opt(10_002, 1, 1).expect("a day").and_time(NaiveTime::MIN).and_utc();

const SECOND: TimeDelta = TimeDelta::seconds(1);
const DAY: TimeDelta = TimeDelta::days(1);

/// The occurrences of one window from some time on. Both starts and ends are in order; several may start together, at the
/// end of a gap in local time.
#[derive(Debug, Clone)]
pub(super) struct Series<'a> {
    window: &'a Window,
    zone: Zone<'a>,
    /// The next occurrence starts at this local time or later.
    from: NaiveDateTime,
    /// Occurrences before the first one start before this local time.
    first: NaiveDateTime,
}

/// The occurrences of one window before some time, the last first. Both starts and ends are in order.
#[derive(Debug, Clone)]
pub(super) struct PastSeries<'a> {
    series: Series<'a>,
}

impl<'a> Series<'a> {
    /// The first occurrence of `window` that ends after `at`, and the series of those after it, at a site in the timezone
    /// `site`. `at` is between [`BEFORE_ALL`] and [`AFTER_ALL`].
    pub(super) fn ending_after(
        window: &'a Window,
        site: Tz,
        zones: &'a Zones,
        at: DateTime<Utc>,
    ) -> (Option<Occurrence>, Self) {
        let zone = zones.zone(window.timezone.unwrap_or_default().zone(site));
        let duration = window.duration.to_delta();
        // May include an occurrence that ends exactly at `at`; it is skipped below.
        let from = match window.dst.unwrap_or_default() {
            DstPolicy::Elapsed => latest_shown(zone, at - duration),
            DstPolicy::WallClock => latest_shown(zone, at) - duration,
        };
        let mut series = Self { window, zone, from, first: from };
        let first = series.find(|occurrence| occurrence.end > at);
        series.first = if first.is_some() { series.from - SECOND } else { series.from };
        (first, series)
    }

    /// The occurrences before the first one, the last first.
    pub(super) fn passed(&self) -> PastSeries<'a> {
        PastSeries { series: Self { from: self.first, ..*self } }
    }

    fn occurrence(&self, local: NaiveDateTime) -> Option<Occurrence> {
        let start = first_shown(self.zone, local);
        if shown(self.zone, start) != local && !has_day(self.zone, local.date()) {
            return None;
        }
        let duration = self.window.duration.to_delta();
        let end = match self.window.dst.unwrap_or_default() {
            DstPolicy::Elapsed => start + duration,
            DstPolicy::WallClock => first_shown(self.zone, local + duration),
        };
        // All of it may lie in a gap of local time.
        (start < end).then_some(Occurrence { start, end })
    }
}

impl Iterator for Series<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        loop {
            let local = self.window.next_start(self.from)?;
            self.from = local + SECOND;
            if let Some(occurrence) = self.occurrence(local) {
                return Some(occurrence);
            }
        }
    }
}

impl Iterator for PastSeries<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        loop {
            self.series.from = self.series.window.previous_start(self.series.from)?;
            if let Some(occurrence) = self.series.occurrence(self.series.from) {
                return Some(occurrence);
            }
        }
    }
}

impl Window {
    /// The first and the last day on which the window may start.
    fn days(&self) -> (NaiveDate, NaiveDate) {
        let first = self.not_before.map_or(FIRST_DAY, |date| date.day().max(FIRST_DAY));
        let last = self.not_after.map_or(LAST_DAY, |date| date.day().min(LAST_DAY));
        (first, last)
    }

    /// The local time of the last start before `before`.
    pub(super) fn previous_start(&self, before: NaiveDateTime) -> Option<NaiveDateTime> {
        let (first, last) = self.days();
        let before = before.min(last.and_time(NaiveTime::MIN) + DAY);
        let start = match &self.starts {
            Starts::Cron(cron) => cron.previous(before),
            Starts::Weekly { days, time } => {
                let to_come = u64::from(time.time() >= before.time());
                (to_come..to_come + 7)
                    .filter_map(|back| before.date().checked_sub_days(Days::new(back)))
                    .find(|day| days.contains(day.weekday()))
                    .map(|day| day.and_time(time.time()))
            }
        };
        start.filter(|start| start.date() >= first)
    }

    /// The local time of the first start at or after `from`.
    pub(super) fn next_start(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let (first, last) = self.days();
        let from = from.max(first.and_time(NaiveTime::MIN));
        let start = match &self.starts {
            Starts::Cron(cron) => cron.next(from),
            Starts::Weekly { days, time } => {
                let passed = u64::from(time.time() < from.time());
                (passed..passed + 7)
                    .filter_map(|ahead| from.date().checked_add_days(Days::new(ahead)))
                    .find(|day| days.contains(day.weekday()))
                    .map(|day| day.and_time(time.time()))
            }
        };
        start.filter(|start| start.date() <= last)
    }
}
