//! The resources that the server knows.

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A kind of object, and where it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The version of the group.
    pub(crate) version: &'static str,
    /// The name in paths.
    pub(crate) plural: &'static str,
    /// The name in objects.
    pub(crate) kind: &'static str,
    /// Whether objects live in a namespace.
    pub(crate) is_namespaced: bool,
    /// Whether `status` is a subresource, which writes of the object leave alone.
    pub(crate) has_status: bool,
}

const fn resource(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
) -> Resource {
    Resource { group, version, plural, kind, is_namespaced: true, has_status: false }
}

/// Nodes.
pub const NODES: Resource =
    Resource { is_namespaced: false, has_status: true, ..resource("", "v1", "nodes", "Node") };
/// Namespaces.
pub const NAMESPACES: Resource =
    Resource { is_namespaced: false, has_status: true, ..resource("", "v1", "namespaces", "Namespace") };
/// Pods.
pub const PODS: Resource = Resource { has_status: true, ..resource("", "v1", "pods", "Pod") };
/// Events of the core group.
pub const EVENTS: Resource = resource("", "v1", "events", "Event");
/// Pod disruption budgets.
pub const BUDGETS: Resource =
    Resource { has_status: true, ..resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget") };
/// Leases, of which each kubelet renews one.
pub const LEASES: Resource = resource("coordination.k8s.io", "v1", "leases", "Lease");
/// Daemon sets.
pub const DAEMON_SETS: Resource = resource("apps", "v1", "daemonsets", "DaemonSet");
/// Service accounts.
pub const ACCOUNTS: Resource = resource("", "v1", "serviceaccounts", "ServiceAccount");
/// Roles of namespaces.
pub const ROLES: Resource = resource(RBAC_GROUP, "v1", "roles", "Role");
/// Who has a role in a namespace.
pub const ROLE_BINDINGS: Resource = resource(RBAC_GROUP, "v1", "rolebindings", "RoleBinding");
/// Volume attachments.
pub const VOLUME_ATTACHMENTS: Resource = Resource {
    is_namespaced: false,
    ..resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment")
};

/// What callers ask about their own rights. Nothing is stored.
pub(crate) const REVIEWS: Resource = Resource {
    is_namespaced: false,
    ..resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
};

/// All of them. Events of `events.k8s.io` are kept apart from those of the core group.
pub(crate) const ALL: [Resource; 13] = [
    NODES,
    NAMESPACES,
    PODS,
    EVENTS,
    BUDGETS,
    LEASES,
    DAEMON_SETS,
    ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    VOLUME_ATTACHMENTS,
    REVIEWS,
    resource("events.k8s.io", "v1", "events", "Event"),
];

impl Resource {
    /// The resource of this group, version and plural.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<Self> {
        ALL.into_iter().find(|known| (known.group, known.version, known.plural) == (group, version, plural))
    }

    /// The `apiVersion` of its objects.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Its name in messages, as in `poddisruptionbudgets.policy`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}
