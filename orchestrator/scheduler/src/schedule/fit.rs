//! Whether a unit fits on a machine, given who else is where.
//!
//! Two questions differ. A unit that is to be placed must not conflict with anything on the machine, and nothing there may replace it. One
//! that is there stays if it can: what is leaving does not drive it out, global units give way to it, and of two that conflict the
//! earlier by name stays.

use std::collections::BTreeMap;

use super::draft::{Draft, Spot};
use super::misfit::{Misfit, has_metadata, unsuited};
use super::moves::Taken;
use super::site::{MachineStatus, Named, Unit};
use crate::{MachineId, UnitName};

/// The units that keep a unit off machines.
#[derive(Debug)]
pub(super) struct Rivals<'a> {
    /// For each machine a unit there with which it conflicts.
    conflicts: BTreeMap<&'a MachineId, &'a UnitName>,
    /// For each machine a unit there that replaces it.
    replacers: BTreeMap<&'a MachineId, &'a UnitName>,
    /// The global units with which it conflicts.
    globals: Vec<&'a UnitName>,
    /// A unit in a circle of replacement with it that is anywhere.
    opponent: Option<&'a UnitName>,
}

impl Rivals<'_> {
    /// Whether no unit keeps it off any machine.
    pub(super) fn is_empty(&self) -> bool {
        self.conflicts.is_empty()
            && self.replacers.is_empty()
            && self.globals.is_empty()
            && self.opponent.is_none()
    }
}

impl<'a> Draft<'a> {
    /// Finds the rivals of a unit once for all machines.
    pub(super) fn rivals(&self, named: Named<'a>) -> Rivals<'a> {
        let mut conflicts = BTreeMap::new();
        if named.has_conflicts() {
            for (other, spot) in self.spots().filter(|(other, _)| named.forbids(other)) {
                conflicts.entry(spot.machine()).or_insert(other);
            }
        }
        for other in self.forbidding.iter().filter(|other| other.forbids(named.name)) {
            if let Some(spot) = self.spot(other.name) {
                conflicts.entry(spot.machine()).or_insert(other.name);
            }
        }
        let mut replacers = BTreeMap::new();
        for &by in self.relations.replacers(named.name) {
            if let Some(Spot::On(machine)) = self.spot(by) {
                replacers.entry(machine).or_insert(by);
            }
        }
        let globals = self.globals.iter().filter(|global| global.conflicts_with(named));
        let mut opponents = self.relations.opponents(named.name).iter().copied();
        Rivals {
            conflicts,
            replacers,
            globals: globals.map(|global| global.name).collect(),
            opponent: opponents.find(|opponent| self.spot(opponent).is_some()),
        }
    }

    /// The least loaded machine, except one, on which a unit fits that is nowhere there.
    pub(super) fn best(
        &self,
        named: Named<'a>,
        rivals: &Rivals<'a>,
        except: Option<&MachineId>,
    ) -> Option<&'a MachineId> {
        // Most machines fail here, and explaining why costs more than finding it out.
        let is_suitable = |id: &MachineId| {
            self.site.machines.get(id).is_some_and(|machine| has_metadata(named.unit, machine))
        };
        self.candidates(named.unit).find(|id| {
            except != Some(*id) && is_suitable(id) && self.entry_misfit(named, rivals, id).is_none()
        })
    }

    /// The machines that may suit a unit, the best first.
    fn candidates(&self, unit: &'a Unit) -> Box<dyn Iterator<Item = &'a MachineId> + '_> {
        let requirements = &unit.requirements;
        if let Some(wanted) = &requirements.machine_id {
            return Box::new(self.site.machines.get_key_value(wanted).map(|(id, _)| id).into_iter());
        }
        let is_global = |peer: &UnitName| self.globals.iter().any(|global| global.name == peer);
        match requirements.machine_of.iter().find(|peer| !is_global(peer)) {
            Some(peer) => Box::new(self.spot(peer).map(Spot::machine).into_iter()),
            None => Box::new(self.open_machines()),
        }
    }

    /// Why a unit cannot be placed on a machine where it is not.
    fn entry_misfit(&self, named: Named<'_>, rivals: &Rivals<'_>, id: &MachineId) -> Option<Misfit> {
        let Some(machine) = self.site.machines.get(id) else { return Some(Misfit::NoSuchMachine) };
        let status = || match machine.status {
            MachineStatus::Open => None,
            MachineStatus::Closed => Some(Misfit::Closed),
            MachineStatus::Lost => Some(Misfit::Lost),
        };
        let conflict = || {
            let global = || rivals.globals.iter().find(|global| self.runs_globally(global, id));
            let unit = rivals.conflicts.get(id).or_else(global)?;
            Some(Misfit::Conflict { unit: (*unit).clone() })
        };
        let replacer = || rivals.replacers.get(id).map(|by| Misfit::ReplacedBy { unit: (*by).clone() });
        let opponent = || rivals.opponent.map(|opponent| Misfit::Circle { unit: opponent.clone() });
        unsuited(named, id, machine)
            .or_else(status)
            .or_else(|| self.peer_misfit(named.unit, id))
            .or_else(conflict)
            .or_else(replacer)
            .or_else(opponent)
    }

