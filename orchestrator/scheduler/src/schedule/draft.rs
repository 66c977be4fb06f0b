//! A site while moves are being decided: where units are after the moves so far, and who is on each machine.

use std::collections::{BTreeMap, BTreeSet};

use super::globals::running;
use super::relations::Relations;
use super::site::{MachineStatus, Named, Place, Site, Unit};
use crate::{MachineId, UnitName};

/// The place of a unit that is somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot<'a> {
    On(&'a MachineId),
    Leaving(&'a MachineId),
}

impl<'a> Spot<'a> {
    pub(super) fn machine(self) -> &'a MachineId {
        match self {
            Spot::On(machine) | Spot::Leaving(machine) => machine,
        }
    }
}

/// Who is on a machine.
#[derive(Debug, Default)]
pub(super) struct Occupants<'a> {
    placed: BTreeMap<&'a UnitName, &'a Unit>,
    leaving: BTreeMap<&'a UnitName, &'a Unit>,
    globals: BTreeSet<&'a UnitName>,
}

impl<'a> Occupants<'a> {
    /// The units that belong here, by name.
    pub(super) fn placed(&self) -> impl Iterator<Item = Named<'a>> {
        self.placed.iter().map(|(&name, &unit)| Named { name, unit })
    }

    pub(super) fn has_placed(&self, unit: &UnitName) -> bool {
        self.placed.contains_key(unit)
    }

    /// The global units that run here, by name.
    pub(super) fn globals(&self) -> impl Iterator<Item = &'a UnitName> {
        self.globals.iter().copied()
    }

    /// The units that belong here or may still run here.
    pub(super) fn present(&self) -> impl Iterator<Item = Named<'a>> {
        self.placed.iter().chain(&self.leaving).map(|(&name, &unit)| Named { name, unit })
    }
}

/// A site with the moves decided so far.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) site: &'a Site,
    pub(super) relations: Relations<'a>,
    /// The global units that are wanted, by name.
    pub(super) globals: Vec<Named<'a>>,
    /// The units with `Conflicts`, by name: the only ones that can conflict with a unit that has none.
    pub(super) forbidding: Vec<Named<'a>>,
    spots: BTreeMap<&'a UnitName, Spot<'a>>,
    occupants: BTreeMap<&'a MachineId, Occupants<'a>>,
    /// The open machines, the least loaded first, with the number of units that belong there.
    loads: BTreeSet<(usize, &'a MachineId)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(site: &'a Site) -> Self {
        let open = site.machines.iter().filter(|(_, machine)| machine.status == MachineStatus::Open);
        let mut draft = Self {
            site,
            relations: Relations::new(site),
            globals: site.named_units().filter(|named| named.is_wanted_global()).collect(),
            forbidding: site.named_units().filter(|named| named.has_conflicts()).collect(),
            spots: BTreeMap::new(),
            occupants: site.machines.keys().map(|id| (id, Occupants::default())).collect(),
            loads: open.map(|(id, _)| (0, id)).collect(),
        };
        for named in site.named_units() {
            match &named.unit.place {
                Place::Nowhere => {}
                Place::On(machine) => draft.occupy(named, Some(Spot::On(machine))),
                Place::Leaving(machine) => draft.occupy(named, Some(Spot::Leaving(machine))),
            }
        }
        for machine in site.machines.keys() {
            draft.start_globals(machine);
        }
        draft
    }

    /// Where a unit is; absent if it is nowhere.
    pub(super) fn spot(&self, unit: &UnitName) -> Option<Spot<'a>> {
        self.spots.get(unit).copied()
    }

    pub(super) fn is_on(&self, unit: &UnitName, machine: &MachineId) -> bool {
        self.occupants.get(machine).is_some_and(|occupants| occupants.has_placed(unit))
    }

    /// Whether a global unit runs on a machine.
    pub(super) fn runs_globally(&self, unit: &UnitName, machine: &MachineId) -> bool {
        self.occupants.get(machine).is_some_and(|occupants| occupants.globals.contains(unit))
    }

    /// All units that are somewhere, by name.
    pub(super) fn spots(&self) -> impl Iterator<Item = (&'a UnitName, Spot<'a>)> {
        self.spots.iter().map(|(&unit, &spot)| (unit, spot))
    }

    /// Absent for a machine that the site does not have and on which nothing ever was.
    pub(super) fn occupants(&self, machine: &MachineId) -> Option<&Occupants<'a>> {
        self.occupants.get(machine)
    }

    /// All units that belong on a machine, with the machine.
    pub(super) fn placed(&self) -> Vec<(Named<'a>, &'a MachineId)> {
        let on = |(&machine, occupants): (&&'a MachineId, &Occupants<'a>)| {
            occupants.placed().map(|named| (named, machine)).collect::<Vec<_>>()
        };
        self.occupants.iter().flat_map(on).collect()
    }

    /// The open machines, the least loaded first.
    pub(super) fn open_machines(&self) -> impl Iterator<Item = &'a MachineId> {
        self.loads.iter().map(|&(_, machine)| machine)
    }

    /// Takes a unit away from a machine.
    pub(super) fn leave(&mut self, named: Named<'a>, machine: &'a MachineId) {
        let lingers = self.site.lingers(named.unit, machine);
        self.put(named, lingers.then_some(Spot::Leaving(machine)));
    }

    /// Moves a unit; `None` is nowhere.
    pub(super) fn put(&mut self, named: Named<'a>, spot: Option<Spot<'a>>) {
        let before = self.spot(named.name);
        self.occupy(named, spot);
        for changed in before.into_iter().chain(spot) {
            self.start_globals(changed.machine());
        }
    }

    fn occupy(&mut self, Named { name, unit }: Named<'a>, spot: Option<Spot<'a>>) {
        if let Some(before) = self.spots.remove(name) {
            self.change(before.machine(), |occupants| {
                occupants.placed.remove(name);
                occupants.leaving.remove(name);
            });
        }
        let Some(spot) = spot else { return };
        self.spots.insert(name, spot);
        self.change(spot.machine(), |occupants| {
            let units = match spot {
                Spot::On(_) => &mut occupants.placed,
                Spot::Leaving(_) => &mut occupants.leaving,
            };
            units.insert(name, unit);
        });
    }

    fn change(&mut self, machine: &'a MachineId, change: impl FnOnce(&mut Occupants<'a>)) {
        let occupants = self.occupants.entry(machine).or_default();
        let load = occupants.placed.len();
        change(occupants);
        // Machines that are not open are not in the order.
        if self.loads.remove(&(load, machine)) {
            self.loads.insert((occupants.placed.len(), machine));
        }
    }

    /// Finds out anew which global units run on a machine.
    fn start_globals(&mut self, machine: &'a MachineId) {
        let Some(found) = self.site.machines.get(machine) else { return };
        if !self.globals.is_empty() {
            let occupants = self.occupants.entry(machine).or_default();
            let present = occupants.present().collect();
            occupants.globals = running(self.globals.iter().copied(), present, machine, found);
        }
    }
}
