//! Runs that were due and did not start: which occurrences of the maintenance windows have passed without their run.
//!
//! An occurrence counts once no run can start in it any more. The leader records it as a fact, once it can rely on its
//! clock and hosts have had time to contradict it; so a leader that comes later records what was missed while none was there. What was
//! settled before is not looked at again: [`MissedRuns`](crate::MissedRuns) and the watermark say up to when.

use std::collections::VecDeque;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_calendar::{CalendarError, Occurrence, Watermark};

use super::blocker::WindowBlocker;
use super::forecast::{calendar, start_in};
use super::missed::{MissedReason, MissedRun};
use crate::config::Config;
use crate::state::State;
use crate::view::View;

/// How many missed runs are recorded at once, the newest; of earlier ones only the number.
const RECORDED_MAX: usize = 20;
/// How far back missed runs are looked for.
const LOOK_BACK_MAX: TimeDelta = TimeDelta::days(366);
/// How many occurrences are examined. If there are more, only a tenth of the time is looked at, up to the present.
const EXAMINED_MAX: usize = 10_000;

/// What keeps the run of an occurrence from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedStart {
    pub occurrence: Occurrence,
    /// What blocks its run.
    pub by: WindowBlocker,
}

/// The runs that were missed by `now` and are not settled, in order. `blocked` is what this leader last saw a run blocked
/// by.
///
/// # Errors
/// The occurrences of the windows cannot be determined.
pub(crate) fn missed(
    state: &State,
    view: &View,
    blocked: Option<&BlockedStart>,
    now: DateTime<Utc>,
) -> Result<Vec<MissedRun>, CalendarError> {
    let (Some(config), Some(settled)) = (state.config.as_deref(), state.missed.settled_at(now)) else {
        return Ok(Vec::new());
    };
    // Occurrences under replaced rules are not judged by the new ones. A time in the future was that of a clock that was ahead.
    let zones_changed = view.zones_changed.filter(|at| *at <= now).unwrap_or(settled);
    let mut from = settled.max(now - LOOK_BACK_MAX).max(zones_changed);
    let Passed { newest, earlier: mut unrecorded } = loop {
        if let Some(passed) = passed(state, view, config, from, now)? {
            break passed;
        }
        from += (now - from) * 9 / 10;
    };
    let reason = |occurrence: Occurrence| {
        let by = blocked.filter(|blocked| blocked.occurrence.start == occurrence.start);
        by.map_or(MissedReason::NoLeader, |blocked| MissedReason::Blocked(blocked.by.clone()))
    };
    let missed = newest.into_iter().map(|(occurrence, latest)| MissedRun {
        start: occurrence.start,
        latest,
        end: occurrence.end,
        reason: reason(occurrence),
        unrecorded: std::mem::take(&mut unrecorded),
    });
    Ok(missed.collect())
}

/// Occurrences in which a run was due, and can no longer start.
#[derive(Debug, Default)]
struct Passed {
    /// The newest, each with the time until which its run could start.
    newest: VecDeque<(Occurrence, DateTime<Utc>)>,
    /// How many there were before them.
    earlier: u64,
}

/// The occurrences in which a run could start after `from` and can no longer at `now`. `None` if there are too many to
/// examine.
fn passed(
    state: &State,
    view: &View,
    config: &Config,
    from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Option<Passed>, CalendarError> {
    let used_until = state.watermark.remembered_at(now);
    let mut passed = Passed::default();
    let calendar = calendar(config, &state.settings, &view.zones);
    for (examined, occurrence) in calendar.occurrences(from).enumerate() {
        let occurrence = occurrence?;
        if now <= occurrence.start {
            break;
        }
        if examined == EXAMINED_MAX {
            return Ok(None);
        }
        let due = start_in(occurrence, config, &state.settings, Watermark::NONE, occurrence.start);
        let Some(latest) = due.map(|start| start.latest) else { continue };
        let is_used = used_until.is_some_and(|used_until| occurrence.start <= used_until);
        if is_used || latest <= from || now <= latest {
            continue;
        }
        passed.newest.push_back((occurrence, latest));
        if passed.newest.len() > RECORDED_MAX {
            passed.newest.pop_front();
            passed.earlier += 1;
        }
    }
    Ok(Some(passed))
}
