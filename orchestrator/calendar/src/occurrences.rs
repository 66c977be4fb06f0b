//! The calendar: the occurrences of all windows of a site together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::definition::{Occurrence, SPAN_MAX, Window};
use super::one_window::{AFTER_ALL, BEFORE_ALL, PastSeries, Series};
use super::zones::Zones;

/// Most occurrences of single windows examined between one occurrence of the calendar and the next.
const STEPS_MAX: u32 = 100_000;

/// The cost of seeking to a time in one window, in occurrences examined.
const SEEK_STEPS: usize = 5;

/// How far ahead of the present windows are checked, and how far after a later `not-before`.
const CHECK_SPAN: TimeDelta = TimeDelta::days(5 * 366);
const CHECK_SPAN_LATER: TimeDelta = TimeDelta::days(15);

/// The search ends when everything is denied for longer than this.
pub const DENIED_MAX: TimeDelta = TimeDelta::days(2 * 366);

/// Deny windows that are behind by more than this are skipped with a seek instead of one by one.
const BEHIND_MAX: TimeDelta = TimeDelta::days(2);

/// The windows of a site together. Its occurrences are the times at which a maintenance window is open and no deny
/// window is. Overlapping occurrences of single windows are merged into one; those that only touch are not. Deny windows
/// are cut out, and each remaining piece is an occurrence.
///
/// It is an error if windows overlap one another for more than 366 days, or if more than 100 000 occurrences of single
/// windows must be examined to find the next occurrence or the start of an open one. If everything is denied for two
/// years, there is no next occurrence. Single windows start on days from 1970 to 9999, with `cron` up to 2100.
#[derive(Debug, Clone, Copy)]
pub struct Calendar<'a> {
    maintenance: &'a [Window],
    deny: &'a [Window],
    site: Tz,
    zones: &'a Zones,
}

/// Why the windows of a site are invalid together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CalendarError {
    /// They overlap without end.
    #[error(
        "maintenance-windows: from {since} on they overlap one another for more than 366 days, so that none begins \
         after that; shorten their duration, such as every day from 00:00 for 24h, or leave days out",
        since = since.format("%Y-%m-%dT%H:%M:%SZ")
    )]
    Endless {
        /// When the overlap begins, or a time by which it had begun.
        since: DateTime<Utc>,
    },
    /// They begin too often.
    #[error(
        "maintenance-windows, deny-windows: between one occurrence and the next they begin more than 100 000 times; \
         write fewer windows, or windows that begin less often"
    )]
    TooMany,
}

impl<'a> Calendar<'a> {
    /// The calendar of a site in the timezone `site`, by the rules of `zones`.
    pub fn new(maintenance: &'a [Window], deny: &'a [Window], site: Tz, zones: &'a Zones) -> Self {
        Self { maintenance, deny, site, zones }
    }

    /// The occurrence that is open at `at`.
    ///
    /// # Errors
    /// The windows are invalid around `at`.
    pub fn containing(&self, at: DateTime<Utc>) -> Result<Option<Occurrence>, CalendarError> {
        let first = self.occurrences(at).next().transpose()?;
        Ok(first.filter(|occurrence| occurrence.start <= at))
    }

    /// The first occurrence that starts after `at`.
    ///
    /// # Errors
    /// The windows are invalid there, or between `at` and there.
    pub fn next(&self, at: DateTime<Utc>) -> Result<Option<Occurrence>, CalendarError> {
        let is_later = |occurrence: &Occurrence| occurrence.start > at;
        self.occurrences(at).find(|found| found.as_ref().map_or(true, is_later)).transpose()
    }

