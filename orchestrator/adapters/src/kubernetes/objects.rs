//! What is read of the objects of a cluster. Everything else in an answer is skipped while it is parsed, so that what an object
//! takes in memory does not depend on what others write into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use os_upgrade_protocol::limits::bounded_message;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The most objects of a list that are kept. A cluster has some thousand nodes at most, and a node some hundred pods.
pub(super) const OBJECTS_MAX: usize = 20_000;
/// How many claims of a pod are kept.
const CLAIMS_MAX: usize = 100;
/// How many names of an object's parts are kept.
const NAMES_MAX: usize = 5;

/// A page of a list.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(super) struct Page<T> {
    #[serde(default)]
    pub(super) metadata: Option<PageMetadata>,
    #[serde(default = "Objects::default", deserialize_with = "fold")]
    pub(super) items: Objects<T>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageMetadata {
    #[serde(rename = "continue")]
    pub(super) token: Option<String>,
}

/// The objects of a page, or the first ones.
#[derive(Debug)]
pub(super) struct Objects<T> {
    pub(super) first: Vec<T>,
    /// How many there are.
    pub(super) count: usize,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self { first: Vec::new(), count: 0 }
    }
}

impl<T> Keep for Objects<T> {
    type Element = T;

    fn keep(&mut self, object: T) {
        self.count += 1;
        if self.first.len() < OBJECTS_MAX {
            self.first.push(object);
        }
    }
}

/// What says which object it is, and what others have noted there.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) generation: Option<i64>,
    /// In RFC 3339: when the time that it has to end is over.
    pub(super) deletion_timestamp: Option<String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) annotations: Option<Annotations>,
    /// The one that controls the object.
    #[serde(default, rename = "ownerReferences", deserialize_with = "fold")]
    pub(super) controller: ControllerReference,
    #[serde(default, deserialize_with = "fold")]
    pub(super) finalizers: Names,
}

/// The annotations that have a meaning here.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Annotations {
    /// The mark of a node that was cordoned from here.
    #[serde(rename = "os-upgrade/cordon")]
    pub(super) mark: Option<String>,
    /// Present at the mirror of a static pod.
    #[serde(rename = "kubernetes.io/config.mirror")]
    pub(super) mirror: Option<IgnoredAny>,
}

/// An owner of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnerReference {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: String,
    controller: Option<bool>,
}

/// The owner that controls an object, if one does.
#[derive(Debug, Clone, Default)]
pub(super) struct ControllerReference(pub(super) Option<OwnerReference>);

impl Keep for ControllerReference {
    type Element = OwnerReference;

    fn keep(&mut self, owner: OwnerReference) {
        if self.0.is_none() && owner.controller == Some(true) {
            self.0 = Some(owner);
        }
    }
}

/// Names of an object's parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// How many there are.
    pub count: usize,
    /// The first ones.
    pub first: Vec<String>,
}

impl Keep for Names {
    type Element = String;

    fn keep(&mut self, name: String) {
        self.count += 1;
        if self.first.len() < NAMES_MAX {
            self.first.push(bounded_message(&name));
        }
    }
}

/// A node.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Node {
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) spec: Option<NodeSpec>,
    pub(super) status: Option<NodeStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct NodeSpec {
    pub(super) unschedulable: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeStatus {
    #[serde(default, rename = "conditions", deserialize_with = "fold")]
    pub(super) ready: ReadyCondition,
    pub(super) node_info: Option<NodeInfo>,
    /// The volumes that are mounted, or about to be.
    #[serde(default, deserialize_with = "fold")]
    pub(super) volumes_in_use: Names,
}

/// The condition `Ready`, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadyCondition(pub(super) Option<Condition>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Condition {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    pub(super) status: String,
    /// In RFC 3339: since when it has this status.
    #[serde(rename = "lastTransitionTime")]
    pub(super) since: Option<String>,
}

impl Keep for ReadyCondition {
    type Element = Condition;

