//! Folds facts: each family is folded in its subject's folder.

use chrono::{DateTime, Utc};

use crate::fact::Fact;
use crate::state::{ApplyError, State};

impl State {
    /// Folds one fact that became true at `at`. On an error the state is unchanged.
    pub fn apply(&mut self, at: DateTime<Utc>, fact: &Fact) -> Result<(), ApplyError> {
        match fact {
            Fact::Run(fact) => return self.apply_run(fact, at),
            Fact::Slot(fact) => return self.apply_slot(fact, at),
            Fact::Lock(fact) => self.apply_lock(fact, at),
            Fact::Queue(fact) => return self.apply_queue(fact, at),
            Fact::Node(fact) => return self.apply_node(fact, at),
            Fact::Enrolment(fact) => self.apply_enrolment(fact, at),
            Fact::Desired(fact) => self.apply_desired(fact, at),
            Fact::Pause(fact) => self.apply_pause(fact, at),
            Fact::Config(fact) => self.apply_config(fact, at),
            Fact::Secret(fact) => self.strongbox.apply(fact, at),
            Fact::Unit(fact) => return self.apply_unit(fact, at),
            Fact::Control(fact) => return self.apply_control(fact, at),
            Fact::Restoration(fact) => self.apply_restoration(fact, at),
        }
        Ok(())
    }
}
