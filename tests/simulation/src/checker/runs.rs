//! Runs and configurations, as the journal tells of them, and when a run may start by itself.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use os_upgrade_kernel::window::{Calendar, Occurrence};
use os_upgrade_kernel::{Config, Fact, StopCause, Trigger};
use os_upgrade_protocol::{Hint, RunId};

use super::violation::Violation;
use crate::time::Micros;

/// A run as the journal tells of it.
#[derive(Debug)]
pub(super) struct RunSeen {
    started: Micros,
    /// When it stopped, and when it ended, by the journal.
    stopped: Option<Micros>,
    pub(super) ended: Option<Micros>,
    /// When any instance first showed that it had ended.
    pub(super) end_shown: Option<Micros>,
    pub(super) not_after: DateTime<Utc>,
}

impl RunSeen {
    fn was_there(&self, since: Micros) -> bool {
        self.ended.is_none_or(|ended| ended >= since)
    }
}

#[derive(Debug)]
pub(super) struct Runs {
    seen: BTreeMap<RunId, RunSeen>,
    /// Every configuration with the time from which on it was in force.
    configs: Vec<(Micros, Option<Config>)>,
    /// The occurrence in which this lies has started its run, or an operator has cancelled one in it.
    occurrence_spent: Option<DateTime<Utc>>,
    scheduled: u64,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self { seen: BTreeMap::new(), configs: vec![(0, None)], occurrence_spent: None, scheduled: 0 }
    }

    /// How many have begun.
    pub(super) fn count(&self) -> u64 {
        self.seen.len() as u64
    }

    /// How many have begun by themselves.
    pub(super) fn scheduled(&self) -> u64 {
        self.scheduled
    }

    pub(super) fn get(&self, run: &RunId) -> Option<&RunSeen> {
        self.seen.get(run)
    }

    /// A fact of that time stands in the journal.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::ConfigReplaced { config, .. } => self.configs.push((now, config.clone())),
            Fact::RunStarted { run, trigger, not_after, .. } => {
                let not_after = *not_after;
                let seen = RunSeen { started: now, stopped: None, ended: None, end_shown: None, not_after };
                self.seen.insert(run.clone(), seen);
                if let Trigger::Window { start, end } = trigger {
                    return self.started_by_itself(at, Occurrence { start: *start, end: *end }, not_after);
                }
            }
            Fact::RunStopping { run, cause } => {
                if let StopCause::Cancelled { .. } = cause {
                    self.occurrence_spent = self.occurrence_spent.max(Some(at));
                }
                if let Some(run) = self.seen.get_mut(run) {
                    run.stopped.get_or_insert(now);
                }
            }
            Fact::RunEnded { run, .. } => {
                if let Some(run) = self.seen.get_mut(run) {
                    run.ended = Some(now);
                }
            }
            // The other facts are about no run as a whole.
            _ => {}
        }
        Ok(())
    }

    /// A run starts by itself in an occurrence of what is configured, of which enough is left, and as the only one.
    fn started_by_itself(
        &mut self,
        at: DateTime<Utc>,
        occurrence: Occurrence,
        not_after: DateTime<Utc>,
    ) -> Result<(), Violation> {
        let wrong = |text| Err(Violation::new("window", text));
        let Some(config) = self.configs.last().and_then(|(_, config)| config.as_ref()) else {
            return wrong("a run starts by itself without a configuration".to_owned());
        };
        let calendar = Calendar::new(&config.maintenance_windows, &config.deny_windows, Tz::UTC);
        if calendar.containing(at) != Ok(Some(occurrence)) || not_after != occurrence.end {
            return wrong(format!("a run starts by itself at {at} in {occurrence:?}, until {not_after}"));
        }
        if occurrence.end - at < config.minimum_remaining.to_delta() {
            return wrong(format!("a run starts by itself at {at} in the end of {occurrence:?}"));
        }
        let is_second = self.occurrence_spent.is_some_and(|spent| occurrence.start <= spent);
        self.occurrence_spent = self.occurrence_spent.max(Some(at));
        self.scheduled += 1;
        if is_second {
            return wrong(format!("a second run starts by itself at {at} in {occurrence:?}"));
        }
        Ok(())
    }

    /// An instance shows that `run` has ended.
    pub(super) fn end_shown(&mut self, now: Micros, run: &RunId) {
        if let Some(run) = self.seen.get_mut(run) {
            run.end_shown.get_or_insert(now);
        }
    }

    /// Workers are told that a run is stopping.
    pub(super) fn hinted(&self, hint: &Hint) -> Result<(), Violation> {
        let run = hint.run.as_ref().and_then(|run| self.seen.get(run));
        if run.is_none_or(|run| run.stopped.is_none()) {
            return Err(Violation::new("hint", format!("{hint:?} is sent, and no such run is stopping")));
        }
        Ok(())
    }

    /// Whether this was configured at some time since `since`.
    pub(super) fn was_configured(&self, config: Option<&Config>, since: Micros) -> bool {
        self.configs.iter().enumerate().any(|(index, (_, configured))| {
            let until = self.configs.get(index + 1).map_or(Micros::MAX, |(from, _)| *from);
            configured.as_ref() == config && until >= since
        })
    }

    /// Whether `run` was there at some time since `since`.
    pub(super) fn was_there(&self, run: &RunId, since: Micros) -> bool {
        self.seen.get(run).is_some_and(|run| run.was_there(since))
    }

    /// Whether a run that was there at some time since `since` has stopped.
    pub(super) fn was_stopping(&self, since: Micros) -> bool {
        self.seen.values().any(|run| run.stopped.is_some() && run.was_there(since))
    }

    /// Whether a run has ended since `since`.
    pub(super) fn has_ended(&self, since: Micros) -> bool {
        self.seen.values().any(|run| run.ended.is_some_and(|ended| ended >= since))
    }

    /// Whether no run was there at some time since `since`.
    pub(super) fn was_none(&self, since: Micros, now: Micros) -> bool {
        let active = |at: Micros| {
            let spans = |run: &RunSeen| run.started < at && run.ended.is_none_or(|ended| ended > at);
            self.seen.values().any(spans)
        };
        // It changes only where a run starts or ends.
        let ends = self.seen.values().filter_map(|run| run.ended).filter(|end| *end >= since);
        let starts = self.seen.values().map(|run| run.started).filter(|start| *start >= since);
        [since, now].into_iter().chain(ends).chain(starts).any(|at| !active(at))
    }
}
