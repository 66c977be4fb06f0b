//! Rule `missed`: a run that was due, did not start and no longer can is recorded, once, and no other is.
//!
//! What was due is judged by the configuration and the right time. A leader whose clock can be relied on adds nothing to
//! the journal before it has recorded what was missed until then. A run may start in an occurrence that was recorded as
//! missed: the clock has stepped back since, and to skip the window would be worse than a record too many.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Occurrence, Zones};
use os_upgrade_kernel::fact::{ConfigFact, ControlFact, RunFact};
use os_upgrade_kernel::{Config, Fact, MissedRun};

use super::clock::{DecisionClock, ERROR_MAX};
use super::runs::{Runs, needed};
use super::violation::Violation;

/// What is known of missed runs.
#[derive(Debug, Default)]
pub(super) struct Missed {
    in_force: Option<InForce>,
    /// The missed runs that are recorded, by start and last possible start: a changed window may start when it did before.
    recorded: BTreeSet<(DateTime<Utc>, DateTime<Utc>)>,
    /// Those that a clock that was wrong has recorded. One that was right may record them again.
    recorded_wrongly: BTreeSet<(DateTime<Utc>, DateTime<Utc>)>,
    /// Up to which start earlier missed runs are only counted.
    counted: Option<DateTime<Utc>>,
    /// Times between the right one and that of a clock ahead of it. What could start until then counts as settled.
    ahead: Vec<Occurrence>,
}

/// A configuration with windows.
#[derive(Debug)]
struct InForce {
    config: Config,
    /// Since when at the earliest, by any clock.
    earliest: DateTime<Utc>,
    /// Until when its occurrences were checked; first the time at which it came into force.
    checked: DateTime<Utc>,
}

/// A time at which a decision was made, or a record was appended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// By the clock of the leader, as journaled.
    pub(super) at: DateTime<Utc>,
    /// What that clock was like.
    pub(super) clock: DecisionClock,
    /// The right time at which the record was appended.
    pub(super) appended: DateTime<Utc>,
}

impl Moment {
    /// The right time of the decision.
    fn decided(self) -> DateTime<Utc> {
        self.at - self.clock.error
    }
}

impl Missed {
    /// The number of missed runs that are recorded one by one.
    pub(super) fn count(&self) -> u64 {
        self.recorded.len() as u64
    }

    /// A fact was added to the journal; `runs` is what was there before it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, moment: Moment, fact: &Fact, runs: &Runs) -> Result<(), Violation> {
        let is_right = moment.clock.error.abs() <= ERROR_MAX;
        if let Fact::Run(RunFact::Missed(missed)) = fact {
            if !is_right {
                self.recorded_wrongly.insert((missed.start, missed.latest));
                self.ahead.push(Occurrence { start: moment.decided(), end: missed.latest });
                return Ok(());
            }
            return self.missed(moment, missed, runs);
        }
        if moment.clock.is_reliable && is_right {
            let until = moment.decided().min(moment.at);
            if let Some(occurrence) = self.unrecorded(until, runs) {
                let text = format!("at {until} nobody has recorded that no run started in {occurrence:?}");
                return Err(Violation::new("missed", text));
            }
            if let Some(in_force) = &mut self.in_force {
                in_force.checked = in_force.checked.max(until);
            }
        }
        match fact {
            Fact::Config(ConfigFact::Replaced { config, .. }) => {
                self.ahead.push(Occurrence { start: moment.decided(), end: moment.at });
                let with_windows = config.clone().filter(|config| !config.maintenance_windows.is_empty());
                self.in_force = with_windows.map(|config| InForce {
                    config,
                    earliest: moment.at.min(moment.decided()),
                    checked: moment.appended,
                });
            }
            // Perhaps nothing was settled before, and what was missed counts from the time of this clock.
            Fact::Control(ControlFact::Fenced { .. }) => {
                self.ahead.push(Occurrence { start: moment.decided(), end: moment.at });
                if let Some(in_force) = &mut self.in_force {
                    in_force.earliest = in_force.earliest.min(moment.at);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An occurrence in which a run was missed by `until` that is not recorded.
    pub(super) fn unrecorded(&self, until: DateTime<Utc>, runs: &Runs) -> Option<Occurrence> {
        let in_force = self.in_force.as_ref()?;
        let passed = in_force.calendar().occurrences(in_force.checked);
        let passed = passed.map(|found| found.expect("windows that were accepted are clear"));
        let mut passed = passed.take_while(|occurrence| occurrence.start < until);
        passed.find(|occurrence| {
            let latest = in_force.latest(*occurrence);
            let is_settled = || self.ahead.iter().any(|ahead| ahead.start < latest && latest <= ahead.end);
            let is_counted = self.counted.is_some_and(|counted| occurrence.start < counted);
            !is_too_short(*occurrence, latest)
                && (in_force.checked < latest && latest < until)
                && !(runs.has_used(*occurrence) || self.is_recorded(in_force, *occurrence))
                && !(is_counted || is_settled())
        })
    }

    fn is_recorded(&self, in_force: &InForce, occurrence: Occurrence) -> bool {
        let run = (occurrence.start, in_force.latest(occurrence));
        self.recorded.contains(&run) || self.recorded_wrongly.contains(&run)
    }

    /// A run is recorded as missed.
    fn missed(&mut self, moment: Moment, missed: &MissedRun, runs: &Runs) -> Result<(), Violation> {
        let MissedRun { start, latest, end, reason: _, unrecorded } = missed;
        let occurrence = Occurrence { start: *start, end: *end };
        let why = match &self.in_force {
            None => Some("no windows are configured"),
            Some(in_force) if !in_force.has(occurrence) || in_force.latest(occurrence) != *latest => {
                Some("it is not in the configuration")
            }
            Some(_) if is_too_short(occurrence, *latest) => Some("it was too short for a run"),
            Some(in_force) if *latest <= in_force.earliest - ERROR_MAX => {
                Some("it was over when it was configured")
            }
            Some(_) if *latest >= moment.at || *latest >= moment.decided() + ERROR_MAX => {
                Some("its run could still start")
            }
            Some(_) if runs.has_used_lately(occurrence) => Some("a run started or was cancelled in it"),
            Some(_) => None,
        };
        if *unrecorded > 0 {
            self.counted = Some(*start);
        }
        let is_new = self.recorded.insert((*start, *latest));
        let why = why.or_else(|| (!is_new).then_some("it is recorded already"));
        why.map_or(Ok(()), |why| {
            Err(Violation::new("missed", format!("at {}: {missed:?}, but {why}", moment.decided())))
        })
    }
}

/// Whether a leader has no time to start a run in `occurrence`, as it must by `latest`.
fn is_too_short(occurrence: Occurrence, latest: DateTime<Utc>) -> bool {
    latest - occurrence.start < TimeDelta::seconds(1)
}

impl InForce {
    fn calendar(&self) -> Calendar<'_> {
        Calendar::new(&self.config.maintenance_windows, &self.config.deny_windows, Tz::UTC, Zones::built_in())
    }

    fn has(&self, occurrence: Occurrence) -> bool {
        self.calendar().containing(occurrence.start) == Ok(Some(occurrence))
    }

    /// Until when a run can start in `occurrence`.
    fn latest(&self, occurrence: Occurrence) -> DateTime<Utc> {
        occurrence.end - needed(&self.config)
    }
}
