//! The embedded FleetLock semaphores: counting, owned, recursive, one per group.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::{GroupName, RunId, time};
use serde::{Deserialize, Serialize};

/// How many holders a refusal names before it says how many more there are.
const HOLDERS_NAMED_MAX: usize = 3;

/// One group's semaphore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semaphore {
    /// How many may hold a slot at once.
    pub slots: u32,
    /// Who holds one, by FleetLock client id.
    pub holders: OrdMap<String, Holder>,
}

/// Someone who holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Since when.
    pub since: DateTime<Utc>,
    /// The run on whose behalf, if it is one of ours.
    pub run: Option<RunId>,
}

/// Why a lock is refused; `kind` and `value` as FleetLock wants them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// A word of a small fixed set.
    pub kind: &'static str,
    /// The sentence for operators.
    pub value: String,
}

/// The semaphores of all groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Semaphores {
    groups: OrdMap<GroupName, Semaphore>,
}

impl Semaphores {
    /// The semaphore of `group`, if there is one.
    pub fn get(&self, group: &GroupName) -> Option<&Semaphore> {
        self.groups.get(group)
    }

    /// Every group with its semaphore.
    pub fn iter(&self) -> impl Iterator<Item = (&GroupName, &Semaphore)> {
        self.groups.iter()
    }

    /// Whether `id` may hold a slot of `group` now; it may if it does already.
    pub fn admits(&self, group: &GroupName, id: &str) -> Result<(), Denied> {
        let Some(semaphore) = self.groups.get(group) else {
            return Err(Denied { kind: "unknown_group", value: format!("there is no group {group}") });
        };
        let held = semaphore.holders.len();
        if semaphore.holders.contains_key(id) || held < semaphore.slots as usize {
            return Ok(());
        }
        Err(Denied { kind: "failed_lock_semaphore_full", value: semaphore.describe_holders() })
    }

    /// Sets the slots of every group. Groups not named have none from now on; their holders keep what they hold.
    pub(crate) fn configure<'a>(&mut self, slots: impl IntoIterator<Item = (&'a GroupName, &'a u32)>) {
        let mut groups: OrdMap<GroupName, Semaphore> = OrdMap::new();
        for (group, slots) in slots {
            let holders = self.groups.get(group).map(|old| old.holders.clone()).unwrap_or_default();
            groups.insert(group.clone(), Semaphore { slots: *slots, holders });
        }
        for (group, old) in &self.groups {
            if !old.holders.is_empty() && !groups.contains_key(group) {
                groups.insert(group.clone(), Semaphore { slots: 0, holders: old.holders.clone() });
            }
        }
        self.groups = groups;
    }

    /// Notes that `id` holds a slot. Whether it may has been decided before, by [`Self::admits`].
    pub(crate) fn lock(&mut self, group: &GroupName, id: &str, holder: Holder) {
        let semaphore = self.groups.entry(group.clone()).or_default();
        let since = semaphore.holders.get(id).map_or(holder.since, |held| held.since);
        semaphore.holders.insert(id.to_owned(), Holder { since, ..holder });
    }

    /// Notes that `id` holds no slot of `group` any more.
    pub(crate) fn unlock(&mut self, group: &GroupName, id: &str) {
        if let Some(semaphore) = self.groups.get_mut(group) {
            semaphore.holders.remove(id);
        }
    }
}

impl Semaphore {
    fn describe_holders(&self) -> String {
        let mut text = match self.slots {
            0 if self.holders.is_empty() => "the group has no slots".to_owned(),
            0 => "the group has no slots any more; still held".to_owned(),
            1 => "the only slot is held".to_owned(),
            slots => format!("all {slots} slots are held"),
        };
        for (index, (id, holder)) in self.holders.iter().take(HOLDERS_NAMED_MAX).enumerate() {
            let lead = if index == 0 { " by" } else { "," };
            let _ = write!(text, "{lead} {id} since {}", time::format(holder.since));
        }
        if self.holders.len() > HOLDERS_NAMED_MAX {
            let _ = write!(text, " and {} more", self.holders.len() - HOLDERS_NAMED_MAX);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    fn group(name: &str) -> GroupName {
        GroupName::new(name).unwrap()
    }

    fn holder() -> Holder {
        Holder { since: Utc.with_ymd_and_hms(2026, 11, 21, 1, 0, 0).unwrap(), run: None }
    }

    #[test]
    fn counts_owns_and_recurses() {
        let mut semaphores = Semaphores::default();
        let default = group("default");
        semaphores.configure([(&default, &1)]);
        assert_eq!(semaphores.admits(&default, "a"), Ok(()));
        semaphores.lock(&default, "a", holder());
        assert_eq!(semaphores.admits(&default, "a"), Ok(()));
        assert_eq!(
            semaphores.admits(&default, "b"),
            Err(Denied {
                kind: "failed_lock_semaphore_full",
                value: "the only slot is held by a since 2026-11-21T01:00:00Z".to_owned()
            })
        );
        semaphores.unlock(&default, "b");
        assert!(semaphores.admits(&default, "b").is_err());
        semaphores.unlock(&default, "a");
        assert_eq!(semaphores.admits(&default, "b"), Ok(()));
        assert_eq!(semaphores.admits(&group("x"), "b").unwrap_err().kind, "unknown_group");
    }

    #[test]
    fn fewer_slots_take_effect_as_holders_release() {
        let mut semaphores = Semaphores::default();
        let default = group("default");
        semaphores.configure([(&default, &2)]);
        semaphores.lock(&default, "a", holder());
        semaphores.lock(&default, "b", holder());
        semaphores.configure([(&default, &1)]);
        semaphores.unlock(&default, "a");
        assert!(semaphores.admits(&default, "c").is_err());
        semaphores.unlock(&default, "b");
        assert_eq!(semaphores.admits(&default, "c"), Ok(()));
        semaphores.lock(&default, "c", holder());
        semaphores.configure([]);
        assert_eq!(semaphores.get(&default).unwrap().holders.len(), 1);
        assert!(semaphores.admits(&default, "d").unwrap_err().value.starts_with("the group has no slots"));
    }
}
