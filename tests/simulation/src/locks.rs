//! An external FleetLock server, which other clients use too.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_protocol::GroupName;

#[derive(Debug)]
pub(crate) struct LockServer {
    slots: BTreeMap<GroupName, u32>,
    holders: BTreeMap<GroupName, BTreeSet<String>>,
    /// Whether it answers at all.
    pub(crate) is_up: bool,
}

impl LockServer {
    pub(crate) fn new(slots: BTreeMap<GroupName, u32>) -> Self {
        Self { slots, holders: BTreeMap::new(), is_up: true }
    }

    /// Grants a slot of `group` to `id` if it can; returns whether `id` holds one.
    pub(crate) fn lock(&mut self, group: &GroupName, id: &str) -> bool {
        let holders = self.holders.entry(group.clone()).or_default();
        let slots = self.slots.get(group).copied().unwrap_or(0) as usize;
        if holders.contains(id) {
            return true;
        }
        let granted = holders.len() < slots;
        if granted {
            holders.insert(id.to_owned());
        }
        granted
    }

    pub(crate) fn unlock(&mut self, group: &GroupName, id: &str) {
        if let Some(holders) = self.holders.get_mut(group) {
            holders.remove(id);
        }
    }

    pub(crate) fn holds(&self, group: &GroupName, id: &str) -> bool {
        self.holders.get(group).is_some_and(|holders| holders.contains(id))
    }

    /// All holders of slots.
    pub(crate) fn holders(&self) -> impl Iterator<Item = (&GroupName, &String)> {
        self.holders.iter().flat_map(|(group, ids)| ids.iter().map(move |id| (group, id)))
    }
}