    /// The occurrences that end after `from`, in order, an open one first. After an error the iterator ends.
    pub fn occurrences(
        &self,
        from: DateTime<Utc>,
    ) -> impl Iterator<Item = Result<Occurrence, CalendarError>> + use<'a> {
        self.search(from)
    }

    /// Checks whether windows overlap without end or begin too often: in the five years after `now`, and in the first
    /// days of each window with a later `not-before`; at most 100 000 occurrences in all.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(), CalendarError> {
        let later = self.maintenance.iter().filter_map(|window| window.not_before);
        let later = later.map(|date| date.day().and_time(NaiveTime::MIN).and_utc()).filter(|day| now < *day);
        let mut steps = 0;
        for (from, span) in later.map(|day| (day, CHECK_SPAN_LATER)).chain([(now, CHECK_SPAN)]) {
            let mut occurrences = self.search(from);
            let end = from.checked_add_signed(span).unwrap_or(AFTER_ALL);
            while let Some(occurrence) = occurrences.advance()? {
                steps += occurrences.steps;
                if occurrence.start > end || steps > STEPS_MAX {
                    break;
                }
            }
        }
        Ok(())
    }

    fn search(&self, from: DateTime<Utc>) -> Occurrences<'a> {
        Occurrences::new(*self, from.clamp(BEFORE_ALL, AFTER_ALL))
    }
}

/// The occurrences of several windows, in the order of their starts.
#[derive(Debug)]
struct Union<'a> {
    windows: &'a [Window],
    site: Tz,
    zones: &'a Zones,
    series: Vec<Series<'a>>,
    /// The next occurrence of each series.
    ahead: BinaryHeap<Reverse<(Occurrence, usize)>>,
}

impl<'a> Union<'a> {
    fn new(windows: &'a [Window], Calendar { site, zones, .. }: Calendar<'a>) -> Self {
        Self { windows, site, zones, series: Vec::new(), ahead: BinaryHeap::new() }
    }

    /// Moves to the first occurrences that end after `at`.
    fn seek(&mut self, at: DateTime<Utc>) {
        self.series.clear();
        self.ahead.clear();
        for (index, window) in self.windows.iter().enumerate() {
            let (first, series) = Series::ending_after(window, self.site, self.zones, at);
            self.ahead.extend(first.map(|occurrence| Reverse((occurrence, index))));
            self.series.push(series);
        }
    }

    fn peek(&self) -> Option<Occurrence> {
        self.ahead.peek().map(|Reverse((occurrence, _))| *occurrence)
    }

    fn pop(&mut self) {
        if let Some(Reverse((_, index))) = self.ahead.pop() {
            self.ahead.extend(self.series[index].next().map(|occurrence| Reverse((occurrence, index))));
        }
    }

    /// The occurrences before the current position.
    fn behind(&self) -> PastUnion<'a> {
        let mut series: Vec<PastSeries<'a>> = self.series.iter().map(Series::passed).collect();
        let last =
            series.iter_mut().enumerate().filter_map(|(index, series)| Some(by_end(series.next()?, index)));
        PastUnion { last: last.collect(), series }
    }
}

/// The occurrences of several windows before some time, by their ends, the last first.
#[derive(Debug)]
struct PastUnion<'a> {
    series: Vec<PastSeries<'a>>,
    /// The last remaining occurrence of each series.
    last: BinaryHeap<ByEnd>,
}

/// End and start of an occurrence, and the index of its series.
type ByEnd = (DateTime<Utc>, DateTime<Utc>, usize);

fn by_end(occurrence: Occurrence, index: usize) -> ByEnd {
    (occurrence.end, occurrence.start, index)
}

impl PastUnion<'_> {
    /// The start of the last occurrence, if it ends after `at`.
    fn pop_ending_after(&mut self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (_, start, index) = *self.last.peek().filter(|(end, ..)| *end > at)?;
        self.last.pop();
        self.last.extend(self.series[index].next().map(|occurrence| by_end(occurrence, index)));
        Some(start)
    }
}

