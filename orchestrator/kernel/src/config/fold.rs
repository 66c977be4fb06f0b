//! What another configuration, or other settings, change in the state.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::fact::ConfigFact;
use super::settings::Settings;
use super::state::Config;
use crate::state::State;

impl State {
    pub(crate) fn apply_config(&mut self, fact: &ConfigFact, at: DateTime<Utc>) {
        match fact {
            ConfigFact::SettingsAdopted { settings } => self.apply_settings(settings, at),
            ConfigFact::Replaced { config, actor: _, difference: _ } => {
                self.apply_replaced(config.as_ref(), at);
            }
        }
    }

    fn apply_settings(&mut self, settings: &Settings, at: DateTime<Utc>) {
        self.semaphores.configure(&settings.groups);
        if !settings.auto_approve {
            self.enrolment.auto_approve_ended();
        }
        if settings.timezone != self.settings.timezone {
            self.missed.config_replaced(self.config.as_deref(), at);
        }
        self.settings = Arc::new(settings.clone());
    }

    fn apply_replaced(&mut self, config: Option<&Config>, at: DateTime<Utc>) {
        let before = std::mem::replace(&mut self.config, config.cloned().map(Arc::new));
        self.revoke_unselected(before.as_deref());
        self.outdate_files(before.as_deref());
        self.follow_providers(before.as_deref());
        self.missed.config_replaced(config, at);
        self.config_revision = self.config_revision.saturating_add(1);
    }
}
