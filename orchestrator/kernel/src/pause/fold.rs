//! What facts about the pause of a site change in the state.

use chrono::{DateTime, Utc};

use super::fact::PauseFact;
use super::state::Pause;
use crate::state::State;

impl State {
    pub(crate) fn apply_pause(&mut self, fact: &PauseFact, at: DateTime<Utc>) {
        self.pause = match fact {
            PauseFact::Paused { cause, until } => {
                let since = self.pause.as_ref().map_or(at, |pause| pause.since);
                Some(Pause { cause: cause.clone(), since, until: *until })
            }
            PauseFact::Resumed { .. } => None,
        };
    }
}
