//! Which entry of the reboot queue can start, or what blocks it.

use chrono::{DateTime, SubsecRound as _, Utc};
use imbl::OrdSet;
use os_upgrade_calendar::Occurrence;
use os_upgrade_protocol::{GroupName, HostName};

use super::choose::{Nodes, NotReady, QueueBlocker};
use super::entry::Entry;
use super::rebooter::Rebooter;
use crate::config::LockProvider;
use crate::enrolment::{Deferral, Enrolled};
use crate::slot::{SlotState, Uncounted};
use crate::start::calendar;
use crate::state::State;
use crate::view::{Reachability, SeenHost, View};

/// The index of the entry whose host can be rebooted now. This is the only place that decides it.
///
/// # Errors
/// What keeps every entry from starting.
pub fn next_reboot(state: &State, view: &View, now: DateTime<Utc>) -> Result<u64, QueueBlocker> {
    let settings = &state.settings.reboot;
    let seen = view.nodes.iter().flatten();
    let api_servers = seen.filter(|(_, node)| node.is_api_server).map(|(host, _)| host.clone()).collect();
    let in_run = state.run.as_ref().map(|run| run.under_way().clone()).unwrap_or_default();
    let under_way = state.nodes_under_way().union(in_run).union(state.servers_left(view));
    let nodes = Nodes {
        api_servers: &api_servers,
        draining_elsewhere: &under_way,
        unreachable: &|| unreachable(state, view),
        not_ready: &|index, entry| not_ready(state, view, index, entry, now),
    };
    let is_unseen = state.is_cluster_unseen(view);
    let next = match state.reboot_queue.choose(settings, nodes, now) {
        Ok(_) | Err(QueueBlocker::NotReady { .. }) if is_unseen => return Err(QueueBlocker::ClusterUnseen),
        next => next?,
    };
    if let Some(pause) = &state.pause {
        return Err(QueueBlocker::Paused(pause.cause.clone()));
    }
    if let Some(doubt) =
        view.clock.doubt.as_ref().filter(|doubt| settings.in_windows || !doubt.is_of_windows())
    {
        return Err(QueueBlocker::Clock(doubt.clone()));
    }
    if settings.in_windows {
        let open = open_window(state, view, now)?;
        let expected = state.config.as_ref().and_then(|config| config.rollout.expected_duration);
        if let Some(expected) = expected.filter(|expected| open.end < now + expected.to_delta()) {
            return Err(QueueBlocker::NoTimeLeft { expected });
        }
    }
    Ok(next)
}

/// The occurrence of the maintenance windows that is open at `now`.
pub(crate) fn open_window(
    state: &State,
    view: &View,
    now: DateTime<Utc>,
) -> Result<Occurrence, QueueBlocker> {
    let config = state.config.as_deref().ok_or(QueueBlocker::NoWindow)?;
    let calendar = calendar(config, &state.settings, &view.zones);
    let open = calendar.containing(now).map_err(|why| QueueBlocker::UnclearWindows { why })?;
    open.ok_or(QueueBlocker::NoWindow)
}

/// The hosts that may be down: those that are awaited, too.
fn unreachable(state: &State, view: &View) -> OrdSet<HostName> {
    let is_silent =
        |seen: &SeenHost| matches!(seen.reachability, Reachability::Awaited | Reachability::Unreachable);
    let silent = view.hosts.iter().filter(|(_, seen)| is_silent(seen));
    let nodes = view.nodes.iter().flatten();
    let not_ready =
        nodes.filter(|(name, node)| !node.is_ready && state.settings.has_node(name)).map(|(name, _)| name);
    let not_ready =
        not_ready.filter(|name| view.hosts.contains_key(*name) || is_node_without_worker(state, view, name));
    let missing = silent.map(|(name, _)| name).chain(not_ready);
    missing.filter(|name| takes_part(state, view, name)).cloned().collect()
}

/// Whether `host` is a node of the cluster that the reboot command can reboot although no worker has announced itself there.
pub(crate) fn is_node_without_worker(state: &State, view: &View, host: &HostName) -> bool {
    let is_node = || view.nodes.as_ref().is_some_and(|nodes| nodes.contains_key(host));
    let is_withdrawn = || matches!(state.enrolled(host), Enrolled::Withdrawn(_));
    state.settings.reboot.command.is_some()
        && state.settings.has_node(host)
        && !view.hosts.contains_key(host)
        && is_node()
        && !is_withdrawn()
}

/// Whether the reboot queue may reboot `host`. A node without a worker needs no approval: its cluster vouches for it.
pub(crate) fn takes_part(state: &State, view: &View, host: &HostName) -> bool {
    state.enrolled(host).takes_part() || is_node_without_worker(state, view, host)
}

/// Why this queued entry cannot start, ignoring the rest of the queue.
pub(crate) fn not_ready(
    state: &State,
    view: &View,
    index: u64,
    entry: &Entry,
    now: DateTime<Utc>,
) -> Option<NotReady> {
    let host = &entry.host;
    if !takes_part(state, view, host) {
        return Some(NotReady::TakesNoPart);
    }
    if let Some(Deferral { actor, reason, since: _, until }) = state.enrolment.deferred.get(host) {
        let (actor, reason, until) = (actor.clone(), reason.clone(), *until);
        return Some(NotReady::HostDeferred { actor, reason, until });
    }
    if let Err(why) = Rebooter::of_entry(state, view, entry) {
        return Some(why);
    }
    let node =
        view.nodes.as_ref().and_then(|nodes| nodes.get(host)).filter(|_| state.settings.has_node(host));
    if node.is_some_and(|node| state.has_foreign_mark(node)) {
        return Some(NotReady::ForeignMark { host: host.clone() });
    }
    if let Some(run) = &state.run
        && run.host(host).is_some_and(|in_run| !in_run.status.is_final())
    {
        return Some(NotReady::InRun { run: run.id.clone() });
    }
    let group = group(state, view, host);
    if let Some(slot) = state.slots.get(host) {
        let is_own = slot.owner == entry.owner(index);
        return match slot.state {
            SlotState::Releasing { .. } => Some(NotReady::EarlierSlot),
            SlotState::Requested if is_own => None,
            SlotState::Requested | SlotState::Held => {
                let since = slot.since.trunc_subsecs(0);
                Some(NotReady::SlotHeld { owner: slot.owner.clone(), since })
            }
        };
    }
    match state.settings.provider {
        // Only its answer tells.
        LockProvider::External => None,
        LockProvider::Embedded => {
            let (arrived, not_after) = (entry.added_at, DateTime::<Utc>::MAX_UTC);
            let denied = state
                .semaphores
                .admits_host(&group, host.as_str(), Uncounted::default(), arrived, now, not_after)
                .err();
            denied.map(|denied| NotReady::SlotDenied { group, denied })
        }
    }
}

/// The group whose slot `host` needs.
pub(crate) fn group(state: &State, view: &View, host: &HostName) -> GroupName {
    let announced = view.hosts.get(host).and_then(|seen| seen.group.clone());
    announced.unwrap_or_else(|| state.settings.default_group.clone())
}
