//! Placement: which unit goes to which machine, what leaves its machine and why, and why a unit waits.
//!
//! A unit goes to the least loaded machine that fits, ties by machine id, and stays there while it fits. What a unit requires of a machine
//! is in `misfit.rs`, what follows from other units in `fit.rs`. Where several units want the same place, `relations.rs` says which of them
//! comes first; `draft.rs` has the indexes that keep this fast.

mod components;
mod draft;
mod fit;
mod globals;
mod misfit;
mod moves;
mod planner;
mod relations;
mod site;
mod spread;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::draft::Draft;
pub use self::misfit::Misfit;
pub use self::moves::{Move, Taken};
use self::planner::Planner;
pub use self::site::{Machine, MachineStatus, Place, Site, Unit};
pub use self::spread::Globals;
use crate::{MachineId, UnitName};

impl Site {
    /// What to do now, in order, until nothing follows. A unit that was taken away is placed again when the caller says
    /// [`Place::Nowhere`], except from a lost machine, for whose report nobody waits.
    pub fn moves(&self) -> Vec<Move> {
        Planner::new(self).moves()
    }

    /// Takes units with `Evacuate=true` away from a machine, as far as they fit elsewhere, and the units that have to be where these
    /// are. Others stay; [`Self::misfits`] says why. The machine must be closed, or [`Self::moves`] may place them there again.
    pub fn evacuate(&self, machine: &MachineId) -> Vec<Move> {
        match self.machines.get_key_value(machine) {
            Some((machine, _)) => Planner::new(self).evacuate(machine),
            None => Vec::new(),
        }
    }

    /// Why a unit cannot be on each of these machines; machines on which it can be are absent. It does not matter whether the unit is
    /// wanted. To try something out, ask a changed site.
    pub fn misfits(&self, unit: &UnitName) -> BTreeMap<MachineId, Misfit> {
        Draft::new(self).misfits(unit, self.machines.keys())
    }

    /// Whether a unit may stay on a machine if it is there, or could be placed there now; for a global unit, whether it runs there.
    pub fn can_run(&self, unit: &UnitName, machine: &MachineId) -> Result<(), Misfit> {
        match Draft::new(self).misfits(unit, std::iter::once(machine)).remove(machine) {
            None => Ok(()),
            Some(misfit) => Err(misfit),
        }
    }

    /// The global units that run on each machine: in the order of their names, each that fits and conflicts neither with what is placed or
    /// leaving there nor with an earlier one. The machine's status does not matter: who wants a closed machine to get nothing new
    /// delivers only those that it already has.
    pub fn globals(&self) -> Globals<'_> {
        Globals::new(self)
    }

    /// Carries out a move. Nothing happens if there is no such unit.
    pub fn apply(&mut self, step: &Move) {
        let (name, place) = match step {
            Move::Place { unit, machine } => (unit, Place::On(*machine)),
            Move::Take { unit, machine, why: _ } => {
                let lingers = self.units.get(unit).is_some_and(|found| self.lingers(found, machine));
                (unit, if lingers { Place::Leaving(*machine) } else { Place::Nowhere })
            }
        };
        if let Some(unit) = self.units.get_mut(name) {
            unit.place = place;
        }
    }
}