/// The occurrences of a calendar that end after some time.
#[derive(Debug)]
struct Occurrences<'a> {
    from: DateTime<Utc>,
    maintenance: Union<'a>,
    deny: Union<'a>,
    /// The rest of the merged occurrence from which deny windows are being cut.
    rest: Option<Occurrence>,
    steps: u32,
    has_failed: bool,
}

impl<'a> Occurrences<'a> {
    fn new(calendar: Calendar<'a>, from: DateTime<Utc>) -> Self {
        let mut maintenance = Union::new(calendar.maintenance, calendar);
        maintenance.seek(from);
        let deny = Union::new(calendar.deny, calendar);
        Self { from, maintenance, deny, rest: None, steps: 0, has_failed: false }
    }

    fn step(&mut self, steps: usize) -> Result<(), CalendarError> {
        self.steps = self.steps.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if self.steps > STEPS_MAX { Err(CalendarError::TooMany) } else { Ok(()) }
    }

    /// The next occurrence that ends after `from`.
    fn advance(&mut self) -> Result<Option<Occurrence>, CalendarError> {
        self.steps = 0;
        let mut denied_since = None;
        loop {
            let Some(merged) = self.rest.take() else {
                let Some(merged) = self.merge()? else { return Ok(None) };
                // Before the first seek there is none.
                if self.deny.peek().is_none_or(|deny| deny.end + BEHIND_MAX < merged.start) {
                    self.step(1 + SEEK_STEPS * self.deny.windows.len())?;
                    self.deny.seek(merged.start);
                }
                self.rest = Some(merged);
                continue;
            };
            match self.cut(merged)? {
                Some(piece) if piece.end > self.from => return Ok(Some(piece)),
                Some(_) => denied_since = None,
                None if merged.start - *denied_since.get_or_insert(merged.start) > DENIED_MAX => {
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    /// The next merged occurrence of the maintenance windows.
    fn merge(&mut self) -> Result<Option<Occurrence>, CalendarError> {
        let Some(mut merged) = self.maintenance.peek() else { return Ok(None) };
        if merged.start < self.from {
            merged.start = self.find_start(merged.start)?;
        }
        while let Some(next) = self.maintenance.peek().filter(|next| next.start < merged.end) {
            self.step(1)?;
            merged.end = merged.end.max(next.end);
            if merged.end - merged.start > SPAN_MAX {
                return Err(CalendarError::Endless { since: merged.start });
            }
            self.maintenance.pop();
        }
        Ok(Some(merged))
    }

    /// The start of the merged occurrence of which a part began at `start`, before `from`: occurrences that ended by `from`
    /// may overlap it. Each is examined once, as in a forward search.
    fn find_start(&mut self, mut start: DateTime<Utc>) -> Result<DateTime<Utc>, CalendarError> {
        self.step(self.maintenance.windows.len())?;
        let mut behind = self.maintenance.behind();
        while let Some(earlier) = behind.pop_ending_after(start) {
            self.step(1)?;
            start = start.min(earlier);
            if self.from - start > SPAN_MAX {
                return Err(CalendarError::Endless { since: start });
            }
        }
        Ok(start)
    }

    /// The first piece of `merged` that deny windows leave; the rest is stored in `self.rest`.
    fn cut(&mut self, mut merged: Occurrence) -> Result<Option<Occurrence>, CalendarError> {
        while let Some(deny) = self.deny.peek().filter(|deny| deny.start < merged.end) {
            self.step(1)?;
            if merged.start < deny.start {
                let piece = Occurrence { start: merged.start, end: deny.start };
                merged.start = deny.start;
                self.rest = Some(merged);
                return Ok(Some(piece));
            }
            merged.start = merged.start.max(deny.end);
            if merged.start >= merged.end {
                // The deny occurrence may reach into the next merged occurrence.
                return Ok(None);
            }
            self.deny.pop();
        }
        Ok(Some(merged))
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Result<Occurrence, CalendarError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.advance();
        self.has_failed = next.is_err();
        next.transpose()
    }
}
