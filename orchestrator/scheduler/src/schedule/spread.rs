//! Where global units run, for those who ask about many machines.

use super::draft::{Draft, Occupants};
use super::misfit::Misfit;
use super::site::Site;
use crate::{MachineId, UnitName};

/// The global units that run on each machine of a site, found out once for all machines.
#[derive(Debug)]
pub struct Globals<'a> {
    draft: Draft<'a>,
}

impl<'a> Globals<'a> {
    pub(super) fn new(site: &'a Site) -> Self {
        Self { draft: Draft::new(site) }
    }

    /// Whether a global unit runs on a machine.
    pub fn runs(&self, unit: &UnitName, machine: &MachineId) -> bool {
        self.draft.runs_globally(unit, machine)
    }

    /// The global units that run on a machine, by name.
    pub fn on(&self, machine: &MachineId) -> impl Iterator<Item = &'a UnitName> {
        self.draft.occupants(machine).into_iter().flat_map(Occupants::globals)
    }

    /// Why a global unit does not run on a machine; absent if it does, or is not wanted.
    pub fn misfit(&self, unit: &UnitName, machine: &MachineId) -> Option<Misfit> {
        let named = self.draft.site.named(unit).filter(|named| named.is_wanted_global())?;
        self.draft.global_misfit(named, machine)
    }
}
