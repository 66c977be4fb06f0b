//! Admission: grants the next host a slot, or records that it waits for one. A run comes before the reboot queue: its time is
//! limited. In a run, the host whose last turn lies most runs back goes first, ties by name. What a host waits for is not
//! recorded: [`State::turn_blocker`] says it whenever somebody asks.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{GroupName, HostName};

use super::semaphore::HostDenied;
use super::state::{ReleaseCause, Slot, SlotState};
use crate::config::LockProvider;
use crate::fact::{Fact, non_empty};
use crate::owner::Owner;
use crate::reason::{Denial, LockRefusal, Reason};
use crate::reboot_queue::{Entry, group, next_reboot};
use crate::run::{HostEvent, HostStatus, Place, Run, RunHost};
use crate::state::State;
use crate::view::View;

/// The prepared hosts of a group that have not started.
struct Ready<'a> {
    state: &'a State,
    view: &'a View,
    run: &'a Run,
    group: &'a GroupName,
    hosts: &'a OrdSet<Place>,
    now: DateTime<Utc>,
}

/// The facts that admit the next host, or that record that the hosts whose turn it is wait for a slot.
pub(crate) fn admit(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let next = state.reboot_queue.has_queued().then(|| next_reboot(state, view, now).ok()).flatten();
    take_back_requests(state, view, next)
        .or_else(|| take_back_paused(state))
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

/// Gives up the slots that were requested for hosts of the active run on a site that is paused: granted late, they would be idle.
fn take_back_paused(state: &State) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|_| state.pause.is_some())?;
    let requesting = run.waiting().iter().filter(|host| state.needs_external_lock(run, host));
    non_empty(requesting.flat_map(|host| state.turn_lost(run, host)).collect())
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
    // A run that has too little time left leaves its hosts out, or ends, as soon as those at work have had time to answer.
    if !state.may_begin(run) || run.ready().is_empty() || !view.clock.is_beyond_doubt() || !run.fits(now) {
        return None;
    }
    let mut fronts: Vec<Place> =
        run.ready().keys().filter_map(|group| state.turn_of(view, run, group, now)).collect();
    fronts.sort();
    let is_usable = |host: &&HostName| {
        let slot = state.slots.get(*host).zip(run.host(host));
        slot.is_none_or(|(slot, in_run)| slot.fits(&in_run.group, state.settings.provider))
    };
    let (usable, unusable): (Vec<_>, Vec<_>) = fronts.iter().map(|place| &place.host).partition(is_usable);
    // One whose node is still being uncordoned is released after that.
    let released = unusable.iter().filter_map(|host| release_unusable(state, host));
    if let Some(facts) = non_empty(released.collect()) {
        return Some(facts);
    }
    let blockers = usable.into_iter().map(|host| (host, state.turn_blocker(view, run, host, now)));
    let blockers: Vec<(&HostName, Option<Reason>)> = blockers.collect();
    let mut free = blockers.iter().filter(|(_, blocker)| blocker.is_none()).map(|(host, _)| *host);
    let admitted = match state.settings.provider {
        // The next one may find less room.
        LockProvider::Embedded => free.next().and_then(|host| grant(state, run, host)).into_iter().collect(),
        LockProvider::External => free.flat_map(|host| request(state, run, host)).collect(),
    };
    non_empty(admitted).or_else(|| {
        let waits = blockers.iter().filter_map(|(host, blocker)| wait(run, host, blocker.as_ref()));
        non_empty(waits.collect())
    })
}

fn grant(state: &State, run: &Run, host: &HostName) -> Option<Fact> {
    let (owner, group) = (Owner::Run(run.id.clone()), &run.host(host)?.group);
    Some(state.slot_granted(&owner, host, group, LockProvider::Embedded))
}

