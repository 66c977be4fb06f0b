//! The reboot queue of a site: whether its next entry can start, and what its events change in the state.

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use imbl::OrdSet;
use os_upgrade_calendar::Occurrence;
use os_upgrade_protocol::{Action, GroupName, HostName, time};
use strum::{IntoStaticStr, VariantNames};

use crate::config::{LockProvider, Rollout};
use crate::enrolment::Enrolled;
use crate::fact::Fact;
use crate::forecast::calendar;
use crate::node::{NodeProgress, NodeStage};
use crate::reason::Reason;
use crate::reboot_queue::{
    Asked, Attempt, AttemptStage, Entry, EntryEvent, EntryStatus, Nodes, NotReady, QueueBlocker,
};
use crate::slot::{ReleaseCause, Slot, SlotState};
use crate::state::{ApplyError, State};
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
    let under_way = state.nodes_under_way().union(in_run);
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
    if let Some(doubt) =
        view.clock.doubt.as_ref().filter(|doubt| settings.in_windows || !doubt.is_of_windows())
    {
        return Err(QueueBlocker::Clock(doubt.clone()));
    }
    if settings.in_windows {
        open_window(state, view, now)?;
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
    let open = calendar.containing(now).map_err(QueueBlocker::UnclearWindows)?;
    open.ok_or(QueueBlocker::NoWindow)
}

/// The hosts that may be down: those that are awaited, too.
fn unreachable(state: &State, view: &View) -> OrdSet<HostName> {
    let is_silent =
        |seen: &SeenHost| matches!(seen.reachability, Reachability::Awaited | Reachability::Unreachable);
    let silent = view.hosts.iter().filter(|(_, seen)| is_silent(seen));
    let nodes = view.nodes.iter().flatten();
    let not_ready = nodes.filter(|(name, node)| !node.is_ready && state.has_node(name)).map(|(name, _)| name);
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
        && state.has_node(host)
        && !view.hosts.contains_key(host)
        && is_node()
        && !is_withdrawn()
}

/// Whether the reboot queue may reboot `host`. A node without a worker needs no approval: its cluster vouches for it.
pub(crate) fn takes_part(state: &State, view: &View, host: &HostName) -> bool {
    state.enrolled(host).takes_part() || is_node_without_worker(state, view, host)
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
    if !takes_part(state, view, host) {
        return Some(NotReady::TakesNoPart);
    }
    if let Err(why) = Rebooter::of_entry(state, view, entry) {
        return Some(why);
    }
    let node = view.nodes.as_ref().and_then(|nodes| nodes.get(host)).filter(|_| state.has_node(host));
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
    #[error("{}; it is tried again from {} on", reason.as_ref().map_or("it could not be told to reboot".to_owned(), Reason::to_string), time::format(*until))]
    BackedOff {
        /// Until when it does not start again.
        until: DateTime<Utc>,
        /// Why it has, if that was recorded.
        reason: Option<Reason>,
    },
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
    /// The operator's command is being run.
    #[error("the reboot command is being run since {}", time::format(*.0))]
    CommandRuns(DateTime<Utc>),
    /// The operator's command has begun the reboot, and the host is not back. A boot that hangs ends when an operator gives it up.
    #[error("the reboot command succeeded at {}, and the host is not back", time::format(*.0))]
    BootAwaited(DateTime<Utc>),
    /// Whether the operator's command has begun the reboot is not known, and it is not run again.
    #[error(
        "{reason}; unknown since {}; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry",
        time::format(*since)
    )]
    AttemptUnknown {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        since: DateTime<Utc>,
    },
    /// Whether the operator's command has begun the reboot is not known, and it is run again later.
    #[error(
        "{reason}; unknown since {}; it is run again from {} on if the host is ready in its old boot",
        time::format(*since), time::format(*at)
    )]
    RetryAwaited {
        /// Why it is not known.
        reason: Reason,
        /// Since when.
        since: DateTime<Utc>,
        /// When it is run again, if the host is ready in its old boot then.
        at: DateTime<Utc>,
    },
    /// It was cancelled after the operator's command was run, which is undone if the host has not rebooted by then.
    #[error(
        "cancelled while its host was to reboot: what was begun is undone from {} on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry",
        time::format(*.0)
    )]
    CancelAwaited(DateTime<Utc>),
    /// Whether the operator's command has begun the reboot is not known. The host is in another boot, and the boot check has not said
    /// that this counts.
    #[error("{reason}; the host is in another boot, and boot-check-command has not confirmed it")]
    CheckAwaited {
        /// Why it is not known.
        reason: Reason,
    },
    /// The host is to be rebooted by a command, and the settings have none any more.
    #[error(
        "[reboot] reboot-command is not set any more; set it, or remove the entry with `os-upgrade reboot-queue cancel`"
    )]
    NoCommand,
    /// Its worker answered with an error, or the operator's command failed.
    #[error("{reason}; {}", ends_by(reason))]
    Failed {
        /// What went wrong.
        reason: Reason,
    },
}

