//! Where units go: the site as the scheduler sees it, and the facts that follow from its moves.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_protocol::HostName;
use os_upgrade_protocol::limits::UNITS_MAX as UNITS_OF_HOST_MAX;
use os_upgrade_scheduler::{
    Machine as Candidate, MachineId, MachineStatus, Misfit, Move, Place, Silence, Site, Unit as Placeable,
    UnitName, UnitState,
};

use super::closed::Closed;
use super::fact::{TakenAway, UnitFact};
use super::rules::offer;
use super::state::{Machine, Standing, Unit};
use crate::state::State;
use crate::view::View;

/// The most units that are placed or taken away at once. What is left follows later.
const MOVED_AT_ONCE_MAX: usize = 1_000;

/// How units are spread over hosts.
#[derive(Debug, Default)]
struct Census<'a> {
    /// How many units are on each host, or may still be.
    counts: BTreeMap<&'a HostName, usize>,
    /// Hosts with units that leave and of which the scheduler does not know that.
    leaving: BTreeSet<&'a HostName>,
}

impl<'a> Census<'a> {
    fn new(state: &'a State) -> Self {
        let mut census = Self::default();
        for unit in state.units.units.values() {
            for host in unit.on.keys() {
                *census.counts.entry(host).or_default() += 1;
            }
            let known = leaving_place(unit).map(|(host, _)| host);
            let unknown = unit.leaves().map(|(host, _)| host).filter(|host| known != Some(*host));
            census.leaving.extend(unknown);
        }
        census
    }

    fn count(&self, host: &HostName) -> usize {
        self.counts.get(host).copied().unwrap_or_default()
    }
}

/// Where the scheduler sees that a unit leaves: it has one place for each.
fn leaving_place(unit: &Unit) -> Option<(&HostName, &Standing)> {
    let is_seen_elsewhere = unit.is_global() || unit.stays_on().next().is_some();
    if is_seen_elsewhere { None } else { unit.leaves().next() }
}

/// Facts that move units, until there are enough of them.
#[derive(Debug)]
struct Plan<'a> {
    facts: Vec<UnitFact>,
    /// How many more moves there may be.
    left: usize,
    counts: BTreeMap<&'a HostName, usize>,
}

impl<'a> Plan<'a> {
    fn is_full(&self) -> bool {
        self.left == 0
    }

    fn room(&self, host: &HostName) -> usize {
        UNITS_OF_HOST_MAX.saturating_sub(self.counts.get(host).copied().unwrap_or_default())
    }

    /// Places a unit on as many of these hosts as there are moves left.
    fn place(&mut self, unit: &UnitName, mut hosts: Vec<&'a HostName>) {
        hosts.truncate(self.left);
        if hosts.is_empty() {
            return;
        }
        for host in &hosts {
            *self.counts.entry(*host).or_default() += 1;
        }
        self.left -= hosts.len();
        let hosts = hosts.into_iter().cloned().collect();
        self.facts.push(UnitFact::Placed { unit: unit.clone(), hosts });
    }

    /// Takes a unit from as many of these hosts as there are moves left.
    fn take(&mut self, unit: &UnitName, mut hosts: Vec<HostName>, why: TakenAway) {
        hosts.truncate(self.left);
        if hosts.is_empty() {
            return;
        }
        self.left -= hosts.len();
        self.facts.push(UnitFact::Taken { unit: unit.clone(), hosts, why });
    }
}

impl State {
    /// What moves units now.
    pub(super) fn plan(&self, view: &View) -> Vec<UnitFact> {
        self.plan_at_most(view, MOVED_AT_ONCE_MAX)
    }

