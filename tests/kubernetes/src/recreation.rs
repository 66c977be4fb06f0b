//! Pods that come back: what kubelets and owners create in the place of pods that end.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::creation;
use crate::owner::Owner;
use crate::resource::PODS;
use crate::store::{Change, Store};

/// What is created again.
#[derive(Debug, Default)]
pub(crate) struct Recreation {
    /// The owners that replace their pods, and the node on which they do.
    owners: BTreeMap<Owner, String>,
    /// The version up to which ends of pods were looked at.
    seen: u64,
    /// Number of pods that were given a new name.
    named: usize,
}

fn is_alive(pod: &Value) -> bool {
    let has_ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    pod["metadata"]["deletionTimestamp"].is_null() && !has_ended
}

impl Recreation {
    /// Lets an owner replace its pods on this node.
    pub(crate) fn enable(&mut self, owner: Owner, node: &str) {
        self.owners.insert(owner, node.to_owned());
    }

    /// Creates what has to come back since it was last asked. Mirror pods do where a kubelet runs.
    pub(crate) fn run(&mut self, store: &mut Store, has_kubelet: impl Fn(&str) -> bool, now: DateTime<Utc>) {
        let changes = store.changes_after(self.seen).iter();
        let changes: Vec<Change> = changes.filter(|change| change.key.resource == PODS).cloned().collect();
        self.seen = store.version();
        for change in changes {
            let Some(before) = change.before else { continue };
            if let Some((name, node)) = self.successor(&before, change.after.as_deref(), &has_kubelet) {
                // Nothing comes back in a namespace that is gone.
                let _ = creation::create_running(store, &pod_like(&before, &name, &node), now);
            }
        }
    }

    /// The name and the node of the pod that follows one that has changed.
    fn successor(
        &mut self,
        before: &Value,
        after: Option<&Value>,
        has_kubelet: impl Fn(&str) -> bool,
    ) -> Option<(String, String)> {
        let name = before["metadata"]["name"].as_str()?.to_owned();
        let own_node = before["spec"]["nodeName"].as_str().unwrap_or_default();
        if before["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string() {
            return (after.is_none() && has_kubelet(own_node)).then(|| (name, own_node.to_owned()));
        }
        let owner = Owner::of(before)?;
        let node = self.owners.get(&owner)?.clone();
        if owner.kind == "StatefulSet" {
            // Its names recur, so one pod has to go before the next one comes.
            return after.is_none().then_some((name, node));
        }
        if !is_alive(before) || after.is_some_and(is_alive) {
            return None;
        }
        self.named += 1;
        // The pods of a daemon set stay on their node, cordoned or not.
        let node = if owner.kind == "DaemonSet" { own_node.to_owned() } else { node };
        Some((format!("{}-again-{}", owner.name, self.named), node))
    }
}

/// A running pod like this one.
fn pod_like(pod: &Value, name: &str, node: &str) -> Value {
    let mut spec = pod["spec"].clone();
    spec["nodeName"] = json!(node);
    let metadata = &pod["metadata"];
    json!({
        "metadata": {
            "name": name, "namespace": metadata["namespace"], "labels": metadata["labels"],
            "annotations": metadata["annotations"], "ownerReferences": metadata["ownerReferences"],
        },
        "spec": spec,
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}
