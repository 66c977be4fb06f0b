//! The embedded FleetLock semaphores: counting, owned, recursive, one per group.

use std::fmt::Write as _;
use std::ops::Not;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::{GroupName, RunId, time};
use serde::{Deserialize, Serialize};

use crate::client_id::ClientId;

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

/// Someone who holds a slot, for one or both of two reasons. The slot is free when neither is left.
///
/// To FleetLock a client id is one holder, whoever speaks for it, and locks are recursive; so a host of ours and a
/// client that calls itself by the host's name share one slot. But neither gives back for the other: a FleetLock agent
/// unlocks each time it starts, also in the middle of an upgrade that has just rebooted its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Since when.
    pub since: DateTime<Utc>,
    /// The run on whose behalf, if it is a host of ours.
    pub run: Option<RunId>,
    /// Whether a FleetLock client from outside holds it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub client: bool,
}

/// Why a lock is refused; `kind` and `value` as FleetLock wants them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Which refusal.
    pub kind: DeniedKind,
    /// The sentence for operators.
    pub value: String,
}

/// The kinds of refusals: a small fixed set, as FleetLock asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeniedKind {
    /// No such group is configured.
    UnknownGroup,
    /// Every slot is held.
    FailedLockSemaphoreFull,
    /// The slots of this site are another server's to give.
    OtherLockServer,
}

impl DeniedKind {
    /// The word in FleetLock's error.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownGroup => "unknown_group",
            Self::FailedLockSemaphoreFull => "failed_lock_semaphore_full",
            Self::OtherLockServer => "other_lock_server",
        }
    }
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
        let semaphore = self.known(group)?;
        let held = semaphore.holders.len();
        if semaphore.holders.contains_key(id) || held < semaphore.slots as usize {
            return Ok(());
        }
        Err(Denied { kind: DeniedKind::FailedLockSemaphoreFull, value: semaphore.describe_holders() })
    }

    /// The semaphore of `group`, or the refusal of whoever asks for it.
    pub fn known(&self, group: &GroupName) -> Result<&Semaphore, Denied> {
        self.groups.get(group).ok_or_else(|| Denied {
            kind: DeniedKind::UnknownGroup,
            value: format!("there is no group {group}"),
        })
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

    /// Notes that `host` holds a slot on behalf of `run`. Whether it may has been decided before, by
    /// [`Self::admits`].
    pub(crate) fn lock_for_run(&mut self, group: &GroupName, host: &str, run: &RunId, at: DateTime<Utc>) {
        self.holder(group, host, at).run = Some(run.clone());
    }

    /// Notes that a client from outside holds a slot. Whether it may has been decided before, by [`Self::admits`].
    pub(crate) fn lock_for_client(&mut self, group: &GroupName, id: &ClientId, at: DateTime<Utc>) {
        self.holder(group, id.as_str(), at).client = true;
    }

    /// Notes that no run needs the slot of `host` any more.
    pub(crate) fn unlock_for_run(&mut self, group: &GroupName, host: &str) {
        self.give_back(group, host, |holder| holder.run = None);
    }

    /// Notes that the client does not hold a slot any more.
    pub(crate) fn unlock_for_client(&mut self, group: &GroupName, id: &ClientId) {
        self.give_back(group, id.as_str(), |holder| holder.client = false);
    }

    fn holder(&mut self, group: &GroupName, id: &str, at: DateTime<Utc>) -> &mut Holder {
        let holders = &mut self.groups.entry(group.clone()).or_default().holders;
        holders.entry(id.to_owned()).or_insert(Holder { since: at, run: None, client: false })
    }

    fn give_back(&mut self, group: &GroupName, id: &str, change: impl FnOnce(&mut Holder)) {
        let Some(semaphore) = self.groups.get_mut(group) else { return };
        let Some(holder) = semaphore.holders.get_mut(id) else { return };
        change(holder);
        if holder.run.is_none() && !holder.client {
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
    use chrono::{TimeDelta, TimeZone};

    use super::*;

    fn group(name: &str) -> GroupName {
        GroupName::new(name).unwrap()
    }

    fn client(id: &str) -> ClientId {
        ClientId::new(id).unwrap()
    }

    fn at() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 1, 0, 0).unwrap()
    }

    #[test]
    fn counts_owns_and_recurses() {
        let mut semaphores = Semaphores::default();
        let default = group("default");
        semaphores.configure([(&default, &1)]);
        assert_eq!(semaphores.admits(&default, "a"), Ok(()));
        semaphores.lock_for_client(&default, &client("a"), at());
        assert_eq!(semaphores.admits(&default, "a"), Ok(()));
        assert_eq!(
            semaphores.admits(&default, "b"),
            Err(Denied {
                kind: DeniedKind::FailedLockSemaphoreFull,
                value: "the only slot is held by a since 2026-11-21T01:00:00Z".to_owned()
            })
        );
        semaphores.unlock_for_client(&default, &client("b"));
        assert!(semaphores.admits(&default, "b").is_err());
        semaphores.unlock_for_client(&default, &client("a"));
        assert_eq!(semaphores.admits(&default, "b"), Ok(()));
        assert_eq!(semaphores.admits(&group("x"), "b").unwrap_err().kind, DeniedKind::UnknownGroup);
    }

    #[test]
    fn a_host_and_a_client_of_its_name_share_a_slot_and_neither_frees_the_others() {
        let (default, run) = (group("default"), RunId::new("r1").unwrap());
        for client_first in [false, true] {
            let mut semaphores = Semaphores::default();
            semaphores.configure([(&default, &1)]);
            semaphores.lock_for_run(&default, "a", &run, at());
            semaphores.lock_for_client(&default, &client("a"), at() + TimeDelta::seconds(9));
            let both = Holder { since: at(), run: Some(run.clone()), client: true };
            assert_eq!(semaphores.get(&default).unwrap().holders.get("a"), Some(&both));
            for free_client in [client_first, !client_first] {
                assert!(semaphores.admits(&default, "b").is_err());
                if free_client {
                    semaphores.unlock_for_client(&default, &client("a"));
                } else {
                    semaphores.unlock_for_run(&default, "a");
                }
            }
            assert_eq!(semaphores.admits(&default, "b"), Ok(()));
        }
    }

    #[test]
    fn fewer_slots_take_effect_as_holders_release() {
        let mut semaphores = Semaphores::default();
        let default = group("default");
        semaphores.configure([(&default, &2)]);
        semaphores.lock_for_client(&default, &client("a"), at());
        semaphores.lock_for_client(&default, &client("b"), at());
        semaphores.configure([(&default, &1)]);
        semaphores.unlock_for_client(&default, &client("a"));
        assert!(semaphores.admits(&default, "c").is_err());
        semaphores.unlock_for_client(&default, &client("b"));
        assert_eq!(semaphores.admits(&default, "c"), Ok(()));
        semaphores.lock_for_client(&default, &client("c"), at());
        semaphores.configure([]);
        assert_eq!(semaphores.get(&default).unwrap().holders.len(), 1);
        assert!(semaphores.admits(&default, "d").unwrap_err().value.starts_with("the group has no slots"));
    }
}
