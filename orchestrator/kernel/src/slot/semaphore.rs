//! The embedded FleetLock semaphores: counting, owned, recursive, one per group.

mod denied;
mod holder;
mod waiters;

use std::ops::Not;

use chrono::{DateTime, SubsecRound as _, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

pub use self::denied::{Denied, DeniedKind, Full, HostDenied, NamedHolder};
pub use self::holder::{Hold, Holder};
pub use self::waiters::{RECORD_INTERVAL, REMEMBERED, WAITERS_MAX, Waiter, Waiters};
use super::client_id::ClientId;
use crate::owner::Owner;

/// How many holders a refusal names before it says how many more there are.
const HOLDERS_NAMED_MAX: usize = 3;

/// Held slots of a group that do not count against a host of a run, because their hosts have failed: see
/// [`State::uncounted`](crate::State::uncounted).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// Those of how many other hosts do not.
    pub others: usize,
    /// Whether its own does not, so that it needs another one.
    pub own: bool,
}

/// One group's semaphore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semaphore {
    /// How many slots there are.
    pub slots: u32,
    /// Who holds a slot, by FleetLock client id.
    pub holders: OrdMap<String, Holder>,
    /// External clients that were refused a slot.
    #[serde(default, skip_serializing_if = "Waiters::is_empty")]
    pub waiters: Waiters,
    /// Whether the group was removed from the settings and exists only until its holders have released.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub removed: bool,
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

    /// Whether `id` may hold a slot of `group` now; always so if it already does.
    pub fn admits(&self, group: &GroupName, id: &str) -> Result<(), Denied> {
        let semaphore = self.known(group)?;
        if semaphore.holders.contains_key(id) || semaphore.free() > 0 {
            return Ok(());
        }
        Err(Denied::Full(semaphore.full()))
    }

    /// Whether `host`, which has waited since `arrived`, may hold a slot of `group` at `now` on behalf of a run in which hosts begin
    /// before `not_after`, while these slots are `uncounted`. One slot is left for each client that was refused before `arrived`, as long as it plausibly retries.
    /// If that may be longer than the run has left, the slot is not left to it: the run would end without its host.
    pub fn admits_host(
        &self,
        group: &GroupName,
        host: &str,
        uncounted: Uncounted,
        arrived: DateTime<Utc>,
        now: DateTime<Utc>,
        not_after: DateTime<Utc>,
    ) -> Result<(), HostDenied> {
        let semaphore = self.known(group)?;
        let holds = semaphore.holders.contains_key(host);
        if holds && !uncounted.own {
            return Ok(());
        }
        let counted = (semaphore.holders.len() - usize::from(holds)).saturating_sub(uncounted.others);
        let free = (semaphore.slots as usize).saturating_sub(counted);
        if free == 0 {
            return Err(Denied::Full(semaphore.full()).into());
        }
        // `arrived` is later than `now` if the clock has been set back.
        let arrived = arrived.min(now);
        let before = semaphore.waiters.remembered(now).take_while(|(_, waiter)| waiter.turn <= arrived);
        let is_expected = |waiter: &Waiter| (now..not_after).contains(&waiter.expected_until());
        let mut before = before.filter(|(id, waiter)| id.as_str() != host && is_expected(waiter));
        // The host is refused if there are at least as many earlier clients as free slots.
        match before.nth(free - 1) {
            Some((id, waiter)) => {
                Err(HostDenied::LeftToEarlier { id: id.clone(), since: waiter.since.trunc_subsecs(0) })
            }
            None => Ok(()),
        }
    }

    /// The semaphore of `group`.
    ///
    /// # Errors
    /// The refusal of a lock in an unknown group.
    pub fn known(&self, group: &GroupName) -> Result<&Semaphore, Denied> {
        self.groups.get(group).ok_or_else(|| Denied::UnknownGroup { group: group.clone() })
    }

    /// Sets the slots of every group. Groups not named have no slots from now on; their holders keep what they hold.
    pub(crate) fn configure<'a>(&mut self, slots: impl IntoIterator<Item = (&'a GroupName, &'a u32)>) {
        let mut groups: OrdMap<GroupName, Semaphore> = OrdMap::new();
        for (group, slots) in slots {
            let old = self.groups.get(group).cloned().unwrap_or_default();
            groups.insert(group.clone(), Semaphore { slots: *slots, removed: false, ..old });
        }
        for (group, old) in &self.groups {
            if !old.holders.is_empty() && !groups.contains_key(group) {
                let removed =
                    Semaphore { holders: old.holders.clone(), removed: true, ..Semaphore::default() };
                groups.insert(group.clone(), removed);
            }
        }
        self.groups = groups;
    }

    /// Records that `host` holds a slot on behalf of `owner`; [`Self::admits`] has decided that it may.
    pub(crate) fn lock_for_owner(&mut self, group: &GroupName, host: &str, owner: &Owner, at: DateTime<Utc>) {
        self.holder(group, host, at).owner = Some(owner.clone());
        self.forget_waiter(group, host);
    }

    /// Records that an external client holds a slot; [`Self::admits`] has decided that it may.
    pub(crate) fn lock_for_client(&mut self, group: &GroupName, id: &ClientId, at: DateTime<Utc>) {
        let semaphore = self.groups.entry(group.clone()).or_default();
        if semaphore.holders.contains_key(id.as_str()) {
            // It shares the slot of its id and uses up nobody's arrival.
            semaphore.waiters.forget(id);
        } else {
            semaphore.waiters.granted(id, at);
        }
        self.holder(group, id.as_str(), at).client = true;
    }

    /// Records that an operator holds a slot; [`Self::admits`] has decided that there is one.
    pub(crate) fn hold(&mut self, group: &GroupName, id: &ClientId, hold: Hold) {
        let since = hold.since;
        self.holder(group, id.as_str(), since).hold = Some(hold);
        self.stop_waiting(group, id);
    }

    /// Records that an external client was refused a slot.
    pub(crate) fn refused(&mut self, group: &GroupName, id: &ClientId, at: DateTime<Utc>) {
        if let Some(semaphore) = self.groups.get_mut(group) {
            semaphore.waiters.refused(id, at);
        }
    }

    /// Records that neither a run nor the reboot queue needs the slot of `host` any more.
    pub(crate) fn unlock_for_owner(&mut self, group: &GroupName, host: &str) {
        self.give_back(group, host, |holder| holder.owner = None);
    }

    /// Records that the client no longer holds a slot or waits for one.
    pub(crate) fn unlock_for_client(&mut self, group: &GroupName, id: &ClientId) {
        self.give_back(group, id.as_str(), |holder| holder.client = false);
        self.stop_waiting(group, id);
    }

    /// Records that neither the client nor an operator holds the slot of `id` any more, and that `id` waits for none.
    pub(crate) fn release(&mut self, group: &GroupName, id: &ClientId) {
        self.stop_waiting(group, id);
        self.give_back(group, id.as_str(), |holder| {
            holder.client = false;
            holder.hold = None;
        });
    }

    /// Records that the client no longer waits for a slot.
    pub(crate) fn stop_waiting(&mut self, group: &GroupName, id: &ClientId) {
        if let Some(semaphore) = self.groups.get_mut(group) {
            semaphore.waiters.forget(id);
        }
    }

    /// Removes the host from the waiters, if its name can be a client's.
    fn forget_waiter(&mut self, group: &GroupName, host: &str) {
        if let Ok(id) = ClientId::new(host) {
            self.stop_waiting(group, &id);
        }
    }

    fn holder(&mut self, group: &GroupName, id: &str, at: DateTime<Utc>) -> &mut Holder {
        let holders = &mut self.groups.entry(group.clone()).or_default().holders;
        holders.entry(id.to_owned()).or_insert(Holder::new(at))
    }

    fn give_back(&mut self, group: &GroupName, id: &str, change: impl FnOnce(&mut Holder)) {
        let Some(semaphore) = self.groups.get_mut(group) else { return };
        let Some(holder) = semaphore.holders.get_mut(id) else { return };
        change(holder);
        if !holder.is_needed() {
            semaphore.holders.remove(id);
        }
        if semaphore.removed && semaphore.holders.is_empty() {
            self.groups.remove(group);
        }
    }
}

