//! Operators' control of Kubernetes nodes, and what follows from time and from what is seen of them.

use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::state::{NodeStage, NodeStep};
use crate::answer::{Granted, RefusalClass};
use crate::fact::{Fact, NodeFact};
use crate::state::State;

/// An operation on the Kubernetes node of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeOperation {
    /// Let a node that stays cordoned, because its host failed or the node does not get ready, be as it was before.
    Uncordon {
        host: HostName,
        /// Why, as the operator says.
        reason: String,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeRefusal {
    /// The node is not cordoned from here.
    NotCordoned { host: HostName },
    /// The host is being upgraded or rebooted.
    NodeInUse { host: HostName },
    /// A command of the host may still appear.
    NodeUncertain { host: HostName },
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

pub(crate) fn decide(state: &State, operation: &NodeOperation, actor: &str) -> Result<Granted, NodeRefusal> {
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
    Ok(Granted::done(steps.map(|step| Fact::Node(NodeFact::Step { host: host.clone(), step })).collect()))
}
