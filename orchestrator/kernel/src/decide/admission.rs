//! Admission: grants the next host a slot, or records why it must wait. A run comes before the reboot queue: its time is limited.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{GroupName, HostName};

use crate::config::LockProvider;
use crate::fact::Fact;
use crate::reason::{Denial, Reason};
use crate::reboot_queue::{Entry, EntryEvent};
use crate::reboots::{group, next_reboot};
use crate::run::{HostEvent, HostStatus, Run};
use crate::slot::ReleaseCause;
use crate::slot::{Slot, SlotState};
use crate::state::State;
use crate::view::View;

/// A group, the host in it whose turn it is, and that host's slot, if it has one.
type Front<'a> = (&'a GroupName, &'a HostName, Option<&'a Slot>);

/// The facts that admit the next host, or that record why the hosts whose turn it is must wait.
pub(super) fn admit(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
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
    let (host, group) = (entry.host.clone(), group(state, view, &entry.host));
    let fact = |event| Fact::Reboot { index, host: host.clone(), event };
    match state.settings.provider {
        LockProvider::Embedded => {
            let drain = state.has_node(&host);
            Some(vec![fact(EntryEvent::Started { group, provider: LockProvider::Embedded, drain })])
        }
        // The answer of its lock server is awaited.
        LockProvider::External if state.slots.contains_key(&host) => None,
        LockProvider::External => {
            let reason = Reason::AskingForSlot { group: group.clone() };
            let requested = Fact::SlotRequested { host: host.clone(), group, run: entry.run_id(index) };
            Some(vec![requested, fact(EntryEvent::Waiting { reason })])
        }
    }
}

fn admit_of_run(state: &State, view: &View, run: &Run, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    if !run.has_room() || run.ready().is_empty() {
        return None;
    }
    let mut fronts: Vec<Front<'_>> =
        run.ready().iter().filter_map(|(group, hosts)| front(state, run, group, hosts, now)).collect();
    // A host started again while its earlier command may still appear could be commanded twice.
    fronts.retain(|(_, _, slot)| !slot.is_some_and(|slot| slot.may_see_late_command(state.fence.as_ref())));
    // A host that already holds its slot goes first.
    fronts.sort_by_key(|(_, _, slot)| slot.is_none_or(|slot| slot.state != SlotState::Held));
    if let Some(doubt) = &view.clock.doubt {
        return non_empty(wait_each(run, &fronts, |_, host| {
            // A skew that changes by a second is not recorded again.
            let recorded = run.host(host)?.reason.as_ref().map(Reason::kind);
            (recorded != Some(doubt.kind())).then(|| doubt.clone().into())
        }));
    }
    // A run past its deadline ends as soon as its hosts have had time to answer.
    if run.not_after <= now {
        return None;
    }
    let is_usable = |(group, _, slot): &Front<'_>| {
        slot.is_none_or(|slot| slot.fits(group, state.settings.provider)) || is_releasing(*slot)
    };
    let (usable, unusable): (Vec<_>, Vec<_>) = fronts.into_iter().partition(is_usable);
    // One whose node is still being uncordoned is released after that.
    let released = unusable.iter().filter_map(|(_, host, _)| release_unusable(state, host));
    if let Some(facts) = non_empty(released.collect()) {
        return Some(facts);
    }
    let (bound, free): (Vec<_>, Vec<_>) =
        usable.into_iter().partition(|(_, host, _)| state.api_server_rule(view, host).is_some());
    let admitted = match state.settings.provider {
        LockProvider::Embedded => admit_embedded(state, run, &free, now),
        LockProvider::External => admit_external(state, run, &free),
    };
    admitted.or_else(|| {
        non_empty(wait_each(run, &bound, |_, host| {
            // Whichever of the others is named, the reason is the same.
            let reason = state.api_server_rule(view, host)?;
            let recorded = run.host(host)?.reason.as_ref().map(Reason::kind);
            (recorded != Some(reason.kind())).then_some(reason)
        }))
    })
}

