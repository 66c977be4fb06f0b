//! FleetLock groups with their slots: the only key that is a table.

use std::collections::BTreeMap;

use os_upgrade_protocol::GroupName;

use super::number::Bounded;
use super::read::{Shape, Value, wrong};
use crate::problem::Problem;
use crate::raw::{Located, Raw};

/// How many hosts of a group may be upgraded at once.
type Slots = Bounded<0, 10_000>;

/// The groups of the embedded semaphores and their slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups(BTreeMap<GroupName, Slots>);

impl Groups {
    /// The slots of `group`, if it exists.
    pub fn slots(&self, group: &GroupName) -> Option<u32> {
        self.0.get(group).map(|slots| slots.get())
    }

    /// Every group with its slots.
    pub fn iter(&self) -> impl Iterator<Item = (&GroupName, u32)> {
        self.0.iter().map(|(group, slots)| (group, slots.get()))
    }

    fn read_entries(
        name: &str,
        entries: &[(Located<String>, Located<Raw>)],
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let before = problems.len();
        let mut groups = BTreeMap::new();
        for (group, slots) in entries {
            let key = Raw::String(group.value.clone());
            let read = GroupName::read(name, &Located { value: key, origin: group.origin.clone() }, problems);
            let slots = Slots::read(&format!("{name}.{}", group.value), slots, problems);
            groups.extend(read.zip(slots));
        }
        (problems.len() == before).then_some(Self(groups))
    }
}

impl Value for Groups {
    const SHAPE: Shape = Shape::Table;

    fn expected() -> String {
        "groups with their slots, such as default = 1 (in a variable: default=1,workers=2)".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut groups = BTreeMap::new();
        for entry in text.split(',') {
            let (group, slots) = entry.split_once('=').ok_or_else(String::new)?;
            let group = GroupName::parse(group.trim())?;
            let slots = Slots::parse(slots).map_err(|_| format!(": {group} needs {}", Slots::expected()))?;
            groups.insert(group, slots);
        }
        Ok(Self(groups))
    }

    fn read(name: &str, raw: &Located<Raw>, problems: &mut Vec<Problem>) -> Option<Self> {
        let hint = match &raw.value {
            Raw::Table(entries) => return Self::read_entries(name, entries, problems),
            Raw::Variable(text) => match Self::parse(text) {
                Ok(groups) => return Some(groups),
                Err(hint) => hint,
            },
            Raw::String(_) | Raw::Integer(_) | Raw::Boolean(_) | Raw::Other(_) => String::new(),
        };
        problems.push(raw.problem(wrong::<Self>(name, &raw.value, &hint)));
        None
    }
}
