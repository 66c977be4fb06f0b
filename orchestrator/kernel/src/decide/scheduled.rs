//! Runs that start by themselves.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::RunId;

use super::run_control::start;
use crate::fact::Fact;
use crate::outlook::due;
use crate::run::Trigger;
use crate::state::State;
use crate::view::View;

/// The run of the occurrence that is under way, if it is due: over with it, as every run is at its `not-after`.
pub(super) fn begin(state: &State, view: &View, run: &RunId, now: DateTime<Utc>) -> Vec<Fact> {
    let Some(occurrence) = due(state, view, now) else { return Vec::new() };
    let trigger = Trigger::Window { start: occurrence.start, end: occurrence.end };
    // What is due can be started: it was looked at for that.
    start(state, view, run, trigger, occurrence.end).unwrap_or_default()
}
