//! Who reboots a host, and in which boot it is.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use super::attempt::{Attempt, AttemptStage};
use super::choose::NotReady;
use super::entry::{Entry, EntryEvent};
use crate::reason::Reason;
use crate::state::State;
use crate::view::{Reachability, SeenHost, View};

/// Who reboots a host, and the boot that it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rebooter<'a> {
    Worker {
        boot_id: &'a str,
    },
    /// The operator's command.
    Command {
        node: &'a str,
        boot_id: Option<&'a str>,
    },
}

impl<'a> Rebooter<'a> {
    /// Who reboots `host` if it is told to now.
    pub(crate) fn of(state: &State, view: &'a View, host: &'a HostName) -> Result<Self, NotReady> {
        let has_node = state.settings.has_node(host);
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

/// The event that tells the host of `entry` to reboot, whose node was drained in the boot `drained_in`. Absent while it is not known
/// which boot it is to leave.
pub(crate) fn drained(
    state: &State,
    view: &View,
    entry: &Entry,
    drained_in: Option<&str>,
) -> Option<EntryEvent> {
    let rebooter = Rebooter::of_entry(state, view, entry).ok()?;
    // What was seen of it is older than a boot that the drain has found, and that one would be taken for the next.
    if let Rebooter::Command { boot_id: seen, .. } = rebooter
        && let Some((seen, drained_in)) = seen.or(entry.boot_id.as_deref()).zip(drained_in)
        && drained_in != seen
    {
        return None;
    }
    // A boot that was left for an earlier entry is not left once more.
    Some(rebooter.begins(drained_in.filter(|boot_id| entry.boot_id.as_deref() != Some(boot_id))))
}

/// Whether `host` is ready, and the boot in which it is: as its Kubernetes node says, or its worker if it is no node.
fn ready_boot<'a>(state: &State, view: &'a View, host: &HostName) -> Option<&'a str> {
    if state.settings.has_node(host) {
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
pub(crate) fn shows_old_boot(state: &State, view: &View, entry: &Entry) -> bool {
    let sends_heartbeats = |seen: &SeenHost| seen.reachability != Reachability::Unknown;
    let shows_readiness =
        || state.settings.has_node(&entry.host) || view.hosts.get(&entry.host).is_some_and(sends_heartbeats);
    entry.boot_id.is_some() && shows_readiness()
}

/// The boot that `host` announces; `None` unless its worker takes a `reboot` that names it.
pub(crate) fn announced_boot<'a>(view: &'a View, host: &HostName) -> Option<&'a str> {
    view.hosts.get(host).filter(|seen| seen.reboots_on_request)?.boot_id.as_deref()
}