    fn keep(&mut self, condition: Condition) {
        if self.0.is_none() && condition.kind == "Ready" {
            self.0 = Some(condition);
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct NodeInfo {
    #[serde(default, rename = "bootID")]
    pub(super) boot_id: String,
}

/// A pod.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Pod {
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) spec: Option<PodSpec>,
    pub(super) status: Option<PodStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PodSpec {
    #[serde(default, deserialize_with = "fold")]
    pub(super) volumes: PodVolumes,
}

/// What is to be known of a pod's volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodVolumes {
    /// The claims by name, at most a hundred.
    pub claims: BTreeSet<String>,
    /// How many claims the pod has of its own, which end with it.
    pub ephemeral: usize,
    /// Whether it has data on the node that end with it.
    pub has_empty_dir: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodVolume {
    persistent_volume_claim: Option<Claim>,
    ephemeral: Option<IgnoredAny>,
    empty_dir: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    #[serde(default)]
    claim_name: String,
}

impl Keep for PodVolumes {
    type Element = PodVolume;

    fn keep(&mut self, volume: PodVolume) {
        if let Some(Claim { claim_name }) = volume.persistent_volume_claim
            && self.claims.len() < CLAIMS_MAX
        {
            self.claims.insert(claim_name);
        }
        self.ephemeral += usize::from(volume.ephemeral.is_some());
        self.has_empty_dir |= volume.empty_dir.is_some();
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PodStatus {
    pub(super) phase: Option<String>,
}

/// A namespace.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Namespace {
    #[serde(default)]
    pub(super) metadata: Metadata,
}

/// A disruption budget.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Budget {
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) spec: Option<BudgetSpec>,
    pub(super) status: Option<BudgetStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BudgetSpec {
    pub(super) selector: Option<LabelSelector>,
    pub(super) min_available: Option<IntOrString>,
    pub(super) max_unavailable: Option<IntOrString>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BudgetStatus {
    pub(super) observed_generation: Option<i64>,
    #[serde(default)]
    pub(super) expected_pods: i32,
}

/// What is kept of a sequence.
trait Keep: Default {
    type Element;

    /// Takes the next element.
    fn keep(&mut self, element: Self::Element);
}

/// Reads a sequence, or `null`, an element at a time.
fn fold<'de, D, K>(deserializer: D) -> Result<K, D::Error>
where
    D: Deserializer<'de>,
    K: Keep,
    K::Element: Deserialize<'de>,
{
    struct Fold<K>(PhantomData<K>);

    impl<'de, K: Keep> Visitor<'de> for Fold<K>
    where
        K::Element: Deserialize<'de>,
    {
        type Value = K;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<K, E> {
            Ok(K::default())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<K, A::Error> {
            let mut kept = K::default();
            while let Some(element) = elements.next_element()? {
                kept.keep(element);
            }
            Ok(kept)
        }
    }

    deserializer.deserialize_any(Fold(PhantomData))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::mark::ANNOTATION;
    use super::*;

    /// An answer of this size would be gigabytes as objects.
    #[test]
    fn page_keeps_no_more_objects_than_a_list_may_have() {
        let body = format!(r#"{{"items":[{}{{}}]}}"#, "{},".repeat(1_000_000));
        let page: Page<Pod> = serde_json::from_str(&body).unwrap();
        assert_eq!((page.items.count, page.items.first.len()), (1_000_001, OBJECTS_MAX));
        assert!(page.metadata.is_none());
    }

    #[test]
    fn parts_of_objects_are_bounded_and_may_be_null() {
        let many: Vec<String> = (0..1_000).map(|index| format!("f{index}")).collect();
        let owner =
            |name: &str, controller: bool| json!({ "kind": "K", "name": name, "controller": controller });
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": "p",
                "labels": null,
                "annotations": { "much": "x".repeat(100_000), ANNOTATION: "mark" },
                "ownerReferences": [owner("a", false), owner("b", true), owner("c", true)],
                "finalizers": many,
                "managedFields": [{ "fieldsV1": {} }],
            },
            "status": null,
        }))
        .unwrap();
        let Metadata { controller, finalizers, annotations, .. } = pod.metadata;
        assert_eq!(controller.0.unwrap().name, "b");
        assert_eq!((finalizers.count, finalizers.first.len()), (1_000, NAMES_MAX));
        assert_eq!(annotations.unwrap().mark.as_deref(), Some("mark"));
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": "n", "ownerReferences": null, "finalizers": null },
            "status": { "conditions": null },
        }))
        .unwrap();
        assert_eq!((node.metadata.finalizers, node.status.unwrap().ready.0), (Names::default(), None));
    }
}