impl Semaphore {
    /// Whether `id` holds a slot as an external FleetLock client, whoever else holds it under that id.
    pub fn is_held_by_client(&self, id: &ClientId) -> bool {
        self.holders.get(id.as_str()).is_some_and(|holder| holder.client)
    }

    /// How many slots are free.
    pub fn free(&self) -> usize {
        (self.slots as usize).saturating_sub(self.holders.len())
    }

    /// How many holders exceed the slots: when the slots become fewer, holders keep theirs.
    pub fn excess(&self) -> usize {
        self.holders.len().saturating_sub(self.slots as usize)
    }

    fn full(&self) -> Full {
        let named = self.holders.iter().take(HOLDERS_NAMED_MAX);
        let name = |(id, holder): (&String, &Holder)| NamedHolder {
            id: id.clone(),
            since: holder.since.trunc_subsecs(0),
        };
        let holders = named.map(name).collect();
        Full { slots: self.slots, held: self.holders.len(), holders }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, TimeZone};
    use os_upgrade_protocol::RunId;

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
        let denied = semaphores.admits(&default, "b").unwrap_err();
        assert_eq!(denied.kind(), DeniedKind::FailedLockSemaphoreFull);
        let holders = vec![NamedHolder { id: "a".to_owned(), since: at() }];
        assert_eq!(denied, Denied::Full(Full { slots: 1, held: 1, holders }));
        semaphores.unlock_for_client(&default, &client("b"));
        assert!(semaphores.admits(&default, "b").is_err());
        semaphores.unlock_for_client(&default, &client("a"));
        assert_eq!(semaphores.admits(&default, "b"), Ok(()));
        assert_eq!(semaphores.admits(&group("x"), "b").unwrap_err().kind(), DeniedKind::UnknownGroup);
    }

    #[test]
    fn host_and_client_of_one_name_share_a_slot() {
        let (default, run) = (group("default"), Owner::from(RunId::new("r1").unwrap()));
        for client_first in [false, true] {
            let mut semaphores = Semaphores::default();
            semaphores.configure([(&default, &1)]);
            semaphores.lock_for_owner(&default, "a", &run, at());
            semaphores.lock_for_client(&default, &client("a"), at() + TimeDelta::seconds(9));
            let both = Holder { since: at(), owner: Some(run.clone()), client: true, hold: None };
            assert_eq!(semaphores.get(&default).unwrap().holders.get("a"), Some(&both));
            for free_client in [client_first, !client_first] {
                assert!(semaphores.admits(&default, "b").is_err());
                if free_client {
                    semaphores.unlock_for_client(&default, &client("a"));
                } else {
                    semaphores.unlock_for_owner(&default, "a");
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
        let full = |id| match semaphores.admits(&default, id) {
            Err(Denied::Full(Full { slots, held, .. })) => (slots, held),
            other => panic!("{other:?}"),
        };
        assert_eq!(full("c"), (1, 2));
        semaphores.unlock_for_client(&default, &client("a"));
        assert!(semaphores.admits(&default, "c").is_err());
        semaphores.unlock_for_client(&default, &client("b"));
        assert_eq!(semaphores.admits(&default, "c"), Ok(()));
        semaphores.lock_for_client(&default, &client("c"), at());
        semaphores.configure([]);
        assert_eq!(semaphores.get(&default).unwrap().holders.len(), 1);
        assert!(matches!(semaphores.admits(&default, "d"), Err(Denied::Full(Full { slots: 0, .. }))));
    }

    #[test]
    fn holds_last_until_released() {
        let (mut semaphores, default) = (Semaphores::default(), group("default"));
        semaphores.configure([(&default, &1)]);
        let hold = Hold { actor: "eve".to_owned(), reason: "a new disk".to_owned(), since: at() };
        semaphores.lock_for_client(&default, &client("a"), at());
        semaphores.hold(&default, &client("a"), hold.clone());
        semaphores.unlock_for_client(&default, &client("a"));
        assert!(semaphores.admits(&default, "b").is_err());
        semaphores.release(&default, &client("a"));
        assert_eq!(semaphores.admits(&default, "b"), Ok(()));
        // A slot that a run holds is not released by this.
        semaphores.hold(&default, &client("a"), hold);
        semaphores.lock_for_owner(&default, "a", &Owner::from(RunId::new("r1").unwrap()), at());
        semaphores.release(&default, &client("a"));
        assert!(semaphores.admits(&default, "b").is_err());
    }

    #[test]
    fn hosts_leave_slots_to_earlier_clients() {
        let (mut semaphores, default) = (Semaphores::default(), group("default"));
        let later = |seconds| at() + TimeDelta::seconds(seconds);
        let admits = |semaphores: &Semaphores, arrived| {
            semaphores
                .admits_host(&default, "h", Uncounted::default(), later(arrived), later(100), later(9_000))
                .is_ok()
        };
        semaphores.configure([(&default, &2)]);
        semaphores.refused(&default, &client("a"), later(10));
        assert!(admits(&semaphores, 20), "one is left for the client");
        semaphores.refused(&default, &client("b"), later(15));
        assert!(admits(&semaphores, 14));
        assert!(!admits(&semaphores, 15), "at the same time, the client is first");
        assert_eq!(
            semaphores.admits_host(&default, "h", Uncounted::default(), later(20), later(100), later(9_000)),
            Err(HostDenied::LeftToEarlier { id: client("b"), since: later(15) })
        );
        let admitted = |seconds| {
            semaphores.admits_host(
                &default,
                "h",
                Uncounted::default(),
                later(20),
                later(seconds),
                later(9_000),
            )
        };
        assert!(admitted(370).is_err());
        assert_eq!(admitted(371), Ok(()), "the first is not expected any more");
        // Nobody waits for a client until the run has ended.
        let left = |until| {
            semaphores.admits_host(&default, "h", Uncounted::default(), later(20), later(100), later(until))
        };
        assert_eq!((left(375), left(376).is_err()), (Ok(()), true));
        // A newcomer that is faster uses up the arrival of the first.
        semaphores.lock_for_client(&default, &client("c"), later(30));
        assert!(!admits(&semaphores, 20));
        semaphores.unlock_for_client(&default, &client("c"));
        assert!(admits(&semaphores, 20));
        semaphores.unlock_for_client(&default, &client("b"));
        semaphores.lock_for_client(&default, &client("a"), later(40));
        assert!(admits(&semaphores, 50));
        semaphores.lock_for_owner(&default, "h", &Owner::from(RunId::new("r1").unwrap()), at());
        semaphores.refused(&default, &client("d"), later(41));
        assert!(admits(&semaphores, 50), "it holds one already");
    }
}
