//! The Kubernetes node of a host, as hosts and the state show it.

use std::borrow::Cow;

use os_upgrade_kernel::node::{NodeStageKind, NodeWaitKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::Stamp;
use crate::text::{NodeStageWord, NodeWaitWord, PodObstacleWord};
use crate::word::Word;

/// The Kubernetes node of a host: `{"stage":"evicting","since":"...","waits":{"kind":"pods","text":"...","count":1,"pods":[...]}}`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HostNode<'a> {
    #[schema(value_type = NodeStageWord)]
    pub stage: Word<NodeStageKind>,
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
    pub kind: Word<NodeWaitKind>,
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
