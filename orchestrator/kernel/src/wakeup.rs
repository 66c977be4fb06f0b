//! When time alone will matter.

use chrono::{DateTime, Utc};

use crate::state::State;

/// The next time at which a [`crate::Input::Tick`] leads to a fact though nothing else has come in.
pub fn next_wakeup(state: &State) -> Option<DateTime<Utc>> {
    state.run.as_ref().map(|run| run.not_after)
}