fn request(state: &State, run: &Run, host: &HostName) -> Vec<Fact> {
    let group = run.host(host).map(|in_run| &in_run.group);
    group.map(|group| state.slot_requested(Owner::Run(run.id.clone()), host, group)).unwrap_or_default()
}

/// The fact that `host` waits for its slot from here on, if that is what keeps it.
fn wait(run: &Run, host: &HostName, blocker: Option<&Reason>) -> Option<Fact> {
    let reason = blocker.filter(|reason| matches!(reason, Reason::SlotDenied { .. }))?.clone();
    let is_new = run.host(host)?.status != HostStatus::Waiting;
    is_new.then(|| Fact::of_host(&run.id, host, HostEvent::Waiting { reason }))
}

impl State {
    /// The host of `group` whose turn it is in the active run: it goes as soon as nothing keeps it.
    pub(crate) fn turn_of(
        &self,
        view: &View,
        run: &Run,
        group: &GroupName,
        now: DateTime<Utc>,
    ) -> Option<Place> {
        Ready { state: self, view, run, group, hosts: run.ready().get(group)?, now }.front()
    }

    /// Why `host` of the active run, whose turn it is, has not got its slot; `None` if it is about to get it, or to be asked for.
    pub(crate) fn turn_blocker(
        &self,
        view: &View,
        run: &Run,
        host: &HostName,
        now: DateTime<Utc>,
    ) -> Option<Reason> {
        let in_run = run.host(host)?;
        if let Some(paused) = self.paused() {
            return Some(paused);
        }
        if let Some(doubt) = &view.clock.doubt {
            return Some(doubt.clone().into());
        }
        self.waits_for_nodes(view, host).or_else(|| match self.settings.provider {
            LockProvider::Embedded => {
                let denial = Denial::Embedded(denied(self, view, run, host, in_run, now)?);
                Some(Reason::SlotDenied { group: in_run.group.clone(), denial })
            }
            LockProvider::External => {
                let asked = self.slots.get(host).filter(|_| self.needs_external_lock(run, host));
                asked.map(Slot::not_granted)
            }
        })
    }
}

impl Ready<'_> {
    /// The host whose turn it is; one that waits already stays first. A held slot needs no free one, so its host goes first
    /// where the group has none.
    fn front(&self) -> Option<Place> {
        let waiting = self.first_of(self.run.waiting().iter());
        let first = waiting.or_else(|| self.hosts.iter().find(|place| self.may_go(&place.host)).cloned())?;
        let ahead =
            if self.is_refused(&first.host) { self.first_holder() } else { self.server_left(&first.host) };
        Some(ahead.unwrap_or(first))
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
            LockProvider::Embedded => {
                let in_run = self.run.host(host);
                in_run.is_some_and(|it| denied(self.state, self.view, self.run, host, it, self.now).is_some())
            }
            LockProvider::External => {
                let slot = self.state.slots.get(host);
                let refusal = slot.and_then(|slot| slot.refusal.as_ref());
                self.state.needs_external_lock(self.run, host)
                    && matches!(refusal, Some(LockRefusal::Denied { .. }))
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

    /// The API server that failed, and that `first` waits for: it goes first, as nothing else may begin before it is through.
    fn server_left(&self, first: &HostName) -> Option<Place> {
        let Reason::ApiServerUnderWay { host } = self.state.waits_for_nodes(self.view, first)? else {
            return None;
        };
        self.first_of([&host].into_iter())
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

/// Why the embedded semaphore has no slot for `host`; absent if it has one.
fn denied(
    state: &State,
    view: &View,
    run: &Run,
    host: &HostName,
    in_run: &RunHost,
    now: DateTime<Utc>,
) -> Option<HostDenied> {
    let arrived = if in_run.status == HostStatus::Waiting { in_run.since } else { now };
    let uncounted = state.uncounted(view, &in_run.group, host);
    state
        .semaphores
        .admits_host(&in_run.group, host.as_str(), uncounted, arrived, now, run.begins_until())
        .err()
}
