//! FleetLock groups with their slots: the only key that is a table.

use std::collections::BTreeMap;

use os_upgrade_protocol::GroupName;

use super::number::Bounded;
use super::read::{Shape, Value, wrong};
use crate::problem::Problem;
use crate::raw::{Located, Raw};

/// How many hosts of a group may be upgraded at once, or have failed without counting.
type Slots = Bounded<0, 10_000>;

/// A group, as `1` or as `{slots = 1, failed = 1}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    slots: Slots,
    failed: Option<Slots>,
}

/// The groups of the embedded semaphores and their slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups(BTreeMap<GroupName, Group>);

impl Groups {
    /// The slots of `group`, if it exists.
    pub fn slots(&self, group: &GroupName) -> Option<u32> {
        self.0.get(group).map(|group| group.slots.get())
    }

    /// Every group with its slots.
    pub fn iter(&self) -> impl Iterator<Item = (&GroupName, u32)> {
        self.0.iter().map(|(name, group)| (name, group.slots.get()))
    }

    /// Every group in which slots of failed hosts do not count, with how many.
    pub fn failed(&self) -> impl Iterator<Item = (&GroupName, u32)> {
        let failed = |(name, group): (_, &Group)| Some((name, group.failed?.get()));
        self.0.iter().filter_map(failed).filter(|(_, failed)| *failed > 0)
    }

    fn read_entries(
        name: &str,
        entries: &[(Located<String>, Located<Raw>)],
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let before = problems.len();
        let mut groups = BTreeMap::new();
        for (group, raw) in entries {
            let key = Raw::String(group.value.clone());
            let read = GroupName::read(name, &Located { value: key, origin: group.origin.clone() }, problems);
            let group = Group::read(&format!("{name}.{}", group.value), raw, problems);
            groups.extend(read.zip(group));
        }
        (problems.len() == before).then_some(Self(groups))
    }
}

impl Group {
    fn read(name: &str, raw: &Located<Raw>, problems: &mut Vec<Problem>) -> Option<Self> {
        let Raw::Table(entries) = &raw.value else {
            return Slots::read(name, raw, problems).map(|slots| Self { slots, failed: None });
        };
        let (mut slots, mut failed) = (None, None);
        for (key, value) in entries {
            let of =
                match key.value.as_str() {
                    "slots" => &mut slots,
                    "failed" => &mut failed,
                    _ => {
                        problems.push(key.problem(format!(
                            "unknown key {:?} in {name}; it has slots and failed",
                            key.value
                        )));
                        return None;
                    }
                };
            *of = Some(Slots::read(&format!("{name}.{}", key.value), value, problems)?);
        }
        if slots.is_none() {
            problems
                .push(raw.problem(format!("{name}: slots is missing, such as {{slots = 1, failed = 1}}")));
        }
        slots.map(|slots| Self { slots, failed })
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
            groups.insert(group, Group { slots, failed: None });
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
