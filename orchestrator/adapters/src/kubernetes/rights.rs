//! The rights that the adapter needs, as a cluster role names them.

use super::plan::Policy;

/// The right to do one thing with one kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The verb, as in `list`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource with its subresource, as in `pods/eviction`.
    pub resource: &'static str,
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, " of {}", self.group) }
    }
}

const fn right(verb: &'static str, group: &'static str, resource: &'static str) -> Right {
    Right { verb, group, resource }
}

/// Reading a node.
pub const GET_NODE: Right = right("get", "", "nodes");
/// Finding the nodes of hosts, and those that are marked.
pub const LIST_NODES: Right = right("list", "", "nodes");
/// Cordoning and uncordoning.
pub const PATCH_NODE: Right = right("patch", "", "nodes");
/// Finding the pods of a node.
pub const LIST_PODS: Right = right("list", "", "pods");
/// Deleting pods of unprotected namespaces.
pub const DELETE_POD: Right = right("delete", "", "pods");
/// Evicting pods.
pub const EVICT_POD: Right = right("create", "", "pods/eviction");
/// Finding out which namespaces are protected.
pub const LIST_NAMESPACES: Right = right("list", "", "namespaces");
/// Naming the budgets of a pod.
pub const LIST_BUDGETS: Right = right("list", "policy", "poddisruptionbudgets");
/// Writing events about nodes.
pub const CREATE_EVENT: Right = right("create", "", "events");

/// Asking which rights there are, which everybody has who is known to the cluster, unless somebody has taken it away.
pub const REVIEW_RIGHTS: Right = right("create", "authorization.k8s.io", "selfsubjectaccessreviews");

/// What the orchestrator needs with this policy: where all namespaces are protected, no pod is deleted, and no label of a namespace
/// read. Without the right to write events there are none.
pub fn needed(policy: &Policy) -> impl Iterator<Item = Right> {
    let is_used = |right: &Right| ![DELETE_POD, LIST_NAMESPACES].contains(right);
    RIGHTS
        .into_iter()
        .filter(|right| *right != CREATE_EVENT)
        .filter(move |right| policy.needs_namespaces() || is_used(right))
}

/// All that the orchestrator uses, and nothing else.
pub const RIGHTS: [Right; 9] = [
    GET_NODE,
    LIST_NODES,
    PATCH_NODE,
    LIST_PODS,
    DELETE_POD,
    EVICT_POD,
    LIST_NAMESPACES,
    LIST_BUDGETS,
    CREATE_EVENT,
];
