//! The Kubernetes node of a host.

use std::borrow::Cow;

use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::node::{HostNode, NodeWaits, WaitingPod};
use os_upgrade_console::describe;
use os_upgrade_kernel::node::{NodeStageKind, NodeWaitKind};
use os_upgrade_kernel::{NodeWait, Pod, State};
use os_upgrade_protocol::HostName;

/// The node of `host`; `None` if it is neither cordoned nor being uncordoned.
pub(crate) fn node<'a>(state: &'a State, host: &HostName) -> Option<HostNode<'a>> {
    let node = state.nodes.get(host)?;
    Some(HostNode {
        stage: NodeStageKind::from(&node.stage).into(),
        since: Stamp(node.since),
        kept: state.stays_cordoned(host),
        waits: node.waits.as_ref().map(waits),
    })
}

fn waits(waits: &NodeWait) -> NodeWaits<'_> {
    let pods = match waits {
        NodeWait::Pods { pods } => Some(pods),
        NodeWait::Volumes { .. }
        | NodeWait::NotReady
        | NodeWait::ForeignMark { .. }
        | NodeWait::Unreachable { .. }
        | NodeWait::Refused { .. } => None,
    };
    NodeWaits {
        kind: NodeWaitKind::from(waits).into(),
        text: describe(waits).to_string(),
        kubelet_silent: pods.is_some_and(|pods| pods.kubelet_silent),
        count: pods.map(|pods| pods.count),
        pods: pods.iter().flat_map(|pods| &pods.first).map(waiting_pod).collect(),
    }
}

/// The pod as it is shown.
pub(crate) fn waiting_pod(pod: &Pod) -> WaitingPod<'_> {
    WaitingPod {
        namespace: pod.namespace.as_str().into(),
        name: pod.name.as_str().into(),
        owner: pod.owner.as_deref().map(Cow::from),
        obstacle: Cow::Borrowed((&pod.obstacle).into()),
        text: describe(&pod.obstacle).to_string(),
        since: Stamp(pod.since),
    }
}
