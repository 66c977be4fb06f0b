//! The watermark: up to when occurrences of the maintenance windows have started their run.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::Occurrence;

/// How far ahead of an occurrence a watermark may be and still cover it, in case a clock is set back.
const REMEMBERED: TimeDelta = TimeDelta::days(1);

/// Up to when occurrences are used: an occurrence that has started by that time has started its run, may have done so, or
/// an operator has cancelled a run in it. It starts no other run automatically, even if the windows change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watermark(Option<DateTime<Utc>>);

impl Watermark {
    /// No occurrence is used.
    pub const NONE: Self = Self(None);

    /// Occurrences are used up to `at`.
    pub const fn up_to(at: DateTime<Utc>) -> Self {
        Self(Some(at))
    }

    /// This watermark raised to `at`. A later watermark, from before a clock was set back, stays.
    #[must_use]
    pub fn and(self, at: DateTime<Utc>) -> Self {
        Self::up_to(self.remembered_at(at).map_or(at, |watermark| watermark.max(at)))
    }

    /// Whether `occurrence` is used and starts no run.
    pub fn covers(self, occurrence: Occurrence) -> bool {
        self.0.is_some_and(|watermark| {
            occurrence.start <= watermark && is_remembered(watermark, occurrence.end)
        })
    }

    /// The time up to which occurrences are used, unless it is so far after `at` that a clock was wrong.
    pub fn remembered_at(self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.filter(|watermark| is_remembered(*watermark, at))
    }

    /// Whether the watermark is later than `at`.
    pub fn is_after(self, at: DateTime<Utc>) -> bool {
        self.0.is_some_and(|watermark| at < watermark)
    }

    /// Whether no occurrence is used.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

/// Clocks may be set back, but a clock that was years ahead must not keep runs from starting for years.
fn is_remembered(watermark: DateTime<Utc>, at: DateTime<Utc>) -> bool {
    watermark - at < REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::hours(hour)
    }

    #[test]
    fn covers_occurrences_up_to_a_day_before() {
        let occurrence = Occurrence { start: at(2), end: at(4) };
        assert!(!Watermark::NONE.covers(occurrence));
        for (watermark, covered) in [(1, false), (2, true), (3, true), (4, true), (27, true), (28, false)] {
            assert_eq!(Watermark::up_to(at(watermark)).covers(occurrence), covered, "{watermark}");
        }
    }

    #[test]
    fn later_watermark_stays_for_a_day() {
        for (before, then, expected) in
            [(1, 2, 2), (2, 2, 2), (5, 2, 5), (25, 2, 25), (26, 2, 2), (87_600, 2, 2)]
        {
            assert_eq!(
                Watermark::up_to(at(before)).and(at(then)),
                Watermark::up_to(at(expected)),
                "{before}"
            );
        }
        assert_eq!(Watermark::NONE.and(at(2)), Watermark::up_to(at(2)));
    }

    /// A journal may contain any time.
    #[test]
    fn absurd_times_do_no_harm() {
        let (first, last) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
        for (one, other) in [(first, last), (last, first), (last, last), (first, first)] {
            let watermark = Watermark::up_to(one).and(other);
            assert_eq!(watermark, Watermark::up_to(other));
            assert_eq!(Watermark::up_to(one).covers(Occurrence { start: other, end: other }), one == other);
        }
    }
}
