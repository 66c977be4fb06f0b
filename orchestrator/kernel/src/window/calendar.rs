//! When upgrades may run: the windows of a site together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::series::{AFTER_ALL, BEFORE_ALL, Series};
use super::{Occurrence, SPAN_MAX, Window};

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
/// Windows that overlap one another for more than 366 days have no occurrence in that time; seen from before, nor
/// after it. The same holds where all is denied for two years on end, and when more than 100 000 occurrences of
/// single windows have to be looked at to find the next. Single windows start on days from 1970 to 9999, `cron` up to
/// 2100.
#[derive(Debug, Clone, Copy)]
pub struct Calendar<'a> {
    maintenance: &'a [Window],
    deny: &'a [Window],
    site: Tz,
}

/// Windows that cannot be meant together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
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
    pub fn containing(&self, at: DateTime<Utc>) -> Option<Occurrence> {
        self.occurrences(at).next().filter(|occurrence| occurrence.start <= at)
    }

    /// The first occurrence that starts after `at`.
    pub fn next(&self, at: DateTime<Utc>) -> Option<Occurrence> {
        self.occurrences(at).find(|occurrence| occurrence.start > at)
    }

    /// The first `count` occurrences that end after `from`, in order; one that is under way is the first.
    pub fn list(&self, from: DateTime<Utc>, count: usize) -> Vec<Occurrence> {
        self.occurrences(from).take(count).collect()
    }

    /// Whether windows overlap without end or begin too often, as far as can be seen at `now`: in the five years
    /// after it, and wherever the first days of a window lie that counts later; 100 000 occurrences in all.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(), CalendarError> {
        let later = self.maintenance.iter().filter_map(|window| window.not_before);
        let later = later.map(|date| date.day().and_time(NaiveTime::MIN).and_utc()).filter(|day| now < *day);
        let mut steps = 0;
        for (from, span) in later.map(|day| (day, CHECKED_ANEW)).chain([(now, CHECKED)]) {
            let mut occurrences = self.occurrences(from);
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

    fn occurrences(&self, from: DateTime<Utc>) -> Occurrences<'a> {
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

    /// The start of the first one that ends after `at`.
    fn first_start(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let first = |window| Series::ending_after(window, self.site, at).0;
        self.windows.iter().filter_map(first).map(|occurrence| occurrence.start).min()
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
}

impl<'a> Occurrences<'a> {
    fn new(calendar: Calendar<'a>, from: DateTime<Utc>) -> Self {
        let mut maintenance = Union::new(calendar.maintenance, calendar.site);
        maintenance.seek(from);
        let deny = Union::new(calendar.deny, calendar.site);
        Self { from, maintenance, deny, rest: None, steps: 0 }
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
        // One that was over by `from` may have overlapped it.
        while merged.start < self.from {
            self.step(SEEK_STEPS * self.maintenance.windows.len())?;
            match self.maintenance.first_start(merged.start) {
                Some(start) if start < merged.start => merged.start = start,
                _ => break,
            }
            if self.from - merged.start > SPAN_MAX {
                return Err(CalendarError::Endless { since: merged.start });
            }
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
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        self.advance().ok().flatten()
    }
}
