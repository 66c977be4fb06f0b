//! Operators' control of the reboot queue, and what follows for its entries.

use std::collections::BTreeSet;

use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::attempt::AttemptStage;
use super::cancel::cancel;
use super::choose::NotReady;
use super::entry::{Entry, EntryEvent, EntryStatus};
use super::next::{is_node_without_worker, takes_part};
use super::rebooter::Rebooter;
use super::state::ENTRIES_MAX;
use crate::answer::{Accepted, Granted, RefusalClass};
use crate::fact::{Fact, QueueFact};
use crate::node::uncordon_due;
use crate::slot::ReleaseCause;
use crate::state::State;
use crate::view::View;

/// How many hosts a refusal names.
const NAMED_MAX: usize = 5;

/// An operation on the reboot queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RebootOperation {
    /// Queue a reboot of each host, or of none if one of them cannot be queued.
    Add {
        /// The hosts, in the order in which they are to reboot.
        hosts: Vec<HostName>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Cancel an entry. One whose host reboots stays until the host is back.
    Cancel {
        index: u64,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Cancel every entry.
    CancelAll {
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Remove an entry whose host will not be back. The host's slot stays held.
    GiveUp {
        index: u64,
        /// Why, as the operator says.
        reason: String,
    },
    /// Let every entry that has backed off start again at once.
    ResetBackoff,
    /// Let entries start.
    Enable {
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Start no further entry. What is under way is finished.
    Disable {
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RebootRefusal {
    /// No host is named.
    NoHosts,
    /// A host is named twice.
    NamedTwice { host: HostName },
    QueueFull {
        /// How many more entries fit.
        room: usize,
        /// How many fit in all.
        max: usize,
    },
    /// No worker has announced itself on some hosts.
    UnknownHosts {
        /// The first of them.
        hosts: Vec<HostName>,
        /// How many there are.
        count: usize,
    },
    /// No worker has announced itself on some hosts, and the cluster has no nodes for them.
    NeitherNodeNorWorker {
        /// The first of them.
        hosts: Vec<HostName>,
        /// How many there are.
        count: usize,
    },
    /// Some hosts may be nodes of the cluster.
    ClusterUnseen,
    /// Some hosts take no part.
    NotApproved {
        /// The first of them.
        hosts: Vec<HostName>,
        /// How many there are.
        count: usize,
    },
    /// The workers of some hosts do not reboot them on request.
    NoRebootsOnRequest {
        /// The first of them.
        hosts: Vec<HostName>,
        /// How many there are.
        count: usize,
    },
    /// A host waits in the queue already.
    Queued { host: HostName, index: u64 },
    /// There is no such entry.
    NoEntry { index: u64 },
    /// The entry has not begun, so there is nothing to give up.
    NotBegun { index: u64, status: EntryStatus },
    /// The operator's command is being run for the entry.
    CommandRuns {
        /// The entry's host.
        host: HostName,
    },
    /// The entry's command is on its way, or its reply may not have been read.
    EntryUncertain {
        /// The entry's host.
        host: HostName,
    },
}

impl RebootRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::NoHosts | Self::NamedTwice { .. } => RefusalClass::Invalid,
            Self::NoEntry { .. } | Self::UnknownHosts { .. } | Self::NeitherNodeNorWorker { .. } => {
                RefusalClass::Missing
            }
            Self::QueueFull { .. }
            | Self::NotApproved { .. }
            | Self::NoRebootsOnRequest { .. }
            | Self::ClusterUnseen
            | Self::Queued { .. }
            | Self::NotBegun { .. }
            | Self::CommandRuns { .. }
            | Self::EntryUncertain { .. } => RefusalClass::Conflict,
        }
    }
}

pub(crate) fn decide(
    state: &State,
    view: &View,
    operation: &RebootOperation,
    actor: &str,
) -> Result<Granted, RebootRefusal> {
    let facts = match operation {
        RebootOperation::Add { hosts, reason } => {
            let facts = add(state, view, hosts, actor, reason.as_deref())?;
            return Ok(Granted { facts, accepted: Accepted::Created });
        }
        RebootOperation::Cancel { index, reason } => {
            let entry = entry(state, *index)?;
            cancel(*index, entry, actor, reason.as_deref()).into_iter().collect()
        }
        RebootOperation::CancelAll { reason } => {
            let entries = state.reboot_queue.entries.iter();
            entries.filter_map(|(index, entry)| cancel(*index, entry, actor, reason.as_deref())).collect()
        }
        RebootOperation::GiveUp { index, reason } => give_up(state, view, *index, actor, reason)?,
        RebootOperation::ResetBackoff => reset_backoff(state, actor).into_iter().collect(),
        RebootOperation::Enable { reason } => switch(state, true, actor, reason.as_deref()),
        RebootOperation::Disable { reason } => switch(state, false, actor, reason.as_deref()),
    };
    Ok(Granted::done(facts))
}

fn add(
    state: &State,
    view: &View,
    hosts: &[HostName],
    actor: &str,
    reason: Option<&str>,
) -> Result<Vec<Fact>, RebootRefusal> {
    if hosts.is_empty() {
        return Err(RebootRefusal::NoHosts);
    }
    let mut named = BTreeSet::new();
    if let Some(host) = hosts.iter().find(|host| !named.insert(*host)) {
        return Err(RebootRefusal::NamedTwice { host: host.clone() });
    }
    if !state.reboot_queue.has_room_for(hosts.len()) {
        let room = ENTRIES_MAX.saturating_sub(state.reboot_queue.entries.len());
        return Err(RebootRefusal::QueueFull { room, max: ENTRIES_MAX });
    }
    let those = |is_it: &dyn Fn(&HostName) -> bool| {
        let all: Vec<&HostName> = hosts.iter().filter(|host| is_it(host)).collect();
        let first: Vec<HostName> = all.iter().take(NAMED_MAX).map(|host| (*host).clone()).collect();
        (!all.is_empty()).then_some((first, all.len()))
    };
    if let Some((hosts, count)) =
        those(&|host| !view.hosts.contains_key(host) && !is_node_without_worker(state, view, host))
    {
        let may_be_node = |host: &&HostName| !view.hosts.contains_key(*host) && state.settings.has_node(host);
        let by_command = state.settings.reboot.command.is_some();
        let may_be_nodes = by_command && state.is_cluster_unseen(view) && named.iter().any(may_be_node);
        return Err(if may_be_nodes {
            RebootRefusal::ClusterUnseen
        } else if state.settings.reboot.command.is_some() {
            RebootRefusal::NeitherNodeNorWorker { hosts, count }
        } else {
            RebootRefusal::UnknownHosts { hosts, count }
        });
    }
    if let Some((hosts, count)) = those(&|host| !takes_part(state, view, host)) {
        return Err(RebootRefusal::NotApproved { hosts, count });
    }
    if let Some((hosts, count)) =
        those(&|host| matches!(Rebooter::of(state, view, host), Err(NotReady::NoWorker)))
    {
        return Err(RebootRefusal::NoRebootsOnRequest { hosts, count });
    }
    let queued = state
        .reboot_queue
        .entries
        .iter()
        .find(|(_, entry)| entry.status == EntryStatus::Queued && named.contains(&entry.host));
    if let Some((index, entry)) = queued {
        return Err(RebootRefusal::Queued { host: entry.host.clone(), index: *index });
    }
    let (hosts, actor, reason) = (hosts.to_vec(), actor.to_owned(), reason.map(ToOwned::to_owned));
    Ok(vec![Fact::Queue(QueueFact::RebootsQueued { hosts, actor, reason, window: None })])
}

fn entry(state: &State, index: u64) -> Result<&Entry, RebootRefusal> {
    state.reboot_queue.entries.get(&index).ok_or(RebootRefusal::NoEntry { index })
}

/// Gives an entry up: nobody waits for its host any more. The host is in an unknown state, so its command is retracted, and its slot
/// stays held until the host answers `done` or an operator releases it.
fn give_up(
    state: &State,
    view: &View,
    index: u64,
    actor: &str,
    reason: &str,
) -> Result<Vec<Fact>, RebootRefusal> {
    let entry = entry(state, index)?;
    let host = entry.host.clone();
    if !entry.status.is_under_way() {
        return Err(RebootRefusal::NotBegun { index, status: entry.status });
    }
    if entry.is_at(AttemptStage::Running) {
        return Err(RebootRefusal::CommandRuns { host });
    }
    // A command that may still appear would be executed under a slot that could be released; and a new leader may not have
    // read the host's reply yet.
    let unsent = entry.unsent();
    // One that its node's cordon does not allow has not been sent under this fence.
    let may_be_sent = unsent
        .is_some_and(|command| state.node_fence().is_none() || state.cordon_allows(&host, command.action));
    if may_be_sent || !view.has_read_control {
        return Err(RebootRefusal::EntryUncertain { host });
    }
    let event = EntryEvent::GivenUp { actor: actor.to_owned(), reason: reason.to_owned() };
    // A host that was not told to reboot is as it was, so that its node can be used.
    let is_drained =
        (entry.status == EntryStatus::Draining || entry.is_unsent()) && state.nodes.contains_key(&host);
    let released = if entry.has_booted() {
        // Nobody waits for its kubelet any more.
        Some(uncordon_due(&host, Some(ReleaseCause::NotNeeded), None))
    } else {
        is_drained.then(|| state.release_slot(&host, ReleaseCause::NotNeeded)).flatten()
    };
    Ok([Fact::of_entry(index, &host, event)].into_iter().chain(released).collect())
}

fn reset_backoff(state: &State, actor: &str) -> Option<Fact> {
    let has_any = state.reboot_queue.entries.values().any(|entry| entry.backoff_count > 0);
    has_any.then(|| Fact::Queue(QueueFact::BackoffReset { actor: actor.to_owned() }))
}

fn switch(state: &State, enabled: bool, actor: &str, reason: Option<&str>) -> Vec<Fact> {
    let (actor, reason) = (actor.to_owned(), reason.map(ToOwned::to_owned));
    let is_new = state.reboot_queue.disabled == enabled;
    is_new.then_some(Fact::Queue(QueueFact::Switched { enabled, actor, reason })).into_iter().collect()
}