/// The host of `group` whose turn it is, and its slot.
fn front<'a>(
    state: &'a State,
    run: &'a Run,
    group: &'a GroupName,
    hosts: &'a OrdSet<HostName>,
    now: DateTime<Utc>,
) -> Option<Front<'a>> {
    // The reboot queue gives a host back once it has rebooted.
    let is_left = |host: &&HostName| {
        let has_backed_off = run.host(host).is_some_and(|in_run| in_run.is_backed_off(now));
        !has_backed_off && state.entry_under_way(host).is_none()
    };
    let is_holder = |(host, slot): &(&HostName, &Slot)| {
        slot.state == SlotState::Held && hosts.contains(*host) && is_left(host)
    };
    let front = if let Some((host, _)) = state.slots.iter().find(is_holder) {
        host
    } else {
        let waiting = || run.waiting().iter().filter(|host| hosts.contains(*host)).filter(is_left);
        let hosts = || hosts.iter().filter(is_left);
        // Nobody waits for a slot that is being released.
        let is_free = |host: &&HostName| !is_releasing(state.slots.get(*host));
        let free = waiting().find(is_free).or_else(|| hosts().find(is_free));
        free.or_else(|| waiting().next()).or_else(|| hosts().next())?
    };
    Some((group, front, state.slots.get(front)))
}

/// Releases a slot of another group or of another provider than the current one, before a usable one is requested.
fn release_unusable(state: &State, host: &HostName) -> Option<Fact> {
    state.release_slot(host, ReleaseCause::NotNeeded)
}

fn admit_embedded(state: &State, run: &Run, fronts: &[Front<'_>], now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let admits = |group: &GroupName, host: &HostName| {
        let waiting = run.host(host).filter(|in_run| in_run.status == HostStatus::Waiting);
        let arrived = waiting.map_or(now, |in_run| in_run.since);
        state.semaphores.admits_host(group, host.as_str(), arrived, now, run.not_after)
    };
    let admitted = |(group, host, slot): &&Front<'_>| !is_releasing(*slot) && admits(group, host).is_ok();
    if let Some((group, host, _)) = fronts.iter().find(admitted) {
        let (group, drain) = ((*group).clone(), state.has_node(host));
        let event = HostEvent::SlotGranted { group, provider: LockProvider::Embedded, drain };
        return Some(vec![Fact::of_host(&run.id, host, event)]);
    }
    non_empty(wait_each(run, fronts, |group, host| {
        let denied = admits(group, host).err()?;
        Some(Reason::SlotDenied { group: group.clone(), denial: Denial::Embedded(denied) })
    }))
}

/// Whether the slot is being released: that must be confirmed before another is requested.
fn is_releasing(slot: Option<&Slot>) -> bool {
    slot.is_some_and(|slot| matches!(slot.state, SlotState::Releasing { .. }))
}

fn admit_external(state: &State, run: &Run, fronts: &[Front<'_>]) -> Option<Vec<Fact>> {
    let mut facts = Vec::new();
    for (group, host, slot) in fronts {
        if is_releasing(*slot) || state.needs_external_lock(run, host) {
            continue;
        }
        if slot.is_none() {
            let (host, group, run) = ((*host).clone(), (*group).clone(), run.id.clone());
            facts.push(Fact::SlotRequested { host, group, run });
        }
        let reason = Reason::AskingForSlot { group: (*group).clone() };
        facts.push(Fact::of_host(&run.id, host, HostEvent::Waiting { reason }));
    }
    non_empty(facts)
}

/// Records for each front host why it waits, unless that is recorded already.
fn wait_each(
    run: &Run,
    fronts: &[Front<'_>],
    reason: impl Fn(&GroupName, &HostName) -> Option<Reason>,
) -> Vec<Fact> {
    let wait = |(group, host, _): &Front<'_>| {
        let reason = reason(group, host)?;
        let is_recorded = run.host(host)?.reason.as_ref() == Some(&reason);
        (!is_recorded).then(|| Fact::of_host(&run.id, host, HostEvent::Waiting { reason }))
    };
    fronts.iter().filter_map(wait).collect()
}

pub(super) fn non_empty(facts: Vec<Fact>) -> Option<Vec<Fact>> {
    (!facts.is_empty()).then_some(facts)
}
