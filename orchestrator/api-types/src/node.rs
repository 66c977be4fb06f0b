//! The Kubernetes node of a host, as hosts and the state show it.

use std::borrow::Cow;

use os_upgrade_console::describe;
use os_upgrade_kernel::{NodeWait, Pod, State};
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::Stamp;
use crate::text::{NodeStageWord, NodeWaitWord, PodObstacleWord};

/// The Kubernetes node of a host: `{"stage":"evicting","since":"...","waits":{"kind":"pods","text":"...","count":1,"pods":[...]}}`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HostNode<'a> {
    #[schema(value_type = NodeStageWord)]
    pub stage: Cow<'static, str>,
    /// When its drain, or the end of its cordon, began.
    pub since: Stamp,
    /// Whether it stays cordoned until an operator has it uncordoned, because its host failed or was given up; absent if it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub kept: bool,
    /// What it waits for; absent if nothing is known to keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<NodeWaits<'a>>,
}

/// What a drain, or the end of a cordon, waits for.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeWaits<'a> {
    #[schema(value_type = NodeWaitWord)]
    pub kind: Cow<'static, str>,
    /// The same for people, with the pods.
    pub text: String,
    /// Whether nothing is heard of the kubelet of the node, which would end pods that are terminating; absent if it speaks.
    #[serde(rename = "kubelet-silent", default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub kubelet_silent: bool,
    /// How many pods are left; absent if it does not wait for pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// The first of them, those with an obstacle before those that are merely ending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 5)]
    pub pods: Vec<WaitingPod<'a>>,
}

/// A pod that is still on a node.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WaitingPod<'a> {
    pub namespace: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// Its controller, as in `StatefulSet/db`; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Cow<'a, str>>,
    #[schema(value_type = PodObstacleWord)]
    pub obstacle: Cow<'static, str>,
    /// The obstacle for people, with its details.
    pub text: String,
    /// Since when it has had this obstacle, as far as is known.
    pub since: Stamp,
}

impl<'a> HostNode<'a> {
    /// The node of `host`; `None` if it is neither cordoned nor being uncordoned.
    pub fn of(state: &'a State, host: &HostName) -> Option<Self> {
        let node = state.nodes.get(host)?;
        Some(Self {
            stage: node.stage.as_str().into(),
            since: Stamp(node.since),
            kept: state.stays_cordoned(host),
            waits: node.waits.as_ref().map(NodeWaits::of),
        })
    }
}

impl<'a> NodeWaits<'a> {
    fn of(waits: &'a NodeWait) -> Self {
        let pods = match waits {
            NodeWait::Pods { pods } => Some(pods),
            NodeWait::Volumes { .. }
            | NodeWait::NotReady
            | NodeWait::ForeignMark { .. }
            | NodeWait::Unreachable { .. }
            | NodeWait::Refused { .. } => None,
        };
        Self {
            kind: waits.kind().into(),
            text: describe(waits).to_string(),
            kubelet_silent: pods.is_some_and(|pods| pods.kubelet_silent),
            count: pods.map(|pods| pods.count),
            pods: pods.iter().flat_map(|pods| &pods.first).map(WaitingPod::of).collect(),
        }
    }
}

impl<'a> WaitingPod<'a> {
    /// The pod as it is shown.
    pub fn of(pod: &'a Pod) -> Self {
        Self {
            namespace: pod.namespace.as_str().into(),
            name: pod.name.as_str().into(),
            owner: pod.owner.as_deref().map(Cow::from),
            obstacle: Cow::Borrowed((&pod.obstacle).into()),
            text: describe(&pod.obstacle).to_string(),
            since: Stamp(pod.since),
        }
    }
}
