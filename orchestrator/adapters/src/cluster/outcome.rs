//! What is found on a node, as outcomes of jobs.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{NodeOrder, NodeOutcome, PODS_NAMED_MAX, Pod, PodObstacle, Pods};
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_shell::fleet_lock::RetryAfter;

use crate::kubernetes::mark::{ANNOTATION, Mark, Marking, Standing};
use crate::kubernetes::node::{NodeState, Readiness};

/// How much a pod tells of why a node is not drained.
fn weight(obstacle: &PodObstacle) -> u8 {
    match obstacle {
        PodObstacle::JobRunning
        | PodObstacle::Awaited
        | PodObstacle::Budget { .. }
        | PodObstacle::UnreadBudget { .. }
        | PodObstacle::UncountedPods { .. }
        | PodObstacle::SeveralBudgets { .. }
        | PodObstacle::Denied { .. }
        | PodObstacle::MissingRight { .. }
        | PodObstacle::Failed { .. } => 2,
        PodObstacle::BudgetPending { .. } | PodObstacle::Finalizers { .. } | PodObstacle::NotTried => 1,
        PodObstacle::Requested | PodObstacle::Terminating | PodObstacle::NamespaceEnds => 0,
    }
}

/// Pods that are left. The first ones are those that are blocked, in the order of their names.
pub(super) fn remaining(readiness: Readiness, mut pods: Vec<Pod>) -> Pods {
    let kubelet_silent = readiness == Readiness::Unknown;
    let count = pods.len();
    let key = |pod: &Pod| (Reverse(weight(&pod.obstacle)), pod.namespace.clone(), pod.name.clone());
    pods.sort_by_cached_key(key);
    pods.truncate(PODS_NAMED_MAX);
    Pods { count, first: pods, kubelet_silent }
}

/// The pause before the next check, where a budget is being computed. It is about this node alone.
pub(super) fn pause(order: &NodeOrder, outcome: &NodeOutcome, now: DateTime<Utc>) -> Option<RetryAfter> {
    let (NodeOrder::Check { .. }, NodeOutcome::Remaining { pods }) = (order, outcome.without_mark()) else {
        return None;
    };
    let pauses = pods.first.iter().filter_map(|pod| (pod.obstacle.until()? - now).to_std().ok());
    pauses.max().map(RetryAfter::Slot)
}

/// A later leader, or one of another journal, has marked the node.
pub(super) const fn superseded(mark: &Mark) -> NodeOutcome {
    NodeOutcome::Superseded { fence: mark.fence }
}

/// The outcome of work on `node`, with whether that was unschedulable before it was marked.
pub(super) fn with_mark(node: &NodeState, outcome: NodeOutcome) -> NodeOutcome {
    match &node.cordon.marking {
        Marking::Marked { mark, .. } => found(mark.was_unschedulable, outcome),
        Marking::None | Marking::Unreadable { .. } => outcome,
    }
}

/// The outcome of work on a node, with whether that was unschedulable before.
pub(super) fn found(was_unschedulable: bool, outcome: NodeOutcome) -> NodeOutcome {
    if was_unschedulable { NodeOutcome::FoundUnschedulable { outcome: Box::new(outcome) } } else { outcome }
}

/// A node that another site has marked is left alone.
pub(super) fn of_other_site(node: &str, site: &str) -> NodeOutcome {
    let detail = format!("the node {node} is marked by the site {site}, which has to leave it first");
    NodeOutcome::Refused { detail: bounded_message(&detail) }
}

/// A node whose mark cannot be read is left alone.
pub(super) fn unreadable(node: &str, why: &str) -> NodeOutcome {
    let detail = format!(
        "the mark of the node {node} cannot be read, so nobody knows whose it is; if it is nobody's, remove the annotation \
         {ANNOTATION}: {why}"
    );
    NodeOutcome::Refused { detail: bounded_message(&detail) }
}

/// What is told of a node that is not cordoned as it was; nothing of one that is.
pub(super) fn lost(node: &str, standing: Standing) -> Option<NodeOutcome> {
    let detail = match standing {
        Standing::Ours => return None,
        Standing::Superseded(mark) => return Some(superseded(&mark)),
        Standing::ForeignUncordon => format!("somebody has made the node {node} schedulable"),
        Standing::Unmarked => format!("somebody has removed the mark of the node {node}"),
        Standing::OtherSite(mark) => format!("the node {node} is marked by the site {}", mark.site),
        Standing::Unreadable { detail } => format!("the mark of the node {node} cannot be read: {detail}"),
    };
    Some(NodeOutcome::CordonLost { detail: bounded_message(&detail) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, obstacle: PodObstacle) -> Pod {
        Pod {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            owner: None,
            obstacle,
            since: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn blocked_pods_are_named_before_others() {
        let budget = PodObstacle::Budget { budgets: vec!["b".to_owned()] };
        let pods = vec![
            pod("a", PodObstacle::Terminating),
            pod("b", PodObstacle::NotTried),
            pod("c", PodObstacle::Requested),
            pod("z", budget),
            pod("d", PodObstacle::NotTried),
            pod("e", PodObstacle::NotTried),
            pod("y", PodObstacle::JobRunning),
        ];
        let pods = remaining(Readiness::Unknown, pods);
        let names: Vec<&str> = pods.first.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!((pods.count, names), (7, vec!["y", "z", "b", "d", "e"]));
        assert!(pods.kubelet_silent);
    }
}
