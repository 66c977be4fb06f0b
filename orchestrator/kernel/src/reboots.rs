//! The reboot queue of a site: whether its next entry can start, and what its events change in the state.

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound as _, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{Action, GroupName, HostName, time};
use strum::{IntoStaticStr, VariantNames};

use crate::config::LockProvider;
use crate::fact::Fact;
use crate::forecast::calendar;
use crate::node::NodeProgress;
use crate::reason::Reason;
use crate::reboot_queue::{Entry, EntryEvent, EntryStatus, Nodes, NotReady, QueueBlocker};
use crate::slot::{Slot, SlotState};
use crate::state::{ApplyError, State};
use crate::view::{Reachability, SeenHost, View};
use crate::window::Occurrence;

/// The index of the entry whose host can be rebooted now. This is the only place that decides it.
///
/// # Errors
/// What keeps every entry from starting.
pub fn next_reboot(state: &State, view: &View, now: DateTime<Utc>) -> Result<u64, QueueBlocker> {
    let settings = &state.settings.reboot;
    let seen = view.nodes.iter().flatten();
    let api_servers = seen.filter(|(_, node)| node.is_api_server).map(|(host, _)| host.clone()).collect();
    let in_run = state.run.as_ref().map(|run| run.under_way().clone()).unwrap_or_default();
    let under_way = state.nodes_under_way().union(in_run);
    let nodes = Nodes {
        api_servers: &api_servers,
        draining_elsewhere: &under_way,
        unreachable: &|| unreachable(state, view),
        not_ready: &|index, entry| not_ready(state, view, index, entry, now),
    };
    let next = state.reboot_queue.choose(settings, nodes, now)?;
    if state.settings.kubernetes.is_some() && view.nodes.is_none() {
        return Err(QueueBlocker::ClusterUnseen);
    }
    if let Some(doubt) = &view.clock.doubt {
        return Err(QueueBlocker::Clock(doubt.clone()));
    }
    if settings.in_windows {
        open_window(state, now)?;
    }
    Ok(next)
}

/// The occurrence of the maintenance windows that is open at `now`.
pub(crate) fn open_window(state: &State, now: DateTime<Utc>) -> Result<Occurrence, QueueBlocker> {
    let config = state.config.as_deref().ok_or(QueueBlocker::NoWindow)?;
    let open = calendar(config, &state.settings).containing(now).map_err(QueueBlocker::UnclearWindows)?;
    open.ok_or(QueueBlocker::NoWindow)
}

fn unreachable(state: &State, view: &View) -> OrdSet<HostName> {
    let is_ready = |name: &HostName| {
        let node = view.nodes.as_ref().filter(|_| state.has_node(name)).and_then(|nodes| nodes.get(name));
        node.is_none_or(|node| node.is_ready)
    };
    let is_missing = |(name, seen): &(&HostName, &SeenHost)| {
        (seen.reachability == Reachability::Unreachable || !is_ready(name))
            && state.enrolled(name).takes_part()
    };
    view.hosts.iter().filter(is_missing).map(|(name, _)| name.clone()).collect()
}

/// Why the entry at `index`, which is queued, cannot start, whatever becomes of the others.
pub(crate) fn not_ready(
    state: &State,
    view: &View,
    index: u64,
    entry: &Entry,
    now: DateTime<Utc>,
) -> Option<NotReady> {
    let host = &entry.host;
    if !state.enrolled(host).takes_part() {
        return Some(NotReady::TakesNoPart);
    }
    if let Err(why) = boot_to_leave(view, entry) {
        return Some(why);
    }
    if let Some(run) = &state.run
        && run.host(host).is_some_and(|in_run| !in_run.status.is_final())
    {
        return Some(NotReady::InRun { run: run.id.clone() });
    }
    let group = group(state, view, host);
    if let Some(slot) = state.slots.get(host) {
        let is_own = slot.run == entry.run_id(index);
        return match slot.state {
            SlotState::Releasing { .. } => Some(NotReady::EarlierSlot),
            SlotState::Requested if is_own => None,
            SlotState::Requested | SlotState::Held => {
                let since = slot.since.trunc_subsecs(0);
                Some(NotReady::SlotHeld { run: slot.run.clone(), since })
            }
        };
    }
    match state.settings.provider {
        // Only its answer tells.
        LockProvider::External => None,
        LockProvider::Embedded => {
            let (arrived, not_after) = (entry.added_at, DateTime::<Utc>::MAX_UTC);
            let denied = state.semaphores.admits_host(&group, host.as_str(), arrived, now, not_after).err();
            denied.map(|denied| NotReady::SlotDenied { group, denied })
        }
    }
}

