//! Which occurrences of the maintenance windows start no run any more.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::window::Occurrence;

/// How long after an occurrence its having been made use of counts, should the clock go back.
const REMEMBERED: TimeDelta = TimeDelta::days(1);

/// Up to when occurrences have been made use of: the one in which that time lies has started a run, or may have, or an
/// operator has cancelled one in it. It starts no other by itself, whatever the windows are by then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watermark(Option<DateTime<Utc>>);

impl Watermark {
    /// Nothing has been made use of.
    pub const NONE: Self = Self(None);

    /// Up to `at`, whatever was before.
    pub const fn up_to(at: DateTime<Utc>) -> Self {
        Self(Some(at))
    }

    /// As this, and the occurrence of `at` too. A later one that was made use of before a clock went back stays so.
    #[must_use]
    pub fn and(self, at: DateTime<Utc>) -> Self {
        Self::up_to(
            self.0
                .filter(|watermark| is_remembered(*watermark, at))
                .map_or(at, |watermark| watermark.max(at)),
        )
    }

    /// Whether `occurrence` starts no run any more.
    pub fn covers(self, occurrence: Occurrence) -> bool {
        self.0.is_some_and(|watermark| {
            occurrence.start <= watermark && is_remembered(watermark, occurrence.end)
        })
    }

    /// Whether something has been made use of after `at`.
    pub fn is_after(self, at: DateTime<Utc>) -> bool {
        self.0.is_some_and(|watermark| at < watermark)
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

/// Clocks may go back; one that was years ahead, though, is not to keep runs from starting for years.
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
    fn an_occurrence_is_covered() {
        let occurrence = Occurrence { start: at(2), end: at(4) };
        assert!(!Watermark::NONE.covers(occurrence));
        for (watermark, covered) in [(1, false), (2, true), (3, true), (4, true), (27, true), (28, false)] {
            assert_eq!(Watermark::up_to(at(watermark)).covers(occurrence), covered, "{watermark}");
        }
    }

    #[test]
    fn what_was_spent_later_stays_so_for_a_day() {
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

    /// Whatever times a journal holds.
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