    /// What moves units now: at most so many of them. One that leaves a machine is placed elsewhere once it has stopped there.
    fn plan_at_most(&self, view: &View, most: usize) -> Vec<UnitFact> {
        if self.units.units.is_empty() {
            return Vec::new();
        }
        let census = Census::new(self);
        let mut site = self.schedule_with(view, &census);
        let hosts: BTreeMap<MachineId, &HostName> =
            self.units.machines.iter().map(|(host, machine)| (machine.id, host)).collect();
        let mut plan = Plan { facts: Vec::new(), left: most, counts: census.counts };
        self.take_surplus(&mut plan);
        for step in site.moves() {
            let (Move::Place { machine, .. } | Move::Take { machine, .. }) = &step;
            let Some(host) = hosts.get(machine).copied() else { continue };
            // Later moves may depend on this one.
            if plan.is_full() || (matches!(step, Move::Place { .. }) && plan.room(host) == 0) {
                return plan.facts;
            }
            site.apply(&step);
            match step {
                Move::Place { unit, machine: _ } => plan.place(&unit, vec![host]),
                Move::Take { unit, machine: _, why } => {
                    if let Some(why) = TakenAway::new(why) {
                        plan.take(&unit, vec![host.clone()], why);
                    }
                }
            }
        }
        self.spread_globals(&site, &hosts, &mut plan);
        plan.facts
    }

    /// A unit that is not global any more stays on the first of its machines.
    fn take_surplus(&self, plan: &mut Plan<'_>) {
        for (name, unit) in self.units.existing().filter(|(_, unit)| !unit.is_global()) {
            // Of one that cannot be read it is not known that it is not global.
            if unit.requirements.is_some() {
                let surplus = unit.stays_on().skip(1).map(|(host, _)| host.clone()).collect();
                plan.take(name, surplus, TakenAway::NoLongerGlobal);
            }
        }
    }

    /// Global units run on every machine that suits them. A closed one gets none, and keeps what it has.
    fn spread_globals<'a>(
        &self,
        site: &Site,
        hosts: &BTreeMap<MachineId, &'a HostName>,
        plan: &mut Plan<'a>,
    ) {
        let units: Vec<(&UnitName, &Unit)> =
            self.units.existing().filter(|(_, unit)| unit.is_global()).collect();
        if units.is_empty() {
            return;
        }
        let globals = site.globals();
        let mut missing: BTreeMap<&UnitName, Vec<&'a HostName>> = BTreeMap::new();
        let mut misplaced: BTreeMap<(&UnitName, Misfit), Vec<HostName>> = BTreeMap::new();
        for (id, machine) in &site.machines {
            let Some(host) = hosts.get(id).copied() else { continue };
            let mut room = plan.room(host);
            for &(name, unit) in &units {
                match unit.on.get(host).map(|standing| standing.leaving) {
                    None if machine.status == MachineStatus::Open && room > 0 && globals.runs(name, id) => {
                        room -= 1;
                        missing.entry(name).or_default().push(host);
                    }
                    Some(None) => {
                        if let Some(misfit) = globals.misfit(name, id) {
                            misplaced.entry((name, misfit)).or_default().push(host.clone());
                        }
                    }
                    Some(Some(_)) | None => {}
                }
            }
        }
        for ((name, misfit), hosts) in misplaced {
            plan.take(name, hosts, TakenAway::NoLongerFits { misfit });
        }
        for (name, hosts) in missing {
            plan.place(name, hosts);
        }
    }

    /// The site as the scheduler sees it.
    pub(super) fn schedule(&self, view: &View) -> Site {
        self.schedule_with(view, &Census::new(self))
    }

    fn schedule_with(&self, view: &View, census: &Census<'_>) -> Site {
        let closed = self.closed_with(view, census);
        let machines = self.units.machines.iter().map(|(host, machine)| {
            let status = if machine.lost_since.is_some() {
                MachineStatus::Lost
            } else if closed.contains_key(host) {
                MachineStatus::Closed
            } else {
                MachineStatus::Open
            };
            (machine.id, Candidate { metadata: machine.metadata.clone(), status })
        });
        let units = self.units.units.iter().map(|(name, unit)| (name.clone(), placeable(unit)));
        Site { units: units.collect(), machines: machines.collect() }
    }

    /// The machines that get no further unit, by host, and why. Lost ones are absent.
    pub fn closed_machines(&self, view: &View) -> BTreeMap<&HostName, Closed> {
        self.closed_with(view, &Census::new(self))
    }

    fn closed_with(&self, view: &View, census: &Census<'_>) -> BTreeMap<&HostName, Closed> {
        let silences = self.silences(view);
        let machines = self.units.machines.iter().filter(|(_, machine)| machine.lost_since.is_none());
        let closed = machines.filter_map(|(host, machine)| {
            let silence = silences.get(&machine.id);
            Some((host, self.why_closed(view, host, machine, (census, silence))?))
        });
        closed.collect()
    }

    fn why_closed(
        &self,
        view: &View,
        host: &HostName,
        machine: &Machine,
        (census, silence): (&Census<'_>, Option<&Silence>),
    ) -> Option<Closed> {
        let announced = offer(view, host).map(|offer| offer.id);
        if !self.enrolled(host).takes_part() {
            Some(Closed::NotEnrolled)
        } else if self.holds_slot(host) {
            Some(Closed::HoldsSlot)
        } else if self.pause.is_some() {
            Some(Closed::Paused)
        } else if self.enrolment.deferred.contains_key(host) {
            Some(Closed::Deferred)
        } else if announced != Some(machine.id) {
            Some(Closed::OtherId { announced })
        } else if !self.is_delivered(host) || self.is_ahead(view, host) {
            Some(Closed::Withheld)
        } else if matches!(silence, Some(Silence::Lost | Silence::Mass { .. })) {
            Some(Closed::Silent)
        } else if census.count(host) >= UNITS_OF_HOST_MAX {
            Some(Closed::Full)
        } else if census.leaving.contains(host) {
            Some(Closed::Leaving)
        } else {
            None
        }
    }
}