/// Why an entry of the reboot queue is not progressing. `Display` gives the clause for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum EntryBlocker {
    /// It has backed off.
    #[error("its drain was given up; it is tried again from {} on", time::format(*.0))]
    BackedOff(DateTime<Utc>),
    /// It cannot start, whatever becomes of the others.
    #[error("{0}")]
    NotReady(NotReady),
    /// No entry can start.
    #[error("{0}")]
    Queue(QueueBlocker),
    /// Another entry comes first.
    #[error("entry {0} comes first")]
    Behind(u64),
    /// Its slot was not granted so far.
    #[error("{0}")]
    Slot(Reason),
    /// Its Kubernetes node is being drained or uncordoned.
    #[error("{0}")]
    NodeUnderWay(NodeProgress),
    /// Its command has not been seen in the control stream yet.
    #[error("its reboot command is about to be sent")]
    CommandUnsent,
    /// Its worker has not answered. A boot that hangs ends when an operator gives it up.
    #[error("its worker has not answered reboot since {}", time::format(*.0))]
    ReplyAwaited(DateTime<Utc>),
    /// Its worker answered with an error.
    #[error("{0}; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry")]
    Failed(Reason),
}

impl EntryBlocker {
    /// The word for it in the API: that of the cause, if it has one of its own.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotReady(why) => why.into(),
            Self::Queue(by) => by.kind(),
            Self::BackedOff(_)
            | Self::Behind(_)
            | Self::Slot(_)
            | Self::NodeUnderWay(_)
            | Self::CommandUnsent
            | Self::ReplyAwaited(_)
            | Self::Failed(_) => self.into(),
        }
    }

    /// Every kind.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let own = Self::VARIANTS.iter().filter(|kind| !["not-ready", "queue"].contains(kind)).copied();
        // An entry can have backed off, and so can all of them.
        own.chain(QueueBlocker::kinds()).collect::<BTreeSet<_>>().into_iter()
    }
}

/// Why the entry at `index` is not progressing; `next` is what [`next_reboot`] says. `None` if nothing keeps it.
pub fn explain_entry(
    state: &State,
    view: &View,
    next: &Result<u64, QueueBlocker>,
    (index, entry): (u64, &Entry),
    now: DateTime<Utc>,
) -> Option<EntryBlocker> {
    match entry.status {
        EntryStatus::Queued => {
            if let Err(by) = next
                && by.is_of_queue()
            {
                return Some(EntryBlocker::Queue(by.clone()));
            }
            if let Some(until) = entry.backoff_expire.filter(|_| entry.is_backed_off(now)) {
                return Some(EntryBlocker::BackedOff(until));
            }
            if let Some(why) = not_ready(state, view, index, entry, now) {
                return Some(EntryBlocker::NotReady(why));
            }
            match next {
                Ok(first) if *first == index => entry.reason.clone().map(EntryBlocker::Slot),
                Ok(first) => Some(EntryBlocker::Behind(*first)),
                Err(by) => Some(EntryBlocker::Queue(by.clone())),
            }
        }
        EntryStatus::Draining => {
            let boot = boot_to_leave(view, entry).err().map(EntryBlocker::NotReady);
            boot.or_else(|| node_under_way(state, entry))
        }
        EntryStatus::Rebooting if entry.has_booted() => node_under_way(state, entry),
        EntryStatus::Rebooting
            if entry.unsent().is_some_and(|it| !state.cordon_allows(&entry.host, it.action)) =>
        {
            node_under_way(state, entry)
        }
        EntryStatus::Rebooting => match (&entry.reason, entry.command?.sent_at) {
            (Some(reason), _) => Some(EntryBlocker::Failed(reason.clone())),
            (None, Some(sent_at)) => Some(EntryBlocker::ReplyAwaited(sent_at)),
            (None, None) => Some(EntryBlocker::CommandUnsent),
        },
        EntryStatus::Cancelled => node_under_way(state, entry),
    }
}

fn node_under_way(state: &State, entry: &Entry) -> Option<EntryBlocker> {
    state.nodes.get(&entry.host).map(|node| EntryBlocker::NodeUnderWay(node.progress()))
}

/// The boot that the host of `entry` leaves if it is told to reboot now.
pub(crate) fn boot_to_leave<'a>(view: &'a View, entry: &Entry) -> Result<&'a str, NotReady> {
    let boot_id = announced_boot(view, &entry.host).ok_or(NotReady::NoWorker)?;
    if entry.boot_id.as_deref() == Some(boot_id) { Err(NotReady::BootUnknown) } else { Ok(boot_id) }
}

