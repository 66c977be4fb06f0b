//! Admission: grants the next host a slot, or records why it must wait. A run comes before the reboot queue: its time is
//! limited. In a run, the host whose last turn lies most runs back goes first, ties by name.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{GroupName, HostName};

use super::semaphore::HostDenied;
use super::state::{ReleaseCause, Slot, SlotState};
use crate::config::LockProvider;
use crate::fact::{Fact, non_empty};
use crate::owner::Owner;
use crate::reason::{Denial, Reason};
use crate::reboot_queue::{Entry, group, next_reboot};
use crate::run::{HostEvent, HostStatus, Place, Run};
use crate::state::State;
use crate::view::View;

/// The host of a group whose turn it is.
struct Front<'a> {
    group: &'a GroupName,
    place: Place,
    /// Its slot, if it has one.
    slot: Option<&'a Slot>,
}

/// The prepared hosts of a group that have not started.
struct Ready<'a> {
    state: &'a State,
    run: &'a Run,
    group: &'a GroupName,
    hosts: &'a OrdSet<Place>,
    now: DateTime<Utc>,
}

/// The facts that admit the next host, or that record why the hosts whose turn it is must wait.
pub(crate) fn admit(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let next = state.reboot_queue.has_queued().then(|| next_reboot(state, view, now).ok()).flatten();
    take_back_requests(state, view, next)
        .or_else(|| state.run.as_ref().and_then(|run| admit_of_run(state, view, run, now)))
        .or_else(|| admit_entry(state, view, next?))
}

/// Gives up the slots that were requested for entries of the reboot queue that cannot start any more, or that do not fit the
/// settings.
fn take_back_requests(state: &State, view: &View, next: Option<u64>) -> Option<Vec<Fact>> {
    let is_stale = |(index, entry, slot): &(u64, &Entry, &Slot)| {
        Some(*index) != next || !slot.fits(&group(state, view, &entry.host), state.settings.provider)
    };
    let requests = state.requesting_entries().filter(is_stale);
    non_empty(requests.filter_map(|(_, entry, _)| release_unusable(state, &entry.host)).collect())
}

/// Starts the entry of the reboot queue whose turn it is, or requests its slot.
fn admit_entry(state: &State, view: &View, index: u64) -> Option<Vec<Fact>> {
    let entry = state.reboot_queue.entries.get(&index)?;
    let (owner, host, group) = (entry.owner(index), &entry.host, group(state, view, &entry.host));
    match state.settings.provider {
        LockProvider::Embedded => {
            Some(vec![state.slot_granted(&owner, host, &group, LockProvider::Embedded)])
        }
        // The answer of its lock server is awaited.
        LockProvider::External if state.slots.contains_key(host) => None,
        LockProvider::External => Some(state.slot_requested(owner, host, &group)),
    }
}

fn admit_of_run(state: &State, view: &View, run: &Run, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    if !run.has_room() || run.ready().is_empty() {
        return None;
    }
    let ready = run.ready().iter().map(|(group, hosts)| Ready { state, run, group, hosts, now });
    let mut fronts: Vec<Front<'_>> = ready.filter_map(|ready| ready.front()).collect();
    fronts.sort_by(|one, other| one.place.cmp(&other.place));
    if let Some(doubt) = &view.clock.doubt {
        return non_empty(wait_each(run, &fronts, |Front { place, .. }| {
            // A skew that changes by a second is not recorded again.
            let recorded = run.host(&place.host)?.reason.as_ref().map(Reason::kind);
            (recorded != Some(doubt.kind())).then(|| doubt.clone().into())
        }));
    }
    // A run past its deadline ends as soon as its hosts have had time to answer.
    if run.not_after <= now {
        return None;
    }
    let is_usable = |Front { group, slot, .. }: &Front<'_>| {
        slot.is_none_or(|slot| slot.fits(group, state.settings.provider))
    };
    let (usable, unusable): (Vec<_>, Vec<_>) = fronts.into_iter().partition(is_usable);
    // One whose node is still being uncordoned is released after that.
    let released = unusable.iter().filter_map(|front| release_unusable(state, &front.place.host));
    if let Some(facts) = non_empty(released.collect()) {
        return Some(facts);
    }
    let rule = |front: &Front<'_>| state.waits_for_nodes(view, &front.place.host);
    let (bound, free): (Vec<_>, Vec<_>) = usable.into_iter().partition(|front| rule(front).is_some());
    let admitted = match state.settings.provider {
        LockProvider::Embedded => admit_embedded(state, run, &free, now),
        LockProvider::External => admit_external(state, run, &free),
    };
    admitted.or_else(|| {
        non_empty(wait_each(run, &bound, |front| {
            // Whichever of the others is named, the reason is the same.
            let reason = rule(front)?;
            let recorded = run.host(&front.place.host)?.reason.as_ref().map(Reason::kind);
            (recorded != Some(reason.kind())).then_some(reason)
        }))
    })
}

