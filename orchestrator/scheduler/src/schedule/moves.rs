//! The moves that placement decides on.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::misfit::Misfit;
use crate::{MachineId, UnitName};

/// A change of a unit's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// The unit, which is nowhere, belongs on the machine.
    Place { unit: UnitName, machine: MachineId },
    /// The unit leaves the machine.
    Take { unit: UnitName, machine: MachineId, why: Taken },
}

/// Why a unit leaves its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Taken {
    /// It is to be inactive.
    NotWanted,
    /// It is global now, and runs on every machine that fits.
    BecameGlobal,
    /// Its machine is lost.
    Lost,
    /// It may no longer be on its machine.
    NoLongerFits { misfit: Misfit },
    /// A unit that replaces it takes its place.
    ReplacedBy { unit: UnitName },
    /// Its machine is evacuated.
    Evacuated,
}

impl Taken {
    /// The misfit that made the unit leave; absent if it left though it fitted.
    pub(super) fn misfit(self) -> Option<Misfit> {
        match self {
            Taken::NotWanted | Taken::BecameGlobal | Taken::Evacuated => None,
            Taken::Lost => Some(Misfit::Lost),
            Taken::NoLongerFits { misfit } => Some(misfit),
            Taken::ReplacedBy { unit } => Some(Misfit::ReplacedBy { unit }),
        }
    }
}
