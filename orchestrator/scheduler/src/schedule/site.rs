//! What placement is decided on: units, with what they require and where they are, and machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{MachineId, Requirements, UnitName, UnitState};

/// The units and machines of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// Includes destroyed units, as inactive, while they may still run somewhere.
    pub units: BTreeMap<UnitName, Unit>,
    /// Excludes withdrawn machines. What was placed on these is taken away, and may run there until the caller says otherwise.
    pub machines: BTreeMap<MachineId, Machine>,
}

/// A unit, as far as placement goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// What its file requires. Clones share it.
    pub requirements: Arc<Requirements>,
    /// It is placed unless this is inactive.
    pub desired: UnitState,
    /// Where it is. A global unit has no place: [`Site::globals`] says where it runs.
    pub place: Place,
}

/// Where a unit is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// It runs nowhere, and may be placed.
    Nowhere,
    /// It belongs on this machine.
    On(MachineId),
    /// It was taken away from this machine and may still run there: others conflict with it there, and it is placed nowhere until the
    /// caller says [`Place::Nowhere`].
    Leaving(MachineId),
}

/// A machine, as far as placement goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// What units ask for with `MachineMetadata`.
    pub metadata: BTreeMap<String, String>,
    /// What may be placed there.
    pub status: MachineStatus,
}

/// What may be placed on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineStatus {
    /// Whatever fits.
    Open,
    /// Nothing new; what is there stays.
    Closed,
    /// Nothing, and what is there goes elsewhere.
    Lost,
}

impl Place {
    /// The machine on which the unit is, or from which it is leaving.
    pub fn machine(&self) -> Option<&MachineId> {
        match self {
            Place::Nowhere => None,
            Place::On(machine) | Place::Leaving(machine) => Some(machine),
        }
    }
}

impl Unit {
    fn is_wanted(&self) -> bool {
        match self.desired {
            UnitState::Inactive => false,
            UnitState::Loaded | UnitState::Launched => true,
        }
    }
}

/// A unit with its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) name: &'a UnitName,
    pub(super) unit: &'a Unit,
}

impl Named<'_> {
    pub(super) fn is_wanted(self) -> bool {
        self.unit.is_wanted()
    }

    /// Whether it wants one machine of its own, and could have it.
    pub(super) fn is_placeable(self) -> bool {
        self.is_wanted() && !self.unit.requirements.is_global && !self.name.is_template()
    }

    /// Whether it wants to run on every machine that fits.
    pub(super) fn is_wanted_global(self) -> bool {
        self.is_wanted() && self.unit.requirements.is_global && !self.name.is_template()
    }

    /// Whether it has `Conflicts`.
    pub(super) fn has_conflicts(self) -> bool {
        !self.unit.requirements.conflicts.is_empty()
    }

    /// Whether its own option keeps the other unit off its machine.
    pub(super) fn forbids(self, other: &UnitName) -> bool {
        self.name != other && self.unit.requirements.conflicts.iter().any(|pattern| pattern.matches(other))
    }

    pub(super) fn conflicts_with(self, other: Named<'_>) -> bool {
        self.forbids(other.name) || other.forbids(self.name)
    }

    pub(super) fn replaces(self, other: &UnitName) -> bool {
        self.name != other && self.unit.requirements.replaces.iter().any(|pattern| pattern.matches(other))
    }
}

impl Site {
    pub(super) fn named(&self, name: &UnitName) -> Option<Named<'_>> {
        self.units.get_key_value(name).map(|(name, unit)| Named { name, unit })
    }

    /// All units, by name.
    pub(super) fn named_units(&self) -> impl Iterator<Item = Named<'_>> {
        self.units.iter().map(|(name, unit)| Named { name, unit })
    }

    /// Whether a unit may still run on the machine from which it is taken. Nobody waits for a lost machine, and a unit that has become
    /// global may run everywhere.
    pub(super) fn lingers(&self, unit: &Unit, machine: &MachineId) -> bool {
        let is_lost = self.machines.get(machine).is_some_and(|machine| machine.status == MachineStatus::Lost);
        !is_lost && !unit.requirements.is_global
    }
}
