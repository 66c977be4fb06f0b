//! Runs that were due and did not start, as they are recorded. `overdue.rs` finds out which.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Watermark;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::blocker::WindowBlocker;
use crate::config::Config;
use crate::left_out::is_default;

/// A run that was due in an occurrence of the maintenance windows, and did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MissedRun {
    /// When the occurrence began.
    pub start: DateTime<Utc>,
    /// Until when the run could have started.
    pub latest: DateTime<Utc>,
    /// When the occurrence ended, or will end.
    pub end: DateTime<Utc>,
    /// Why it did not start.
    pub reason: MissedReason,
    /// How many runs were missed before it that are not recorded one by one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unrecorded: u64,
}

/// Why a run that was due did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MissedReason {
    /// No orchestrator led at the end of the time in which it could start: none was running, or none reached the bus.
    NoLeader,
    /// This kept it from starting until the end of that time.
    #[serde(untagged)]
    #[strum(transparent)]
    Blocked(WindowBlocker),
}

impl MissedReason {
    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Every kind: of the blockers those of a run that is due.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        ["no-leader", "run-active"].into_iter().chain(WindowBlocker::kinds_in_window())
    }
}

/// What is known of missed runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MissedRuns {
    /// Up to when it is settled which runs were missed: recorded, or not due because the windows were others.
    #[serde(default, skip_serializing_if = "Watermark::is_none")]
    pub settled: Watermark,
    /// How many runs were missed since the site began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub total: u64,
    /// The last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Arc<MissedRun>>,
}

impl MissedRuns {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// From `at` on `config` is in force.
    pub(crate) fn config_replaced(&mut self, config: Option<&Config>, at: DateTime<Utc>) {
        if has_windows(config) {
            self.settled = self.settled.and(at);
        }
    }

    /// A leadership began at `at`. Without a time from which to look, this is one: a version that recorded no missed runs
    /// was there before, or a clock was far ahead.
    pub(crate) fn leadership_began(&mut self, config: Option<&Config>, at: DateTime<Utc>) {
        if has_windows(config) && self.settled.remembered_at(at).is_none() {
            self.settled = Watermark::up_to(at);
        }
    }

    /// The time up to which it is settled at `now`. A leadership by a clock that was far behind sets it back, but what is recorded by
    /// a clock that was right is not missed once more, unless that leadership has recorded a run itself.
    pub(crate) fn settled_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let settled = self.settled.remembered_at(now)?;
        let recorded = self.last.as_ref().map(|last| last.latest).filter(|latest| *latest <= now);
        Some(recorded.map_or(settled, |recorded| recorded.max(settled)))
    }

    pub(crate) fn missed(&mut self, run: &MissedRun) {
        self.settled = self.settled.and(run.latest);
        self.total = self.total.saturating_add(run.unrecorded).saturating_add(1);
        self.last = Some(Arc::new(run.clone()));
    }
}

fn has_windows(config: Option<&Config>) -> bool {
    config.is_some_and(|config| !config.maintenance_windows.is_empty())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    /// A leader whose clock is days behind sets back up to when missed runs are settled. What was recorded before, by a clock that
    /// was right, is settled all the same once the clock is right again.
    #[test]
    fn clock_that_was_behind_misses_nothing_twice() {
        let at = |hour: i64| DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::hours(hour);
        let run = |hour| {
            let (start, latest, end) = (at(hour), at(hour), at(hour + 1));
            MissedRun { start, latest, end, reason: MissedReason::NoLeader, unrecorded: 0 }
        };
        for (recorded, began, now, expected) in [
            (0, -72, 1, 0),
            (0, -72, -71, -72),
            // A clock that was ahead has recorded what was not yet missed.
            (72, 1, 2, 1),
            (0, 2, 3, 2),
        ] {
            let missed = MissedRuns {
                settled: Watermark::up_to(at(began)),
                total: 1,
                last: Some(Arc::new(run(recorded))),
            };
            assert_eq!(missed.settled_at(at(now)), Some(at(expected)), "{recorded} {began} {now}");
        }
    }
}