    /// The first peer of a unit that is not on the machine.
    fn peer_misfit(&self, unit: &Unit, id: &MachineId) -> Option<Misfit> {
        unit.requirements.machine_of.iter().find_map(|peer| {
            if self.runs_globally(peer, id) || self.is_on(peer, id) {
                return None;
            }
            let peer = peer.clone();
            if !self.site.units.contains_key(&peer) {
                return Some(Misfit::PeerMissing { peer });
            }
            let machine = match self.spot(&peer) {
                Some(Spot::On(machine)) => Some(*machine),
                Some(Spot::Leaving(_)) | None => None,
            };
            Some(Misfit::PeerElsewhere { peer, machine })
        })
    }

    /// Why a unit leaves its machine, apart from [`Self::why_ousted`].
    pub(super) fn why_taken(&self, named: Named<'_>, id: &MachineId) -> Option<Taken> {
        if !named.is_wanted() {
            return Some(Taken::NotWanted);
        }
        if named.unit.requirements.is_global {
            return Some(Taken::BecameGlobal);
        }
        let Some(machine) = self.site.machines.get(id) else {
            return Some(Taken::NoLongerFits { misfit: Misfit::NoSuchMachine });
        };
        if machine.status == MachineStatus::Lost {
            return Some(Taken::Lost);
        }
        let misfit = unsuited(named, id, machine).or_else(|| self.peer_misfit(named.unit, id))?;
        Some(Taken::NoLongerFits { misfit })
    }

    /// Why a unit leaves its machine in favour of another one. As the site begins with a conflict only if a unit's file was changed, it
    /// matters little which of the two goes, but one has to stay.
    pub(super) fn why_ousted(&self, named: Named<'_>, id: &MachineId) -> Option<Taken> {
        let here = self.occupants(id)?;
        if let Some(by) = self.relations.replacers(named.name).iter().find(|by| here.has_placed(by)) {
            return Some(Taken::ReplacedBy { unit: (*by).clone() });
        }
        let mut earlier = here.placed().take_while(|other| other.name < named.name);
        if let Some(other) = earlier.find(|other| other.conflicts_with(named)) {
            return Some(Taken::NoLongerFits { misfit: Misfit::Conflict { unit: other.name.clone() } });
        }
        let mut opponents = self.relations.opponents(named.name).iter().filter(|other| **other < named.name);
        let opponent = opponents.find(|other| matches!(self.spot(other), Some(Spot::On(_))))?;
        Some(Taken::NoLongerFits { misfit: Misfit::Circle { unit: (*opponent).clone() } })
    }

    /// Why a unit cannot be on each of these machines, without those on which it can be.
    pub(super) fn misfits<'i>(
        &self,
        unit: &UnitName,
        machines: impl Iterator<Item = &'i MachineId>,
    ) -> BTreeMap<MachineId, Misfit> {
        let Some(named) = self.site.named(unit) else {
            return machines.map(|id| (*id, Misfit::NoSuchUnit)).collect();
        };
        let rivals = self.rivals(named);
        let misfit = |id: &MachineId| self.misfit(named, &rivals, id).map(|misfit| (*id, misfit));
        machines.filter_map(misfit).collect()
    }

    fn misfit(&self, named: Named<'_>, rivals: &Rivals<'_>, id: &MachineId) -> Option<Misfit> {
        if named.unit.requirements.is_global {
            return self.global_misfit(named, id);
        }
        match self.spot(named.name) {
            Some(Spot::On(on)) if on == id => {
                self.why_taken(named, id).or_else(|| self.why_ousted(named, id)).and_then(Taken::misfit)
            }
            Some(Spot::Leaving(machine)) => Some(Misfit::Leaving { machine: *machine }),
            Some(Spot::On(_)) | None => self.entry_misfit(named, rivals, id),
        }
    }

    /// Why a global unit does not run on a machine.
    pub(super) fn global_misfit(&self, named: Named<'_>, id: &MachineId) -> Option<Misfit> {
        let (Some(machine), Some(here)) = (self.site.machines.get(id), self.occupants(id)) else {
            return Some(Misfit::NoSuchMachine);
        };
        if self.runs_globally(named.name, id) {
            return None;
        }
        let conflict = || {
            let globals = self.globals.iter().filter(|global| self.runs_globally(global.name, id));
            let mut others = here.present().chain(globals.copied());
            let unit = others.find(|other| other.conflicts_with(named))?.name.clone();
            Some(Misfit::Conflict { unit })
        };
        unsuited(named, id, machine).or_else(conflict)
    }
}