impl<'a> Ready<'a> {
    /// The host whose turn it is; one that waits already stays first. A held slot needs no free one, so its host goes first
    /// where the group has none.
    fn front(&self) -> Option<Front<'a>> {
        let waiting = self.first_of(self.run.waiting().iter());
        let first = waiting.or_else(|| self.hosts.iter().find(|place| self.may_go(&place.host)).cloned())?;
        let holder = self.is_refused(&first.host).then(|| self.first_holder()).flatten();
        let place = holder.unwrap_or(first);
        let slot = self.state.slots.get(&place.host);
        Some(Front { group: self.group, place, slot })
    }

    /// Whether nothing about `host` itself keeps it from starting: it may still lack a slot, or have to wait for other nodes.
    fn may_go(&self, host: &HostName) -> bool {
        // A host started again while its earlier command may still appear could be commanded twice.
        let is_blocked = |slot: &Slot| {
            slot.may_see_late_command(self.state.fence.as_ref())
                || matches!(slot.state, SlotState::Releasing { .. })
        };
        let has_backed_off = self.run.host(host).is_some_and(|in_run| in_run.is_backed_off(self.now));
        // The reboot queue gives a host back once it has rebooted.
        !has_backed_off && !self.state.is_at_work(host) && !self.state.slots.get(host).is_some_and(is_blocked)
    }

    /// Whether `host` is refused a slot: by its semaphore now, or by its lock server's last answer.
    fn is_refused(&self, host: &HostName) -> bool {
        match self.state.settings.provider {
            LockProvider::Embedded => denied(self.state, self.run, self.group, host, self.now).is_some(),
            LockProvider::External => {
                let reason = self.run.host(host).and_then(|in_run| in_run.reason.as_ref());
                self.state.needs_external_lock(self.run, host) && reason.is_some_and(Reason::is_slot_denied)
            }
        }
    }

    /// The first of the hosts that hold a slot of the group already, from an earlier run. A lock server may know nothing of
    /// such a slot: a host that it has refused does not keep the others back.
    fn first_holder(&self) -> Option<Place> {
        let is_held = |slot: &Slot| {
            slot.state == SlotState::Held && slot.fits(self.group, self.state.settings.provider)
        };
        let holders = self.state.slots.iter().filter(|(_, slot)| is_held(slot)).map(|(host, _)| host);
        self.first_of(holders.filter(|host| !self.is_refused(host)))
    }

    /// The first of `hosts` that are ready in this group and may go.
    fn first_of<'b>(&self, hosts: impl Iterator<Item = &'b HostName>) -> Option<Place> {
        let in_group = hosts.filter_map(|host| {
            let in_run = self.run.host(host).filter(|in_run| in_run.group == *self.group)?;
            Some(in_run.place(host))
        });
        in_group.filter(|place| self.hosts.contains(place) && self.may_go(&place.host)).min()
    }
}

/// Releases a slot of another group or of another provider than the current one, before a usable one is requested.
fn release_unusable(state: &State, host: &HostName) -> Option<Fact> {
    state.release_slot(host, ReleaseCause::NotNeeded)
}

fn admit_embedded(state: &State, run: &Run, fronts: &[Front<'_>], now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let denied = |front: &Front<'_>| denied(state, run, front.group, &front.place.host, now);
    if let Some(Front { group, place, .. }) = fronts.iter().find(|front| denied(front).is_none()) {
        let owner = Owner::Run(run.id.clone());
        return Some(vec![state.slot_granted(&owner, &place.host, group, LockProvider::Embedded)]);
    }
    non_empty(wait_each(run, fronts, |front| {
        let denial = Denial::Embedded(denied(front)?);
        Some(Reason::SlotDenied { group: front.group.clone(), denial })
    }))
}

/// Why the embedded semaphore has no slot for `host`; absent if it has one.
fn denied(
    state: &State,
    run: &Run,
    group: &GroupName,
    host: &HostName,
    now: DateTime<Utc>,
) -> Option<HostDenied> {
    let waiting = run.host(host).filter(|in_run| in_run.status == HostStatus::Waiting);
    let arrived = waiting.map_or(now, |in_run| in_run.since);
    state.semaphores.admits_host(group, host.as_str(), arrived, now, run.not_after).err()
}

fn admit_external(state: &State, run: &Run, fronts: &[Front<'_>]) -> Option<Vec<Fact>> {
    let asked = fronts.iter().filter(|front| !state.needs_external_lock(run, &front.place.host));
    let owner = || Owner::Run(run.id.clone());
    non_empty(asked.flat_map(|front| state.slot_requested(owner(), &front.place.host, front.group)).collect())
}

/// Records for each front host why it waits, unless that is recorded already.
fn wait_each(run: &Run, fronts: &[Front<'_>], reason: impl Fn(&Front<'_>) -> Option<Reason>) -> Vec<Fact> {
    let wait = |front: &Front<'_>| {
        let (host, reason) = (&front.place.host, reason(front)?);
        let is_recorded = run.host(host)?.reason.as_ref() == Some(&reason);
        (!is_recorded).then(|| Fact::of_host(&run.id, host, HostEvent::Waiting { reason }))
    };
    fronts.iter().filter_map(wait).collect()
}
