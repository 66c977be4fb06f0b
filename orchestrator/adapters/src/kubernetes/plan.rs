//! Which pods of a node have to go before it is upgraded, and how. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::labels::{ParseExpressionError, Selector, SelectorExt as _};

use super::objects::{Metadata, Names, Namespace, OwnerReference, Pod, PodVolumes};

/// The label of the pods of this project: orchestrators, the bus, workers. To evict them would stop who evicts.
const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "os-upgrade");

/// A pod. Names recur, uids do not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// The controller of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controller {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind, as in `ReplicaSet`.
    pub kind: String,
    pub name: String,
}

impl Controller {
    fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl From<OwnerReference> for Controller {
    fn from(OwnerReference { api_version, kind, name, .. }: OwnerReference) -> Self {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        Self { group: group.to_owned(), kind, name }
    }
}

/// Which pods are treated with care.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    protected_namespaces: Option<Selector>,
    protected_job_pods: Option<Selector>,
    awaited_pods: Option<Selector>,
}

impl Policy {
    /// A policy with selectors of protected namespaces and of pods of jobs that are waited for. A selector that is absent or
    /// empty chooses all.
    ///
    /// # Errors
    /// A selector cannot be used.
    pub fn new(
        protected_namespaces: Option<LabelSelector>,
        protected_job_pods: Option<LabelSelector>,
    ) -> Result<Self, ParseExpressionError> {
        let selector = |labels: Option<LabelSelector>| labels.map(Selector::try_from).transpose();
        Ok(Self {
            protected_namespaces: selector(protected_namespaces)?,
            protected_job_pods: selector(protected_job_pods)?,
            awaited_pods: None,
        })
    }

    /// The same policy with a selector of pods that are never evicted and always waited for. Without, it chooses none.
    ///
    /// # Errors
    /// The selector cannot be used.
    pub fn waiting_for(self, pods: Option<LabelSelector>) -> Result<Self, ParseExpressionError> {
        Ok(Self { awaited_pods: pods.map(Selector::try_from).transpose()?, ..self })
    }

    /// Whether a pod with these labels is waited for, whatever it is.
    pub(crate) fn awaits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.awaited_pods.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether it depends on a namespace's labels whether it is protected.
    pub fn needs_namespaces(&self) -> bool {
        self.protected_namespaces.as_ref().is_some_and(|selector| !selector.selects_all())
    }

    /// A namespace whose labels are not known is protected.
    fn protects(&self, namespace: &str, namespaces: &Namespaces) -> bool {
        let Some(selector) = &self.protected_namespaces else { return true };
        namespaces.0.get(namespace).is_none_or(|labels| selector.matches(labels))
    }

    fn waits_for_job(&self, labels: &BTreeMap<String, String>) -> bool {
        self.protected_job_pods.as_ref().is_none_or(|selector| selector.matches(labels))
    }
}

/// The labels of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces(BTreeMap<String, BTreeMap<String, String>>);

impl FromIterator<Namespace> for Namespaces {
    fn from_iter<T: IntoIterator<Item = Namespace>>(namespaces: T) -> Self {
        let labels = |namespace: Namespace| {
            let Metadata { name, labels, .. } = namespace.metadata;
            (name.unwrap_or_default(), labels.unwrap_or_default())
        };
        Self(namespaces.into_iter().map(labels).collect())
    }
}

/// What follows a budget's refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The namespace is protected: the eviction is repeated.
    None,
    /// The pod is deleted.
    Delete,
}

/// Why a pod may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// A daemon set would bring it back: its pods tolerate a cordon.
    DaemonSet,
    /// The kubelet would bring it back: its file is on the node.
    Mirror,
    /// The pod of a job has not begun, or has ended.
    IdleJob,
    /// It belongs to this project.
    Own,
    /// It was waited for, and has finished.
    Finished,
}

/// What a drain does about a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Ignore(Ignored),
    /// It waits, since the pod is terminating.
    Await,
    /// It does not begin, since a job is running.
    WaitForJob,
    /// It does not begin, since the settings say that the pod is waited for.
    WaitForPod,
    /// It evicts the pod.
    Evict(Fallback),
}

/// A pod of the node, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPod {
    pub pod: PodRef,
    /// Its controller, if it has any.
    pub controller: Option<Controller>,
    pub labels: BTreeMap<String, String>,
    /// What is done.
    pub action: Action,
    pub volumes: PodVolumes,
    /// What keeps it after its end until somebody takes it away.
    pub finalizers: Names,
}

impl PlannedPod {
    /// Whether the node is not drained while the pod is there.
    pub fn has_to_go(&self) -> bool {
        !matches!(self.action, Action::Ignore(_))
    }
}

/// Decides about all pods of a node.
pub fn plan(pods: Vec<Pod>, namespaces: &Namespaces, policy: &Policy) -> Vec<PlannedPod> {
    pods.into_iter().map(|pod| plan_pod(pod, namespaces, policy)).collect()
}

fn plan_pod(pod: Pod, namespaces: &Namespaces, policy: &Policy) -> PlannedPod {
    let metadata = pod.metadata;
    let controller = metadata.controller.0.map(Controller::from);
    let is_mirror = metadata.annotations.is_some_and(|all| all.mirror.is_some());
    let labels = metadata.labels.unwrap_or_default();
    let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
    let is_terminating = metadata.deletion_timestamp.is_some();
    let mut volumes = pod.spec.map(|spec| spec.volumes).unwrap_or_default();
    if matches!(phase.as_str(), "Succeeded" | "Failed") {
        // The kubelet has unmounted them, whoever keeps the pod.
        volumes = PodVolumes { claims: BTreeSet::new(), ephemeral: 0, ..volumes };
    }
    let pod = PodRef {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
    };
    let is_controlled_by =
        |group, kind| controller.as_ref().is_some_and(|controller| controller.is(group, kind));
    let action = if policy.awaits(&labels) {
        match phase.as_str() {
            "Succeeded" | "Failed" => Action::Ignore(Ignored::Finished),
            _ if is_terminating => Action::Await,
            _ => Action::WaitForPod,
        }
    } else if labels.get(PART_OF.0).is_some_and(|value| value == PART_OF.1) {
        Action::Ignore(Ignored::Own)
    } else if is_mirror {
        Action::Ignore(Ignored::Mirror)
    } else if is_controlled_by("apps", "DaemonSet") {
        Action::Ignore(Ignored::DaemonSet)
    } else if is_controlled_by("batch", "Job") && matches!(phase.as_str(), "Pending" | "Succeeded" | "Failed")
    {
        Action::Ignore(Ignored::IdleJob)
    } else if is_terminating {
        Action::Await
    } else if is_controlled_by("batch", "Job") && policy.waits_for_job(&labels) {
        Action::WaitForJob
    } else if policy.protects(&pod.namespace, namespaces) {
        Action::Evict(Fallback::None)
    } else {
        Action::Evict(Fallback::Delete)
    };
    let finalizers = metadata.finalizers;
    PlannedPod { pod, controller, labels, action, volumes, finalizers }
}

#[cfg(test)]
mod tests;
