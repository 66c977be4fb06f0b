//! What follows for the reboot queue from the state, from time, and from what is seen of hosts.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Occurrence;
use os_upgrade_protocol::{Action, HostName};

use super::attempt::AttemptStage;
use super::cancel::{QUEUED_BY_ITSELF, cancel};
use super::entry::{Entry, EntryEvent, EntryStatus};
use super::next::open_window;
use super::rebooter::{Rebooter, has_left_boot, has_not_rebooted, has_stayed};
use super::state::ENTRIES_MAX;
use crate::fact::{Fact, QueueFact, non_empty};
use crate::slot::{ReleaseCause, SlotState};
use crate::state::State;
use crate::step::Step;
use crate::view::{Reachability, View};

/// Queues the hosts that say that they need a reboot, each once in an occurrence of the maintenance windows.
pub(crate) fn queue_required(state: &State, view: &View, now: DateTime<Utc>) -> Vec<Fact> {
    if !state.settings.reboot.queue_required || !view.may_judge_windows() {
        return Vec::new();
    }
    let queue = &state.reboot_queue;
    let needs_reboot = view.hosts.iter().filter(|(name, seen)| {
        let is_ready = seen.reboot_required.is_some() && Rebooter::of(state, view, name).is_ok();
        is_ready && seen.reachability != Reachability::Unreachable && state.enrolled(name).takes_part()
    });
    let hosts: Vec<&HostName> = needs_reboot.map(|(name, _)| name).collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    // Windows that cannot be worked out are reported with what waits for them.
    let Ok(Occurrence { start: window, .. }) = open_window(state, view, now) else { return Vec::new() };
    let entries: BTreeSet<&HostName> = queue.entries.values().map(|entry| &entry.host).collect();
    let is_new = |host: &&HostName| !queue.was_required(host, window) && !entries.contains(*host);
    let room = ENTRIES_MAX.saturating_sub(queue.entries.len());
    let hosts: Vec<HostName> = hosts.into_iter().filter(is_new).take(room).cloned().collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    let (actor, reason) = (QUEUED_BY_ITSELF.to_owned(), Some("they need a reboot".to_owned()));
    vec![Fact::Queue(QueueFact::RebootsQueued { hosts, actor, reason, window: Some(window) })]
}

/// Cancels entries of hosts that were queued because they needed a reboot, and no longer do: a run has rebooted them, for example.
pub(crate) fn cancel_unneeded(state: &State, view: &View, _: DateTime<Utc>) -> Option<Vec<Fact>> {
    let needs_none = |entry: &Entry| {
        entry.required
            && entry.status == EntryStatus::Queued
            && view.hosts.get(&entry.host).is_some_and(|seen| seen.reboot_required.is_none())
    };
    let unneeded = state.reboot_queue.entries.iter().filter(|(_, entry)| needs_none(entry));
    let why = "it no longer needs a reboot";
    non_empty(
        unneeded.filter_map(|(index, entry)| cancel(*index, entry, QUEUED_BY_ITSELF, Some(why))).collect(),
    )
}

/// Removes entries that were cancelled, and gives back the slots that they had requested or held.
pub(crate) fn remove_cancelled(state: &State, _: &View, _: DateTime<Utc>) -> Option<Vec<Fact>> {
    let entries = state.reboot_queue.entries.iter();
    let cancelled = entries.filter(|(_, entry)| entry.status == EntryStatus::Cancelled);
    let facts = cancelled.flat_map(|(index, entry)| {
        let host = &entry.host;
        let own = state.owns_slot(*index, host);
        let released = own.then(|| state.release_slot(host, ReleaseCause::NotNeeded)).flatten();
        // Its node is uncordoned first, and its slot released.
        let is_cordoned = own && state.nodes.contains_key(host);
        let removed = Fact::of_entry(*index, host, EntryEvent::Removed);
        released.into_iter().chain((!is_cordoned).then_some(removed))
    });
    non_empty(facts.collect())
}

/// Tells hosts to reboot whose entries hold their slots. One that cannot be told any more backs off, so that nothing waits for it.
pub(crate) fn begin(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let ready = state.reboot_queue.under_way().filter_map(|(index, entry)| {
        let host = &entry.host;
        let slot = state.slots.get(host)?;
        // The end of a drain tells a host with a node to reboot.
        let is_ready = entry.status == EntryStatus::Draining
            && slot.state == SlotState::Held
            && !state.nodes.contains_key(host);
        if !is_ready {
            return None;
        }
        let fact = |event| Fact::of_entry(index, host, event);
        match Rebooter::of_entry(state, view, entry) {
            Ok(rebooter) => Some(vec![fact(rebooter.begins(None))]),
            Err(_) if view.may_time_out() && !slot.begun && state.owns_slot(index, host) => {
                let until = state.backs_off_until(&Step::of_entry(index, entry), None, now);
                let backed_off = fact(EntryEvent::BackedOff { until, reason: None });
                let released = state.release_slot(host, ReleaseCause::DrainGivenUp);
                Some([backed_off].into_iter().chain(released).collect())
            }
            Err(_) => None,
        }
    });
    non_empty(ready.flatten().collect())
}

/// Lets hosts that the operator's command reboots be told, and looks whether they are back.
pub(crate) fn advance_attempts(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let checks_boot = state.settings.reboot.checks_boot();
    let facts = state.attempts().filter_map(|(index, entry, attempt)| {
        let counts_boot = attempt.stage == AttemptStage::Due || !checks_boot;
        if attempt.ends_by_boot() && counts_boot && has_left_boot(state, view, entry) {
            let owner = entry.owner(index);
            return Some(state.host_is_back(&owner, &entry.host, false, ReleaseCause::Rebooted));
        }
        let event = match attempt.stage {
            _ if entry.cancel_requested && has_not_rebooted(state, view, entry, attempt, now) => {
                EntryEvent::NotRebooted
            }
            AttemptStage::Due if may_begin(state, view, entry) => EntryEvent::AttemptBegan,
            AttemptStage::Unknown
                if !entry.cancel_requested && has_stayed(state, view, entry, attempt, now) =>
            {
                EntryEvent::AttemptDue { node: attempt.node.clone(), boot_id: entry.boot_id.clone() }
            }
            AttemptStage::Due
            | AttemptStage::Unknown
            | AttemptStage::Running
            | AttemptStage::Succeeded
            | AttemptStage::Failed
            | AttemptStage::Booted => return None,
        };
        Some(vec![Fact::of_entry(index, &entry.host, event)])
    });
    non_empty(facts.flatten().collect())
}

/// The operator's command is run only by a leader that knows what its predecessors did, and only while the settings have one.
fn may_begin(state: &State, view: &View, entry: &Entry) -> bool {
    view.has_read_control
        && state.settings.reboot.command.is_some()
        && state.cordon_allows(&entry.host, Action::Reboot)
}
