//! What came of one look at a node, and what the obstacles of its pods mean.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Pod, PodObstacle, Volumes};
use os_upgrade_protocol::limits::bounded_message;

use super::super::mark::Standing;
use super::super::plan::{Controller, PlannedPod};

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The node is not cordoned for the site any more.
    NotCordoned(Standing),
    /// A fresh list showed no pod that has to go.
    Drained {
        /// The boot that the kubelet reports.
        boot_id: Option<String>,
    },
    /// The dry run was not refused.
    Clear,
    /// A job is running, or the dry run was refused. These pods are why.
    Refused(Vec<Pod>),
    /// Nothing was refused, but the budgets of these pods are still being computed.
    Pending(Vec<Pod>),
}

/// What came of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Round {
    /// The node is not cordoned for the site any more.
    NotCordoned(Standing),
    /// A fresh list showed no pod that has to go.
    Drained {
        /// The boot that the kubelet reports.
        boot_id: Option<String>,
    },
    /// Pods are left.
    Remaining(Vec<Pod>),
    /// No pod that has to go is left, but volumes are in use.
    VolumesInUse(Volumes),
}

/// A pod by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPod {
    pub namespace: String,
    pub name: String,
    /// Its controller, as in `StatefulSet/db`; absent if it has none.
    pub owner: Option<String>,
    /// Whether no controller replaces it.
    pub is_bare: bool,
    /// Whether it has data in an `emptyDir`, which end with it.
    pub has_empty_dir: bool,
}

impl From<&PlannedPod> for NamedPod {
    fn from(planned: &PlannedPod) -> Self {
        let (namespace, name) = (planned.pod.namespace.clone(), planned.pod.name.clone());
        Self {
            namespace,
            name,
            owner: planned.controller.as_ref().map(owner),
            is_bare: planned.controller.is_none(),
            has_empty_dir: planned.volumes.has_empty_dir,
        }
    }
}

/// What a drain would do. Each pod is judged on its own, so a budget may allow each of several evictions and not all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// The pods that would be evicted.
    pub evicted: Vec<NamedPod>,
    /// The pods that would be deleted, since a budget refuses their eviction and their namespace is not protected.
    pub deleted: Vec<NamedPod>,
    /// The pods that are terminating, whose end would be waited for.
    pub awaited: Vec<NamedPod>,
    /// The pods that would keep the node from being drained as things are.
    pub blocked: Vec<Pod>,
    /// Pods of this project, which stay.
    pub own: Vec<NamedPod>,
}

fn owner(controller: &Controller) -> String {
    bounded_message(&format!("{}/{}", controller.kind, controller.name))
}

/// A pod as the kernel names it.
pub(super) fn pod(planned: &PlannedPod, obstacle: PodObstacle, since: DateTime<Utc>) -> Pod {
    let NamedPod { namespace, name, owner, .. } = planned.into();
    Pod { namespace, name, owner, obstacle, since }
}

/// Whether two obstacles are of the same kind, whatever the messages say.
pub(super) fn is_like(one: &PodObstacle, other: &PodObstacle) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Whether a drain does not begin for this reason.
pub(super) fn is_refusal(obstacle: &PodObstacle) -> bool {
    match obstacle {
        PodObstacle::Budget { .. }
        | PodObstacle::UnreadBudget { .. }
        | PodObstacle::UncountedPods { .. }
        | PodObstacle::SeveralBudgets { .. }
        | PodObstacle::Denied { .. }
        | PodObstacle::MissingRight { .. } => true,
        PodObstacle::NotTried
        | PodObstacle::Requested
        | PodObstacle::Terminating
        | PodObstacle::Finalizers { .. }
        | PodObstacle::JobRunning
        | PodObstacle::Awaited
        | PodObstacle::BudgetPending { .. }
        | PodObstacle::NamespaceEnds
        | PodObstacle::Failed { .. } => false,
    }
}

/// Whether it keeps the pod, as opposed to one that goes or has not been tried.
pub(super) fn blocks(obstacle: &PodObstacle) -> bool {
    match obstacle {
        PodObstacle::NotTried
        | PodObstacle::Requested
        | PodObstacle::Terminating
        | PodObstacle::Finalizers { .. } => false,
        PodObstacle::JobRunning
        | PodObstacle::Awaited
        | PodObstacle::Budget { .. }
        | PodObstacle::UnreadBudget { .. }
        | PodObstacle::BudgetPending { .. }
        | PodObstacle::UncountedPods { .. }
        | PodObstacle::SeveralBudgets { .. }
        | PodObstacle::Denied { .. }
        | PodObstacle::MissingRight { .. }
        | PodObstacle::NamespaceEnds
        | PodObstacle::Failed { .. } => true,
    }
}
