//! What the work on a host's Kubernetes node waits for, with the pods by name.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr, VariantNames};

use super::fence::NodeFence;
use crate::left_out::is_default;
use crate::no_answer::NoAnswer;

/// How many pods are named.
pub const PODS_NAMED_MAX: usize = 5;

/// What a drain, or the end of a cordon, waits for.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames, EnumDiscriminants,
)]
#[strum_discriminants(
    name(NodeWaitKind),
    derive(Serialize, Deserialize, IntoStaticStr, VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NodeWait {
    /// Pods that have to go are still there.
    Pods { pods: Pods },
    /// Its pods are gone, and volumes are still in use on it.
    Volumes { volumes: Volumes },
    /// Its kubelet has not reported that the node is ready, after the boot if it was to reboot.
    NotReady,
    /// Its mark is of a journal that this site does not have: from before the site was set up anew, or put back.
    ForeignMark {
        /// The fence in the mark.
        fence: NodeFence,
    },
    /// The API server did not answer.
    Unreachable {
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// The API server refused what was asked of it, or what it says makes no sense.
    Refused {
        /// The refusal.
        detail: String,
    },
}

impl NodeWait {
    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Whether `other` says nothing new. Texts are not compared, because servers may add a time or an id to each answer.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pods { pods }, Self::Pods { pods: others }) => pods.is_like(others),
            (Self::Volumes { volumes }, Self::Volumes { volumes: others }) => volumes == others,
            (Self::ForeignMark { fence }, Self::ForeignMark { fence: other }) => fence == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// It, with the time since when each pod has had the same obstacle, as far as `before` knows it.
    pub(crate) fn since(mut self, before: Option<&Self>) -> Self {
        if let (Self::Pods { pods }, Some(Self::Pods { pods: before })) = (&mut self, before) {
            for pod in &mut pods.first {
                let same = before.first.iter().find(|earlier| earlier.is_like(pod));
                pod.since = same.map_or(pod.since, |earlier| earlier.since.min(pod.since));
            }
        }
        self
    }
}

/// Pods that keep a node from being drained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pods {
    /// How many there are.
    pub count: usize,
    /// The first ones, at most [`PODS_NAMED_MAX`]: those with an obstacle before those that are merely ending.
    pub first: Vec<Pod>,
    /// Whether nothing is heard of the kubelet of the node, which would end them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kubelet_silent: bool,
}

impl Pods {
    /// Whether nothing but disruption budgets keeps them, which other pods may have spent for the moment.
    pub(crate) fn are_kept_by_budgets(&self) -> bool {
        let is_by_budget = |pod: &Pod| {
            matches!(
                pod.obstacle,
                PodObstacle::Budget { .. }
                    | PodObstacle::UnreadBudget { .. }
                    | PodObstacle::BudgetPending { .. }
            )
        };
        !self.first.is_empty() && self.first.iter().all(is_by_budget)
    }

    /// Whether nothing keeps them but budgets that are being computed.
    pub(crate) fn wait_for_budgets(&self) -> bool {
        let is_pending = |pod: &Pod| matches!(pod.obstacle, PodObstacle::BudgetPending { .. });
        !self.first.is_empty() && self.first.iter().all(is_pending)
    }

    fn is_like(&self, other: &Self) -> bool {
        let same =
            |(one, other): (&Pod, &Pod)| one.is_like(other) && one.obstacle.until() == other.obstacle.until();
        self.kubelet_silent == other.kubelet_silent
            && self.first.len() == other.first.len()
            && self.first.iter().zip(&other.first).all(same)
    }
}

/// Volumes that are in use on a node whose pods are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Volumes {
    /// How many there are.
    pub count: usize,
    /// The first ones, as the node names them.
    pub first: Vec<String>,
    /// How many of them may belong to pods that stay.
    pub staying: usize,
}

/// A pod that keeps a node from being drained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    /// Its controller, as in `StatefulSet/db`; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Why it is there.
    pub obstacle: PodObstacle,
    /// Since when, as far as is known.
    pub since: DateTime<Utc>,
}

impl Pod {
    fn is_like(&self, other: &Self) -> bool {
        let name = |pod: &Self| (pod.namespace.clone(), pod.name.clone());
        name(self) == name(other)
            && std::mem::discriminant(&self.obstacle) == std::mem::discriminant(&other.obstacle)
    }
}

/// Why a pod is still on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PodObstacle {
    /// It was not its turn yet.
    NotTried,
    /// It is being evicted, or deleted.
    Requested,
    Terminating,
    /// It is terminating, and is not removed before whoever has set them takes its finalizers away.
    Finalizers {
        /// The first finalizers.
        finalizers: Vec<String>,
    },
    JobRunning,
    /// The settings say that it is waited for.
    Awaited,
    /// Disruption budgets do not allow its eviction.
    Budget {
        /// The budgets that select it; empty if they could not be read.
        budgets: Vec<String>,
    },
    /// A budget does not allow its eviction, and budgets cannot be read.
    UnreadBudget {
        /// The server's message, which names the budget.
        message: String,
    },
    /// The status of its budget is not computed yet, so that nobody knows whether the pod may be evicted.
    BudgetPending {
        /// The server's message, which names the budget.
        message: String,
        /// When the server is asked again.
        until: DateTime<Utc>,
    },
    /// A budget counts pods of controllers, and none that it selects has one, so that it never allows an eviction.
    UncountedPods {
        budget: String,
    },
    /// Several budgets select it; Kubernetes evicts no such pod.
    SeveralBudgets {
        budgets: Vec<String>,
    },
    /// Something else, such as an admission webhook, refuses.
    Denied {
        /// Its message.
        detail: String,
    },
    /// The orchestrator may not evict it.
    MissingRight {
        /// The right, and the server's message.
        detail: String,
    },
    /// Its namespace is being deleted.
    NamespaceEnds,
    /// The last request about it failed.
    Failed {
        /// The failure.
        detail: String,
    },
}

impl PodObstacle {
    /// When it is known to end or to be looked at again, if it has such a time.
    pub fn until(&self) -> Option<DateTime<Utc>> {
        if let Self::BudgetPending { until, .. } = self { Some(*until) } else { None }
    }
}
