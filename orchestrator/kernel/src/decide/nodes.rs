//! Operators' control of Kubernetes nodes, and what follows from time and from what is seen of them.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::admission::non_empty;
use super::granted::Granted;
use super::refusal_class::RefusalClass;
use crate::fact::Fact;
use crate::node::{Node, NodeStage, NodeStep};
use crate::nodes::uncordon_due;
use crate::reason::Reason;
use crate::state::State;
use crate::view::{SeenNode, View};

/// An operation on the Kubernetes node of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeOperation {
    /// Let a node that stays cordoned, because its host failed or the node does not get ready, be as it was before.
    Uncordon {
        /// The host.
        host: HostName,
        /// Why, as the operator says.
        reason: String,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeRefusal {
    /// The node is not cordoned from here.
    #[error("the node of {host} is not cordoned by this site")]
    NotCordoned {
        /// The host.
        host: HostName,
    },
    /// The host is being upgraded or rebooted.
    #[error(
        "{host} is under way: its node is uncordoned by itself; cancel or give up what is under way to end it now"
    )]
    NodeInUse {
        /// The host.
        host: HostName,
    },
    /// A command of the host may still appear.
    #[error("a command to {host} may still be on its way: try again in a moment")]
    NodeUncertain {
        /// The host.
        host: HostName,
    },
}

impl NodeRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::NotCordoned { .. } => RefusalClass::Missing,
            Self::NodeInUse { .. } | Self::NodeUncertain { .. } => RefusalClass::Conflict,
        }
    }
}

pub(super) fn decide(state: &State, operation: &NodeOperation, actor: &str) -> Result<Granted, NodeRefusal> {
    match operation {
        NodeOperation::Uncordon { host, reason } => uncordon(state, host, actor, reason),
    }
}

fn uncordon(state: &State, host: &HostName, actor: &str, reason: &str) -> Result<Granted, NodeRefusal> {
    let Some(node) = state.nodes.get(host) else {
        return Err(NodeRefusal::NotCordoned { host: host.clone() });
    };
    if state.is_at_work(host) {
        return Err(NodeRefusal::NodeInUse { host: host.clone() });
    }
    if state.may_begin_late(host) {
        return Err(NodeRefusal::NodeUncertain { host: host.clone() });
    }
    let is_configured = state.settings.kubernetes.is_some();
    let is_uncordoned = matches!(node.stage, NodeStage::Uncordoning { .. })
        && !node.stage.waits_for_ready()
        && node.foreign_mark().is_none();
    if is_configured && is_uncordoned {
        return Ok(Granted::done(Vec::new()));
    }
    let requested = NodeStep::UncordonRequested { actor: actor.to_owned(), reason: reason.to_owned() };
    // Nothing else ends what waits for a cluster that is no longer configured.
    let ended = (!is_configured).then_some(NodeStep::Uncordoned);
    let steps = std::iter::once(requested).chain(ended);
    Ok(Granted::done(steps.map(|step| Fact::Node { host: host.clone(), step }).collect()))
}

/// Gives up drains that have taken too long.
pub(super) fn time_out_drains(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let after = state.drain_timeout();
    let is_late =
        |node: &Node| view.clock.is_trusted() && view.clock.has_passed(after.to_delta(), node.since, now);
    let late = state.nodes.iter().filter(|(host, node)| is_late(node) && state.drained_for(host).is_some());
    let given_up = late.filter_map(|(host, node)| {
        let reason = Reason::DrainTimedOut { after, waits: node.waits.clone() };
        state.back_off(host, reason, now)
    });
    non_empty(given_up.collect())
}

/// Uncordons nodes with a mark of this site that nothing needs: those of which the state knows nothing, and those of hosts that
/// failed, once somebody has made them schedulable by hand.
pub(super) fn sweep(state: &State, view: &View) -> Vec<Fact> {
    // Before its fence is passed, a leader may not know all that was decided before.
    let Some(nodes) = view.nodes.as_ref().filter(|_| state.node_fence().is_some()) else { return Vec::new() };
    let under_way = state.nodes_under_way();
    let is_left = |(host, seen): &(&HostName, &SeenNode)| match state.nodes.get(*host) {
        None => !state.slots.contains_key(*host),
        Some(node) => {
            let is_uncordoned = matches!(node.stage, NodeStage::Uncordoning { .. });
            let is_kept = !is_uncordoned && !under_way.contains(*host) && !state.may_begin_late(host);
            is_kept && !seen.is_unschedulable
        }
    };
    let marked = nodes.iter().filter(|(_, seen)| seen.mark.is_some());
    let left = marked.filter(is_left);
    left.map(|(host, _)| uncordon_due(host, None, None)).collect()
}
