//! When upgrades may run: the windows of a site together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::definition::{Occurrence, SPAN_MAX, Window};
use super::series::{AFTER_ALL, BEFORE_ALL, Passed, Series};

/// Most occurrences of single windows that are looked at on the way from one occurrence to the next.
const STEPS_MAX: u32 = 100_000;

/// What looking for the place of one window costs, in occurrences gone through.
const SEEK_STEPS: usize = 5;

/// How far ahead windows are checked, and for how long after one begins to count.
const CHECKED: TimeDelta = TimeDelta::days(5 * 366);
const CHECKED_ANEW: TimeDelta = TimeDelta::days(15);

/// What is denied for longer than this on end is not looked beyond.
const DENIED_MAX: TimeDelta = TimeDelta::days(2 * 366);

/// Deny windows are looked for anew when they lie behind by more than this, instead of being gone through.
const BEHIND_MAX: TimeDelta = TimeDelta::days(2);

/// The windows of a site together. Its occurrences are the times at which a maintenance window is open and no deny
/// window is: occurrences of single windows that overlap are one, those that only touch are not, and what deny
/// windows leave of one are occurrences of their own.
///
/// Windows that overlap one another for more than 366 days are an error, and so is it when more than 100 000
/// occurrences of single windows have to be looked at to find the next one, or the start of one that is under way. What
/// is denied for two years on end is not looked beyond: there is no next one then. Single windows start on days from 1970
/// to 9999, `cron` up to 2100.
#[derive(Debug, Clone, Copy)]
pub struct Calendar<'a> {
    maintenance: &'a [Window],
    deny: &'a [Window],
    site: Tz,
}

/// Windows that cannot be meant together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CalendarError {
    /// They are open for ever.
    #[error(
        "maintenance-windows: from {since} on they overlap one another for more than 366 days, so that none begins \
         after that; shorten their duration, such as every day from 00:00 for 24h, or leave days out",
        since = since.format("%Y-%m-%dT%H:%M:%SZ")
    )]
    Endless {
        /// When they begin to overlap, or a time by which they had.
        since: DateTime<Utc>,
    },
    /// They begin too often.
    #[error(
        "maintenance-windows, deny-windows: between one occurrence and the next they begin more than 100 000 times; \
         write fewer windows, or such that begin less often"
    )]
    TooMany,
}

impl<'a> Calendar<'a> {
    /// The maintenance windows and the deny windows of a site in the zone `site`.
    pub fn new(maintenance: &'a [Window], deny: &'a [Window], site: Tz) -> Self {
        Self { maintenance, deny, site }
    }

    /// The occurrence that is under way at `at`.
    ///
    /// # Errors
    /// It cannot be worked out, as the next after it cannot.
    pub fn containing(&self, at: DateTime<Utc>) -> Result<Option<Occurrence>, CalendarError> {
        let first = self.occurrences(at).next().transpose()?;
        Ok(first.filter(|occurrence| occurrence.start <= at))
    }

    /// The first occurrence that starts after `at`.
    ///
    /// # Errors
    /// It cannot be worked out, or one before it.
    pub fn next(&self, at: DateTime<Utc>) -> Result<Option<Occurrence>, CalendarError> {
        let is_later = |occurrence: &Occurrence| occurrence.start > at;
        self.occurrences(at).find(|found| found.as_ref().map_or(true, is_later)).transpose()
    }

    /// The occurrences that end after `from`, in order; one that is under way is the first. An error is the last.
    pub fn occurrences(
        &self,
        from: DateTime<Utc>,
    ) -> impl Iterator<Item = Result<Occurrence, CalendarError>> + use<'a> {
        self.search(from)
    }

    /// Whether windows overlap without end or begin too often, as far as can be seen at `now`: in the five years
    /// after it, and wherever the first days of a window lie that counts later; 100 000 occurrences in all.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(), CalendarError> {
        let later = self.maintenance.iter().filter_map(|window| window.not_before);
        let later = later.map(|date| date.day().and_time(NaiveTime::MIN).and_utc()).filter(|day| now < *day);
        let mut steps = 0;
        for (from, span) in later.map(|day| (day, CHECKED_ANEW)).chain([(now, CHECKED)]) {
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
    series: Vec<Series<'a>>,
    /// The next one of each series.
    ahead: BinaryHeap<Reverse<(Occurrence, usize)>>,
}

impl<'a> Union<'a> {
    fn new(windows: &'a [Window], site: Tz) -> Self {
        Self { windows, site, series: Vec::new(), ahead: BinaryHeap::new() }
    }

    /// Goes to those that end after `at`.
    fn seek(&mut self, at: DateTime<Utc>) {
        self.series.clear();
        self.ahead.clear();
        for (index, window) in self.windows.iter().enumerate() {
            let (first, series) = Series::ending_after(window, self.site, at);
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

    /// Those before the place that has been gone to.
    fn behind(&self) -> Behind<'a> {
        let mut series: Vec<Passed<'a>> = self.series.iter().map(Series::passed).collect();
        let last =
            series.iter_mut().enumerate().filter_map(|(index, series)| Some(by_end(series.next()?, index)));
        Behind { last: last.collect(), series }
    }
}

/// The occurrences of several windows before some time, in the order of their ends, the last one first.
#[derive(Debug)]
struct Behind<'a> {
    series: Vec<Passed<'a>>,
    /// The last one of each series.
    last: BinaryHeap<ByEnd>,
}

/// End and start of an occurrence, and the number of its series.
type ByEnd = (DateTime<Utc>, DateTime<Utc>, usize);

fn by_end(occurrence: Occurrence, index: usize) -> ByEnd {
    (occurrence.end, occurrence.start, index)
}

impl Behind<'_> {
    /// The start of the last one, if that ends after `at`.
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
    /// What is left of the merged occurrence that is being cut.
    rest: Option<Occurrence>,
    steps: u32,
    has_failed: bool,
}

impl<'a> Occurrences<'a> {
    fn new(calendar: Calendar<'a>, from: DateTime<Utc>) -> Self {
        let mut maintenance = Union::new(calendar.maintenance, calendar.site);
        maintenance.seek(from);
        let deny = Union::new(calendar.deny, calendar.site);
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
                // At first there is none ahead.
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
            merged.start = self.look_back(merged.start)?;
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

    /// The start of what began at `start`, before `from`: others that were over by `from` may have overlapped it. Each is
    /// gone through once, as it would be on the way ahead.
    fn look_back(&mut self, mut start: DateTime<Utc>) -> Result<DateTime<Utc>, CalendarError> {
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

    /// The first piece that deny windows leave of `merged`; what follows it is kept.
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
                // It may reach into the next one.
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
