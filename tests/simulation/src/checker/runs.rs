//! Runs and configurations, according to the journal, and when a run may start automatically.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Duration, Occurrence, Zones};
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{ConfigFact, RunFact};
use os_upgrade_kernel::{Config, Enlisted, Fact, HostEvent, StopCause, Targets, Trigger};
use os_upgrade_protocol::{Hint, HostName, RunId};

use super::violation::Violation;
use crate::time::Micros;

/// A run, according to the journal.
#[derive(Debug)]
pub(super) struct RunSeen {
    started: Micros,
    /// When it began to stop, and when it ended, by the journal.
    stopped: Option<Micros>,
    pub(super) ended: Option<Micros>,
    /// When any instance first showed its end.
    pub(super) end_shown: Option<Micros>,
    pub(super) not_after: DateTime<Utc>,
    /// How long a host takes, as the operators say; zero if they do not.
    expected: TimeDelta,
    /// Whether it is one of chosen hosts: a cancel of it leaves the window to the next.
    is_targeted: bool,
}

impl RunSeen {
    fn was_active(&self, since: Micros) -> bool {
        self.ended.is_none_or(|ended| ended >= since)
    }
}

#[derive(Debug)]
pub(super) struct Runs {
    seen: BTreeMap<RunId, RunSeen>,
    /// Every configuration, each with the time at which it came into force.
    configs: Vec<(Micros, Option<Config>)>,
    /// The last time at which a run started automatically, or was cancelled: no second run may start in that
    /// occurrence.
    occurrence_spent: Option<DateTime<Utc>>,
    scheduled: u64,
    /// The hosts that operators chose for runs.
    chosen: BTreeMap<RunId, BTreeSet<HostName>>,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self {
            seen: BTreeMap::new(),
            configs: vec![(0, None)],
            occurrence_spent: None,
            scheduled: 0,
            chosen: BTreeMap::new(),
        }
    }

    /// An operator wants a run of these hosts.
    pub(super) fn chosen(&mut self, run: &RunId, targets: &Targets) {
        if targets.retry.is_none() && !targets.hosts.is_empty() {
            self.chosen.insert(run.clone(), targets.hosts.iter().cloned().collect());
        }
    }

    /// A run of chosen hosts has those alone.
    fn check_chosen(&self, run: &RunId, hosts: &[Enlisted]) -> Result<(), Violation> {
        let enlisted: BTreeSet<HostName> = hosts.iter().map(|entry| entry.host.clone()).collect();
        match self.chosen.get(run).filter(|chosen| **chosen != enlisted) {
            Some(chosen) => {
                let text = format!("run {run} is of {enlisted:?}, and an operator chose {chosen:?}");
                Err(Violation::new("target", text))
            }
            None => Ok(()),
        }
    }

    /// The number of runs.
    pub(super) fn count(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The number of runs that a window started.
    pub(super) fn scheduled(&self) -> u64 {
        self.scheduled
    }

    pub(super) fn get(&self, run: &RunId) -> Option<&RunSeen> {
        self.seen.get(run)
    }

    /// Nothing begins at `at` for which the run has too little time left.
    fn check_fit(
        &self,
        at: DateTime<Utc>,
        run: &RunId,
        what: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        let is_late =
            |seen: &&RunSeen| seen.expected > TimeDelta::zero() && seen.not_after < at + seen.expected;
        let seen = self.seen.get(run).filter(is_late);
        seen.map_or(Ok(()), |RunSeen { not_after, expected, .. }| {
            let text = format!("{} at {at}, takes {expected}, and the run ends at {not_after}", what());
            Err(Violation::new("fits", text))
        })
    }

    /// A fact of the time `at` was added to the journal.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::Config(ConfigFact::Replaced { config, .. }) => self.configs.push((now, config.clone())),
            Fact::Run(RunFact::Started { run, trigger, not_after, rollout, hosts }) => {
                self.check_chosen(run, hosts)?;
                let not_after = *not_after;
                let expected = expected(rollout);
                let (stopped, ended, end_shown) = (None, None, None);
                let is_targeted = trigger.is_targeted();
                let seen =
                    RunSeen { started: now, stopped, ended, end_shown, not_after, expected, is_targeted };
                self.seen.insert(run.clone(), seen);
                self.check_fit(at, run, || format!("run {run} starts"))?;
                if let Trigger::Window { start, end } = trigger {
                    return self.check_scheduled(at, Occurrence { start: *start, end: *end }, not_after);
                }
            }
            Fact::Run(RunFact::Stopping { run, cause }) => {
                let Some(run) = self.seen.get_mut(run) else { return Ok(()) };
                run.stopped.get_or_insert(now);
                let (not_after, is_targeted) = (run.not_after, run.is_targeted);
                if let StopCause::Cancelled { .. } = cause
                    && !is_targeted
                {
                    self.spend(at.min(not_after));
                }
            }
            Fact::Run(RunFact::Ended { run, .. }) => {
                if let Some(run) = self.seen.get_mut(run) {
                    run.ended = Some(now);
                }
            }
            Fact::Run(RunFact::Host {
                run,
                host,
                event: event @ (HostEvent::SlotGranted { .. } | HostEvent::Drained),
            }) => {
                self.check_fit(at, run, || format!("{host}: {}", event.name()))?;
            }
            // The other facts are about no run as a whole.
            _ => {}
        }
        Ok(())
    }

    fn spend(&mut self, at: DateTime<Utc>) {
        self.occurrence_spent = self.spent_before(at).max(Some(at));
    }

    /// What was spent by a clock that was more than a day ahead of `at` does not count.
    fn spent_before(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.occurrence_spent.filter(|spent| *spent - at < TimeDelta::days(1))
    }

    /// Whether a run has started automatically, or was cancelled, in `occurrence` or later.
    pub(super) fn has_used(&self, occurrence: Occurrence) -> bool {
        self.occurrence_spent.is_some_and(|spent| occurrence.start <= spent)
    }

    /// The same, but not by a clock that was more than a day ahead.
    pub(super) fn has_used_lately(&self, occurrence: Occurrence) -> bool {
        self.spent_before(occurrence.end).is_some_and(|spent| occurrence.start <= spent)
    }

    /// A run may start automatically in a configured occurrence only, with enough of it left, and as the only one
    /// there.
    fn check_scheduled(
        &mut self,
        at: DateTime<Utc>,
        occurrence: Occurrence,
        not_after: DateTime<Utc>,
    ) -> Result<(), Violation> {
        let wrong = |text| Err(Violation::new("window", text));
        let Some(config) = self.configs.last().and_then(|(_, config)| config.as_ref()) else {
            return wrong("a run starts automatically without a configuration".to_owned());
        };
        let calendar =
            Calendar::new(&config.maintenance_windows, &config.deny_windows, Tz::UTC, Zones::built_in());
        if calendar.containing(at) != Ok(Some(occurrence)) || not_after != occurrence.end {
            return wrong(format!("a run starts automatically at {at} in {occurrence:?}, until {not_after}"));
        }
        if occurrence.end - at < needed(config) {
            return wrong(format!("a run starts automatically at {at}, too late in {occurrence:?}"));
        }
        let is_second = self.has_used_lately(occurrence);
        self.spend(at);
        self.scheduled += 1;
        if is_second {
            return wrong(format!("a second run starts automatically at {at} in {occurrence:?}"));
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

    /// Whether `run` was active at some time since `since`.
    pub(super) fn was_active(&self, run: &RunId, since: Micros) -> bool {
        self.seen.get(run).is_some_and(|run| run.was_active(since))
    }

    /// Whether a run that was active at some time since `since` has been stopping.
    pub(super) fn was_stopping(&self, since: Micros) -> bool {
        self.seen.values().any(|run| run.stopped.is_some() && run.was_active(since))
    }

    /// Whether a run has ended since `since`.
    pub(super) fn has_ended(&self, since: Micros) -> bool {
        self.seen.values().any(|run| run.ended.is_some_and(|ended| ended >= since))
    }

    /// Whether no run was active at some time between `since` and `now`.
    pub(super) fn was_idle(&self, since: Micros, now: Micros) -> bool {
        let active = |at: Micros| {
            let spans = |run: &RunSeen| run.started < at && run.ended.is_none_or(|ended| ended > at);
            self.seen.values().any(spans)
        };
        // The answer changes only where a run starts or ends.
        let ends = self.seen.values().filter_map(|run| run.ended).filter(|end| *end >= since);
        let starts = self.seen.values().map(|run| run.started).filter(|start| *start >= since);
        [since, now].into_iter().chain(ends).chain(starts).any(|at| !active(at))
    }
}

/// How much of an occurrence must be left for a run to start in it.
pub(crate) fn needed(config: &Config) -> TimeDelta {
    config.minimum_remaining.to_delta().max(expected(&config.rollout))
}

/// How long a host takes, as the operators say; zero if they do not.
pub(super) fn expected(rollout: &Rollout) -> TimeDelta {
    rollout.expected_duration.map_or(TimeDelta::zero(), Duration::to_delta)
}