/// How an operator ends an entry that has failed.
const fn ends_by(reason: &Reason) -> &'static str {
    if matches!(reason, Reason::RebootCommandNotStarted { .. }) {
        "`os-upgrade reboot-queue cancel` undoes what was begun, and removes the entry"
    } else if matches!(reason, Reason::RebootCommandFailed { .. }) {
        "`os-upgrade reboot-queue cancel` undoes what was begun if the host stays in its boot; once the host is looked after, \
         `give-up` removes the entry"
    } else {
        "once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry"
    }
}

impl EntryBlocker {
    /// The word for it in the API: that of the cause, if it has one of its own.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotReady(why) => why.into(),
            Self::Queue(by) => by.kind(),
            Self::BackedOff { .. }
            | Self::Behind(_)
            | Self::Slot(_)
            | Self::NodeUnderWay(_)
            | Self::CommandUnsent
            | Self::ReplyAwaited(_)
            | Self::CommandRuns(_)
            | Self::BootAwaited(_)
            | Self::AttemptUnknown { .. }
            | Self::RetryAwaited { .. }
            | Self::CancelAwaited(_)
            | Self::CheckAwaited { .. }
            | Self::NoCommand
            | Self::Failed { .. } => self.into(),
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
            let until = entry.backoff_expire.filter(|_| entry.is_backed_off(now));
            if let Err(by) = next
                && by.is_of_queue()
                && (until.is_none() || !by.passes_with_others())
            {
                return Some(EntryBlocker::Queue(by.clone()));
            }
            if let Some(until) = until {
                return Some(EntryBlocker::BackedOff { until, reason: entry.reason.clone() });
            }
            if let Some(why) = not_ready(state, view, index, entry, now) {
                return Some(EntryBlocker::NotReady(why));
            }
            match next {
                // Why an earlier drain was given up does not keep it any more.
                Ok(first) if *first == index => {
                    entry.reason.clone().filter(|reason| !reason.is_of_drain()).map(EntryBlocker::Slot)
                }
                Ok(first) => Some(EntryBlocker::Behind(*first)),
                Err(by) => Some(EntryBlocker::Queue(by.clone())),
            }
        }
        EntryStatus::Draining => {
            let why = Rebooter::of_entry(state, view, entry).err().map(|why| {
                if why == NotReady::NoNode && state.is_cluster_unseen(view) {
                    EntryBlocker::Queue(QueueBlocker::ClusterUnseen)
                } else {
                    EntryBlocker::NotReady(why)
                }
            });
            why.or_else(|| node_under_way(state, entry))
        }
        EntryStatus::Rebooting if entry.has_booted() => node_under_way(state, entry),
        EntryStatus::Rebooting if entry.is_unsent() && !state.cordon_allows(&entry.host, Action::Reboot) => {
            node_under_way(state, entry)
        }
        EntryStatus::Rebooting => match &entry.attempt {
            Some(_) if !state.owns_slot(index, &entry.host) => {
                let slot = state.slots.get(&entry.host)?;
                let (owner, since) = (slot.owner.clone(), slot.since.trunc_subsecs(0));
                Some(EntryBlocker::NotReady(NotReady::SlotHeld { owner, since }))
            }
            Some(attempt) => attempt_blocker(state, view, entry, attempt),
            None => match (&entry.reason, entry.command?.sent_at) {
                (Some(reason), _) => Some(EntryBlocker::Failed { reason: reason.clone() }),
                (None, Some(sent_at)) => Some(EntryBlocker::ReplyAwaited(sent_at)),
                (None, None) => Some(EntryBlocker::CommandUnsent),
            },
        },
        EntryStatus::Cancelled => node_under_way(state, entry),
    }
}