/// A unit as the scheduler sees it.
fn placeable(unit: &Unit) -> Placeable {
    // Where a global unit runs is asked otherwise.
    let on = if unit.is_global() { None } else { unit.stays_on().next() };
    let on = on.map(|(_, standing)| Place::On(standing.machine));
    let leaving = || leaving_place(unit).map(|(_, standing)| Place::Leaving(standing.machine));
    // One that cannot be read stays where it is, and goes nowhere else.
    let desired =
        if unit.requirements.is_some() || on.is_some() { unit.desired } else { UnitState::Inactive };
    let requirements = unit.requirements.clone().unwrap_or_default();
    Placeable { requirements, desired, place: on.or_else(leaving).unwrap_or(Place::Nowhere) }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn host(number: usize) -> HostName {
        HostName::new(&format!("h{number}")).unwrap()
    }

    /// A global unit that suits no machine by now, on three of them.
    fn state() -> State {
        let mut state = State::default();
        let mut apply =
            |fact: UnitFact| state.apply(DateTime::UNIX_EPOCH, &fact.into()).expect("it fits the state");
        for number in 1..=3 {
            let machine = MachineId::new(&format!("{number:032x}")).unwrap();
            let (metadata, address) = (BTreeMap::new(), String::new());
            apply(UnitFact::MachineJoined { host: host(number), machine, metadata, address, actor: None });
        }
        let name = UnitName::new("g.service").unwrap();
        for options in ["Global=true", "Global=true\nMachineMetadata=rack=r1"] {
            let (contents, actor) = (format!("[X-Fleet]\n{options}\n"), "eve".to_owned());
            let desired = UnitState::Launched;
            apply(UnitFact::Submitted { name: name.clone(), contents, desired, actor });
            let hosts = (1..=3).map(host).collect();
            apply(UnitFact::Placed { unit: name.clone(), hosts });
        }
        state
    }

    /// For one reason, a fact for all hosts; the rest follows later.
    #[test]
    fn global_units_leave_many_hosts_at_once() {
        let state = state();
        for (most, count) in [(0, 0), (2, 2), (3, 3), (4, 3)] {
            let facts = state.plan_at_most(&View::default(), most);
            let taken = |fact: &UnitFact| {
                let UnitFact::Taken { hosts, why: TakenAway::NoLongerFits { .. }, .. } = fact else {
                    panic!("{fact:?}")
                };
                hosts.len()
            };
            let counts: Vec<usize> = facts.iter().map(taken).collect();
            assert_eq!(counts, if count == 0 { vec![] } else { vec![count] }, "{most}");
        }
    }
}
