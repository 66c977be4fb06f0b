//! Why a unit cannot be on a machine, and what it requires of the machine itself.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::site::{Machine, Named, Unit};
use crate::{MachineId, UnitName};

/// Why a unit cannot be on a machine.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Misfit {
    /// There is no such unit.
    NoSuchUnit,
    /// There is no such machine, or it was withdrawn.
    NoSuchMachine,
    /// Templates run nowhere, only their instances do.
    Template,
    /// It was taken away from `machine` and may still run there.
    Leaving { machine: MachineId },
    /// It belongs on another machine.
    OtherMachine { wanted: MachineId },
    /// The machine's metadata has none of these values for this key.
    Metadata { key: String, wanted: BTreeSet<String> },
    /// The machine is lost.
    Lost,
    /// The machine gets nothing new.
    Closed,
    /// The unit whose machine it needs does not exist.
    PeerMissing { peer: UnitName },
    /// The unit whose machine it needs is on another one, or, if that is absent, is not placed or does not run on this one.
    PeerElsewhere { peer: UnitName, machine: Option<MachineId> },
    /// This unit is there, and one of the two conflicts with the other.
    Conflict { unit: UnitName },
    /// This unit is there, and replaces it.
    ReplacedBy { unit: UnitName },
    /// The two replace each other, directly or through other units. The other one is there, or on another machine: only one of them runs.
    Circle { unit: UnitName },
}

/// Whether the machine's metadata has, for each key, one of the values that the unit wants.
pub(super) fn has_metadata(unit: &Unit, machine: &Machine) -> bool {
    unmet(unit, machine).is_none()
}

/// The key whose value on the machine is none that the unit wants, with those.
fn unmet<'a>(unit: &'a Unit, machine: &Machine) -> Option<(&'a String, &'a BTreeSet<String>)> {
    let mut wanted = unit.requirements.machine_metadata.iter();
    wanted.find(|(key, values)| machine.metadata.get(*key).is_none_or(|value| !values.contains(value)))
}

/// Why a unit can never be on this machine, whatever else is there.
pub(super) fn unsuited(named: Named<'_>, id: &MachineId, machine: &Machine) -> Option<Misfit> {
    if named.name.is_template() {
        return Some(Misfit::Template);
    }
    match &named.unit.requirements.machine_id {
        Some(wanted) if wanted != id => Some(Misfit::OtherMachine { wanted: *wanted }),
        Some(_) | None => {
            let (key, wanted) = unmet(named.unit, machine)?;
            Some(Misfit::Metadata { key: key.clone(), wanted: wanted.clone() })
        }
    }
}