/// Whether the entry at `index` goes on only once an operator has looked after its host: it failed, or nobody knows whether it did.
pub fn needs_operator(state: &State, view: &View, (index, entry): (u64, &Entry), now: DateTime<Utc>) -> bool {
    // What keeps other entries from starting says nothing of one whose host reboots.
    let blocker = || explain_entry(state, view, &Ok(index), (index, entry), now);
    let is_rebooting = entry.status == EntryStatus::Rebooting;
    is_rebooting && (entry.has_failed() || matches!(blocker(), Some(EntryBlocker::AttemptUnknown { .. })))
}

/// Why an entry whose host is rebooted by the operator's command is not progressing.
fn attempt_blocker(state: &State, view: &View, entry: &Entry, attempt: &Attempt) -> Option<EntryBlocker> {
    let is_gone = || {
        let nodes = view.nodes.as_ref().filter(|_| state.has_node(&entry.host));
        nodes.is_some_and(|nodes| !nodes.contains_key(&entry.host))
    };
    // When what was begun is undone, if the host is in its old boot.
    let undone_at = || {
        let is_known = entry.cancel_requested
            && shows_old_boot(state, view, entry)
            && !has_left_boot(state, view, entry);
        state.repeats_attempt_after().filter(|_| is_known).map(|after| attempt.since + after)
    };
    Some(match attempt.stage {
        AttemptStage::Succeeded | AttemptStage::Unknown if is_gone() => {
            EntryBlocker::NotReady(NotReady::NoNode)
        }
        AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed
            if let Some(at) = undone_at() =>
        {
            EntryBlocker::CancelAwaited(at)
        }
        AttemptStage::Due if state.settings.reboot.command.is_none() => EntryBlocker::NoCommand,
        AttemptStage::Due => EntryBlocker::CommandUnsent,
        AttemptStage::Running => EntryBlocker::CommandRuns(attempt.since),
        AttemptStage::Succeeded => EntryBlocker::BootAwaited(attempt.since),
        AttemptStage::Unknown => {
            let may_repeat = !entry.cancel_requested && shows_old_boot(state, view, entry);
            let restored = || Reason::RebootUnknown {
                detail: "the site was restored".to_owned(),
                output: Some(String::new()),
            };
            let (reason, since) = (entry.reason.clone().unwrap_or_else(restored), attempt.since);
            if has_left_boot(state, view, entry) {
                return Some(EntryBlocker::CheckAwaited { reason });
            }
            match state.repeats_attempt_after().filter(|_| may_repeat) {
                Some(after) => EntryBlocker::RetryAwaited { reason, since, at: since + after },
                None => EntryBlocker::AttemptUnknown { reason, since },
            }
        }
        AttemptStage::Failed => EntryBlocker::Failed { reason: entry.reason.clone()? },
        AttemptStage::Booted => return node_under_way(state, entry),
    })
}

fn node_under_way(state: &State, entry: &Entry) -> Option<EntryBlocker> {
    state.nodes.get(&entry.host).map(|node| EntryBlocker::NodeUnderWay(node.progress()))
}

/// Who reboots a host, and the boot that it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rebooter<'a> {
    /// Its worker.
    Worker { boot_id: &'a str },
    /// The operator's command.
    Command { node: &'a str, boot_id: Option<&'a str> },
}

impl<'a> Rebooter<'a> {
    /// Who reboots `host` if it is told to now.
    pub(crate) fn of(state: &State, view: &'a View, host: &'a HostName) -> Result<Self, NotReady> {
        let has_node = state.has_node(host);
        let node = view.nodes.as_ref().filter(|_| has_node).and_then(|nodes| nodes.get(host));
        let Some(command) = state.settings.reboot.command else {
            let boot_id = announced_boot(view, host).ok_or(NotReady::NoWorker)?;
            return match (&view.nodes, node) {
                (Some(_), None) if has_node => Err(NotReady::NoNode),
                _ => Ok(Self::Worker { boot_id }),
            };
        };
        let (node, boot_id) = match node {
            Some(node) => (node.name.as_str(), node.boot_id.as_deref()),
            None if has_node => return Err(NotReady::NoNode),
            None => (host.as_str(), view.hosts.get(host).and_then(|seen| seen.boot_id.as_deref())),
        };
        if boot_id.is_none() && !command.checks_boot {
            return Err(NotReady::NoBoot);
        }
        Ok(Self::Command { node, boot_id })
    }

