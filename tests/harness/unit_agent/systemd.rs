//! The systemd of a host, in memory: what it is told is done at once, unless a test holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use os_upgrade_protocol::{AppliedItem, ItemId, ItemKind, ReportedState, UnitItem, UnitReport, WantedState};

use crate::wait::eventually;

/// The units of a manifest by their names, each with the id of its item.
pub(super) type Wanted = BTreeMap<String, (ItemId, UnitItem)>;

/// What systemd does with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It starts it.
    Starts,
    /// It stops it.
    Stops,
}

#[derive(Debug)]
struct Event {
    host: String,
    step: Step,
    unit: String,
    at: Instant,
}

impl Event {
    fn line(&self) -> String {
        let step = match self.step {
            Step::Starts => "starts",
            Step::Stops => "stops",
        };
        format!("{} {step} {}", self.host, self.unit)
    }
}

/// What the systemd of each host of a test did, in order.
#[derive(Debug, Clone, Default)]
pub struct UnitLog(Arc<Mutex<Vec<Event>>>);

impl UnitLog {
    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, host: &str, step: Step, unit: &str) {
        let (host, unit) = (host.to_owned(), unit.to_owned());
        self.events().push(Event { host, step, unit, at: Instant::now() });
    }

    /// All of it, in lines such as `h01 starts app.service`.
    pub fn lines(&self) -> Vec<String> {
        self.events().iter().map(Event::line).collect()
    }

    /// The lines about one unit.
    pub fn lines_of(&self, unit: &str) -> Vec<String> {
        self.events().iter().filter(|event| event.unit == unit).map(Event::line).collect()
    }

    /// When the first such line was written, if one was.
    pub fn at(&self, line: &str) -> Option<Instant> {
        self.events().iter().find(|event| event.line() == line).map(|event| event.at)
    }

    /// Waits for the first such line.
    pub async fn await_line(&self, line: &str) -> Instant {
        eventually(&format!("the line {line:?}"), async || self.at(line)).await
    }
}

/// A unit that the host has.
#[derive(Debug)]
struct Loaded {
    id: ItemId,
    item: UnitItem,
    is_started: bool,
}

impl Loaded {
    /// Whether it need not be stopped to become `item`.
    fn is_same(&self, item: &UnitItem) -> bool {
        self.item.contents == item.contents && self.item.placement == item.placement
    }

    fn report(&self, name: &str) -> AppliedItem {
        let (state, active, sub) = if self.is_started {
            (ReportedState::Launched, "active", "running")
        } else {
            (ReportedState::Loaded, "inactive", "dead")
        };
        let word = str::to_owned;
        let unit = UnitReport { state, load: word("loaded"), active: word(active), sub: word(sub) };
        AppliedItem {
            kind: ItemKind::Unit,
            name: name.to_owned(),
            id: Some(self.id.clone()),
            error: None,
            unit: Some(unit),
        }
    }
}

/// The units of one host.
#[derive(Debug)]
pub(super) struct Systemd {
    host: String,
    log: UnitLog,
    units: BTreeMap<String, Loaded>,
    held: BTreeSet<(Step, String)>,
}

impl Systemd {
    pub(super) fn new(host: &str, log: &UnitLog) -> Self {
        Self { host: host.to_owned(), log: log.clone(), units: BTreeMap::new(), held: BTreeSet::new() }
    }

    /// From now on this step of this unit does not happen.
    pub(super) fn hold(&mut self, step: Step, unit: &str) {
        self.held.insert((step, unit.to_owned()));
    }

    /// The step may happen again.
    pub(super) fn release(&mut self, step: Step, unit: &str) {
        self.held.remove(&(step, unit.to_owned()));
    }

    fn is_held(&self, step: Step, unit: &str) -> bool {
        self.held.contains(&(step, unit.to_owned()))
    }

    /// Does what a manifest says, as far as it is not held.
    pub(super) fn follow(&mut self, wanted: &Wanted) {
        let is_gone =
            |(name, unit): &(&String, &Loaded)| wanted.get(*name).is_none_or(|(_, item)| !unit.is_same(item));
        let gone: Vec<String> = self.units.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
        for name in gone {
            if self.stop(&name) {
                self.units.remove(&name);
            }
        }
        for (name, (id, item)) in wanted {
            let new = || Loaded { id: id.clone(), item: item.clone(), is_started: false };
            let unit = self.units.entry(name.clone()).or_insert_with(new);
            if !unit.is_same(item) {
                // What was there before has not stopped yet.
                continue;
            }
            unit.id.clone_from(id);
            match item.state {
                WantedState::Launched => self.start(name),
                WantedState::Loaded => {
                    self.stop(name);
                }
            }
        }
    }

    fn start(&mut self, name: &str) {
        if self.is_held(Step::Starts, name) {
            return;
        }
        if let Some(unit) = self.units.get_mut(name).filter(|unit| !unit.is_started) {
            unit.is_started = true;
            self.log.add(&self.host, Step::Starts, name);
        }
    }

    /// Whether it does not run any more.
    fn stop(&mut self, name: &str) -> bool {
        if self.is_running(name) && self.is_held(Step::Stops, name) {
            return false;
        }
        if let Some(unit) = self.units.get_mut(name).filter(|unit| unit.is_started) {
            unit.is_started = false;
            self.log.add(&self.host, Step::Stops, name);
        }
        true
    }

    /// Everything stops, and nothing is loaded until a manifest is followed again.
    pub(super) fn reboot(&mut self) {
        for (name, unit) in std::mem::take(&mut self.units) {
            if unit.is_started {
                self.log.add(&self.host, Step::Stops, &name);
            }
        }
    }

    pub(super) fn is_running(&self, name: &str) -> bool {
        self.units.get(name).is_some_and(|unit| unit.is_started)
    }

    /// What the host has, for its report.
    pub(super) fn report(&self) -> Vec<AppliedItem> {
        self.units.iter().map(|(name, unit)| unit.report(name)).collect()
    }
}
