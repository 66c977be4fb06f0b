//! What follows for the pause of a site from time.

use chrono::{DateTime, Utc};

use super::fact::PauseFact;
use crate::fact::Fact;
use crate::state::State;
use crate::view::View;

/// Ends a pause whose end has come. While the time is in doubt, or hosts could still contradict it, the site stays paused.
pub(crate) fn end(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let until = state.pause.as_ref()?.until?;
    let has_come = view.may_judge_windows() && until <= now;
    has_come.then(|| vec![PauseFact::Resumed { actor: None, reason: None }.into()])
}