    /// Who reboots the host of `entry` if it is told to now.
    pub(crate) fn of_entry(state: &State, view: &'a View, entry: &'a Entry) -> Result<Self, NotReady> {
        let rebooter = Self::of(state, view, &entry.host)?;
        let (Self::Worker { boot_id } | Self::Command { boot_id: Some(boot_id), .. }) = rebooter else {
            return Ok(rebooter);
        };
        match rebooter {
            _ if entry.boot_id.as_deref() != Some(boot_id) => Ok(rebooter),
            // That boot was left for an earlier entry, and the operator's command tells when the host is back once more.
            Self::Command { node, .. } if state.settings.reboot.checks_boot() => {
                Ok(Self::Command { node, boot_id: None })
            }
            Self::Command { .. } | Self::Worker { .. } => Err(NotReady::BootUnknown),
        }
    }

    /// The event that tells the host to reboot. A drain has found `drained_in`, the boot of its node.
    pub(crate) fn begins(self, drained_in: Option<&str>) -> EntryEvent {
        match self {
            Self::Worker { boot_id } => EntryEvent::RebootBegan { boot_id: boot_id.to_owned() },
            Self::Command { node, boot_id } => {
                let boot_id = drained_in.or(boot_id).map(ToOwned::to_owned);
                EntryEvent::AttemptDue { node: node.to_owned(), boot_id }
            }
        }
    }
}

/// The facts that the host of the entry at `index` is back: its slot is released for `why`, once its node, if it has one, is
/// uncordoned. `checked`: the operator's command says so.
pub(crate) fn host_is_back(
    state: &State,
    index: u64,
    host: &HostName,
    checked: bool,
    why: ReleaseCause,
) -> Vec<Fact> {
    let is_cordoned = state.nodes.contains_key(host);
    let event = if is_cordoned { EntryEvent::Booted { checked } } else { EntryEvent::Rebooted };
    let back = Fact::Reboot { index, host: host.clone(), event };
    [back].into_iter().chain(state.release_slot(host, why)).collect()
}

/// Whether `host` is ready, and the boot in which it is: as its Kubernetes node says, or its worker if it is no node.
fn ready_boot<'a>(state: &State, view: &'a View, host: &HostName) -> Option<&'a str> {
    if state.has_node(host) {
        return view.nodes.as_ref()?.get(host).filter(|node| node.is_ready)?.boot_id.as_deref();
    }
    let seen = view.hosts.get(host)?;
    let is_there = match seen.reachability {
        Reachability::Reachable | Reachability::Unknown => true,
        Reachability::Awaited | Reachability::Unreachable => false,
    };
    seen.boot_id.as_deref().filter(|_| is_there)
}

/// Whether the host of `entry`, which the operator's command reboots, is in another boot than the one that it was to leave: it was
/// drained in another one, or is ready in another one.
pub(crate) fn has_left_boot(state: &State, view: &View, entry: &Entry) -> bool {
    let drained_in = state.nodes.get(&entry.host).and_then(|node| node.boot_id.as_deref());
    let is_other = |boot: &str| entry.boot_id.as_deref().is_some_and(|left| boot != left);
    drained_in.is_some_and(is_other) || ready_boot(state, view, &entry.host).is_some_and(is_other)
}

/// Whether the host of `entry`, which the operator's command reboots, is ready in the boot that it was to leave.
fn is_in_old_boot(state: &State, view: &View, entry: &Entry) -> bool {
    let boot = ready_boot(state, view, &entry.host).filter(|_| shows_old_boot(state, view, entry));
    boot.zip(entry.boot_id.as_deref()).is_some_and(|(boot, left)| boot == left)
}

/// Whether the host of `entry`, which was cancelled, has not rebooted and will not: nothing was run, or the host is ready in the
/// boot that it was to leave, long after it would have left it. What a command says of itself proves nothing: a management
/// controller may have accepted a reboot all the same.
pub(crate) fn has_not_rebooted(
    state: &State,
    view: &View,
    entry: &Entry,
    attempt: &Attempt,
    now: DateTime<Utc>,
) -> bool {
    let was_never_run = attempt.number == 1
        && attempt.stage == AttemptStage::Failed
        && matches!(entry.reason, Some(Reason::RebootCommandNotStarted { .. }));
    let is_told =
        matches!(attempt.stage, AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed);
    was_never_run || (is_told && has_stayed(state, view, entry, attempt, now))
}

/// Whether the host of `entry` is ready in the boot that it was to leave, long after `attempt` would have made it leave that.
pub(crate) fn has_stayed(
    state: &State,
    view: &View,
    entry: &Entry,
    attempt: &Attempt,
    now: DateTime<Utc>,
) -> bool {
    let is_late = |after| view.clock.has_passed(after, attempt.since, now);
    view.may_time_out()
        && state.repeats_attempt_after().is_some_and(is_late)
        && is_in_old_boot(state, view, entry)
}