/// The boot that `host` announces; `None` unless its worker takes a `reboot` that names it.
pub(crate) fn announced_boot<'a>(view: &'a View, host: &HostName) -> Option<&'a str> {
    view.hosts.get(host).filter(|seen| seen.reboots_on_request)?.boot_id.as_deref()
}

/// The group whose slot `host` needs.
pub(crate) fn group(state: &State, view: &View, host: &HostName) -> GroupName {
    let announced = view.hosts.get(host).and_then(|seen| seen.group.clone());
    announced.unwrap_or_else(|| state.settings.default_group.clone())
}

impl State {
    /// The entry of the reboot queue for which the slot of `host` is held or requested, with its index.
    pub fn entry_of_slot(&self, host: &HostName) -> Option<(u64, &Entry)> {
        let slot = self.slots.get(host)?;
        self.reboot_queue.of_run(&slot.run).filter(|(_, entry)| entry.host == *host)
    }

    /// The entry that is under way on `host`: it is drained or reboots.
    pub fn entry_under_way(&self, host: &HostName) -> Option<(u64, &Entry)> {
        self.entry_of_slot(host).filter(|(_, entry)| entry.status.is_under_way())
    }

    /// Whether `host` reboots for an entry, and has not answered yet.
    pub fn has_unanswered_reboot(&self, host: &HostName) -> bool {
        self.entry_under_way(host).is_some_and(|(_, entry)| !entry.has_failed() && !entry.has_booted())
    }

    /// The entries that wait for the answer of the lock server, and nothing else.
    pub(crate) fn requesting_entries(&self) -> impl Iterator<Item = (u64, &Entry, &Slot)> {
        let requested = self.slots.iter().filter(|(_, slot)| {
            slot.state == SlotState::Requested && slot.provider == LockProvider::External
        });
        requested.filter_map(|(host, slot)| {
            let (index, entry) = self.entry_of_slot(host)?;
            (entry.status == EntryStatus::Queued).then_some((index, entry, slot))
        })
    }

    /// Folds a fact about the reboot queue.
    pub(crate) fn apply_reboots(&mut self, at: DateTime<Utc>, fact: &Fact) -> Result<(), ApplyError> {
        if let Fact::RebootsQueued { hosts, window: Some(window), .. } = fact {
            self.reboot_queue.add_required(hosts, *window, at);
        } else if let Fact::RebootsQueued { hosts, window: None, .. } = fact {
            self.reboot_queue.add(hosts.iter().cloned(), at);
        } else if let Fact::Reboot { index, host, event } = fact {
            return self.apply_reboot(*index, host, event, at);
        } else if let Fact::RebootQueueSwitched { enabled, .. } = fact {
            self.reboot_queue.disabled = !enabled;
        } else if let Fact::RebootBackoffReset { .. } = fact {
            self.reboot_queue.reset_backoff();
        }
        Ok(())
    }

    /// Folds what happened to the entry at `index`.
    fn apply_reboot(
        &mut self,
        index: u64,
        host: &HostName,
        event: &EntryEvent,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        if let EntryEvent::Started { group, provider, .. } = event {
            self.check_slot_free(host, group, *provider)?;
        }
        let before = self.reboot_queue.entries.get(&index).cloned();
        self.reboot_queue.apply(index, event, at)?;
        let Some(before) = before else { return Ok(()) };
        match event {
            EntryEvent::Started { group, provider, drain } => {
                self.hold_slot(host, group, *provider, &before.run_id(index), at);
                self.slot_is_for(host, *drain, at);
            }
            EntryEvent::RebootBegan { boot_id } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    node.left = Some(boot_id.clone());
                }
            }
            EntryEvent::CommandSent { sequence, .. } => {
                self.command_of_slot_sent(host, &before.run_id(index), Action::Reboot, *sequence);
            }
            EntryEvent::GivenUp { .. } => {
                if let Some(sequence) = before.unanswered().and_then(|command| command.sequence) {
                    self.retractions.insert(sequence, host.clone());
                }
            }
            EntryEvent::Waiting { .. }
            | EntryEvent::BackedOff { .. }
            | EntryEvent::Booted
            | EntryEvent::Failed { .. }
            | EntryEvent::Cancelled { .. }
            | EntryEvent::Removed
            | EntryEvent::Rebooted => {}
        }
        Ok(())
    }
}
