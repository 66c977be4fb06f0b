//! Units and machines, as the state knows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::{HostName, Revision};
use os_upgrade_scheduler::{MachineId, Requirements, UnitFile, UnitName, UnitState};
use serde::{Deserialize, Serialize};

use crate::left_out::is_default;

/// Most units of a site.
pub const UNITS_MAX: usize = 4096;
/// The most bytes that the files of all units have together.
pub const UNITS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The units and machines of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "Stored")]
pub struct Units {
    /// The units. One that is destroyed is among them until it has stopped everywhere.
    pub units: OrdMap<UnitName, Unit>,
    /// The machines, by host.
    pub machines: OrdMap<HostName, Machine>,
    /// How many times a unit was placed on a host. Each time has its number.
    pub placements: u64,
}

/// A host that runs units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    pub id: MachineId,
    /// The labels that the host announced when it was approved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The address that it announced then; empty if it announced none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Since when that counts.
    pub since: DateTime<Utc>,
    /// Since when its units go elsewhere because its agent is silent; absent if it is not lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<DateTime<Utc>>,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unit {
    #[serde(with = "text")]
    pub file: UnitFile,
    /// What the file asks of machines. It is read from the file and not stored; absent if this version cannot read it: then the unit stays
    /// where it is, and is placed nowhere else.
    #[serde(skip)]
    pub requirements: Option<Arc<Requirements>>,
    /// The state that operators want.
    pub desired: UnitState,
    /// The hosts on which it is, or may still be. A unit that is not global belongs on one at most.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub on: OrdMap<HostName, Standing>,
    /// Whether operators want it no more. It is only waited until it has stopped everywhere.
    #[serde(default, skip_serializing_if = "is_default")]
    pub destroyed: bool,
    /// Who changed its file or its state last.
    pub actor: String,
    /// When that was.
    pub since: DateTime<Utc>,
}

/// That a unit is on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Standing {
    /// The machine that the host is.
    pub machine: MachineId,
    /// The number of its placement.
    pub placement: u64,
    /// The manifest that took it away; absent while it belongs there. The unit may run until a report that follows this manifest does not
    /// have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Revision>,
}

/// [`Units`] without what follows from the files.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Stored {
    units: OrdMap<UnitName, Unit>,
    machines: OrdMap<HostName, Machine>,
    placements: u64,
}

impl From<Stored> for Units {
    fn from(stored: Stored) -> Self {
        let Stored { units, machines, placements } = stored;
        let read = |(name, unit): (UnitName, Unit)| {
            let requirements = read_requirements(&name, &unit.file);
            (name, Unit { requirements, ..unit })
        };
        Self { units: units.into_iter().map(read).collect(), machines, placements }
    }
}

/// What `file` asks of machines, if this version can read it.
pub(super) fn read_requirements(name: &UnitName, file: &UnitFile) -> Option<Arc<Requirements>> {
    Requirements::read(name, file).ok().map(Arc::new)
}

impl Units {
    /// Whether there was never a unit or a machine.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// The unit `name`, unless it is destroyed.
    pub fn unit(&self, name: &UnitName) -> Option<&Unit> {
        self.units.get(name).filter(|unit| !unit.destroyed)
    }

    /// The units that are not destroyed, by name.
    pub fn existing(&self) -> impl Iterator<Item = (&UnitName, &Unit)> {
        self.units.iter().filter(|(_, unit)| !unit.destroyed)
    }

    /// The machine with this id, and its host.
    pub fn machine(&self, id: &MachineId) -> Option<(&HostName, &Machine)> {
        self.machines.iter().find(|(_, machine)| machine.id == *id)
    }

    /// How many bytes the files of all units have.
    pub(super) fn bytes(&self) -> usize {
        self.units.values().map(|unit| unit.file.text().len()).sum()
    }
}

impl Unit {
    /// The hosts on which it belongs.
    pub fn stays_on(&self) -> impl Iterator<Item = (&HostName, &Standing)> {
        self.on.iter().filter(|(_, standing)| standing.leaving.is_none())
    }

    /// The hosts on which it no longer belongs and may still run.
    pub fn leaves(&self) -> impl Iterator<Item = (&HostName, &Standing)> {
        self.on.iter().filter(|(_, standing)| standing.leaving.is_some())
    }

    /// Whether it runs on every machine that fits.
    pub fn is_global(&self) -> bool {
        self.requirements.as_ref().is_some_and(|requirements| requirements.is_global)
    }
}

/// A unit file as its text.
mod text {
    use os_upgrade_scheduler::UnitFile;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(file: &UnitFile, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(file.text())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UnitFile, D::Error> {
        UnitFile::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version that reads less of `[X-Fleet]` than the one that took the file keeps the unit.
    #[test]
    fn units_are_kept_whose_requirements_cannot_be_read() {
        let json = r#"{"units":{"a.service":{"file":"[X-Fleet]\nGlobal=perhaps\n","desired":"launched","actor":"eve","since":"2026-11-21T01:00:00Z"},"b.service":{"file":"[X-Fleet]\nGlobal=true\n","desired":"launched","actor":"eve","since":"2026-11-21T01:00:00Z"}},"machines":{},"placements":0}"#;
        let units: Units = serde_json::from_str(json).unwrap();
        let read: Vec<bool> = units.units.values().map(|unit| unit.requirements.is_some()).collect();
        assert_eq!(read, [false, true]);
        assert_eq!(serde_json::to_string(&units).unwrap(), json);
    }
}