/// Whether it would be known that the host of `entry` is ready in the boot that it is to leave: a host that is no node and sends no
/// heartbeats never shows that it is ready.
fn shows_old_boot(state: &State, view: &View, entry: &Entry) -> bool {
    let sends_heartbeats = |seen: &SeenHost| seen.reachability != Reachability::Unknown;
    let shows_readiness =
        || state.has_node(&entry.host) || view.hosts.get(&entry.host).is_some_and(sends_heartbeats);
    entry.boot_id.is_some() && shows_readiness()
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
    /// Whether the nodes of the cluster are not known, though there is one.
    pub(crate) fn is_cluster_unseen(&self, view: &View) -> bool {
        self.settings.kubernetes.is_some() && view.nodes.is_none()
    }

    /// How long after the outcome of an attempt got lost it is repeated: once the command has ended by itself for sure, and a host
    /// that reboots would be back. Absent without a command.
    pub(crate) fn repeats_attempt_after(&self) -> Option<TimeDelta> {
        let within = self.settings.reboot.command?.within;
        let boot_timeout = self
            .config
            .as_ref()
            .map_or_else(|| Rollout::default().boot_timeout, |config| config.rollout.boot_timeout);
        Some(within.to_delta() + boot_timeout.to_delta())
    }

    /// The entry of the reboot queue for which the slot of `host` is held or requested, with its index.
    pub fn entry_of_slot(&self, host: &HostName) -> Option<(u64, &Entry)> {
        let slot = self.slots.get(host)?;
        self.reboot_queue.of_owner(&slot.owner).filter(|(_, entry)| entry.host == *host)
    }

    /// The entries whose hosts the operator's command reboots. After a restoration a slot may be held for something else than its
    /// entry: nothing is done for such an entry.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = (u64, &Entry, &Attempt)> {
        let under_way = self.reboot_queue.under_way();
        let attempts = under_way.filter_map(|(index, entry)| Some((index, entry, entry.attempt.as_ref()?)));
        attempts.filter(|(index, entry, _)| self.owns_slot(*index, &entry.host))
    }

    /// Whether the slot of `host` is held for the entry at `index`.
    pub(crate) fn owns_slot(&self, index: u64, host: &HostName) -> bool {
        self.entry_of_slot(host).is_some_and(|(of_slot, _)| of_slot == index)
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
        } else if let Fact::RebootsQueued { hosts, actor, reason, window: None } = fact {
            let asked = Asked { actor: actor.clone(), reason: reason.clone() };
            self.reboot_queue.add(hosts.iter().cloned(), asked, at);
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
                self.hold_slot(host, group, *provider, &before.owner(index), at);
                self.slot_is_for(host, *drain, at);
            }
            EntryEvent::RebootBegan { boot_id } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    node.left = Some(boot_id.clone());
                }
            }
            EntryEvent::AttemptDue { .. } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    // One that is repeated is long after the drain.
                    if before.status == EntryStatus::Rebooting && node.stage == NodeStage::Drained {
                        node.reboots();
                    } else {
                        node.left.clone_from(&node.boot_id);
                    }
                }
            }
            EntryEvent::AttemptBegan => {
                if let Some(slot) = self.slots.get_mut(host) {
                    slot.command = None;
                    slot.begun = true;
                }
            }
            EntryEvent::Booted { checked: true } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    node.left = None;
                }
            }
            EntryEvent::CommandSent { sequence, .. } => {
                self.command_of_slot_sent(host, &before.owner(index), Action::Reboot, *sequence);
            }
            EntryEvent::GivenUp { .. } => {
                if let Some(sequence) = before.unanswered().and_then(|command| command.sequence) {
                    self.retractions.insert(sequence, host.clone());
                }
            }
            EntryEvent::Waiting { .. }
            | EntryEvent::BackedOff { .. }
            | EntryEvent::Booted { checked: false }
            | EntryEvent::AttemptSucceeded
            | EntryEvent::AttemptUnknown { .. }
            | EntryEvent::Failed { .. }
            | EntryEvent::Cancelled { .. }
            | EntryEvent::NotRebooted
            | EntryEvent::Removed
            | EntryEvent::Rebooted => {}
        }
        Ok(())
    }
}
