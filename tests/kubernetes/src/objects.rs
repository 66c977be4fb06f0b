//! Objects as tests need them. They know only what a client looks at.

use serde_json::{Value, json};
use uuid::Uuid;

/// A pod to be added: running and ready, without an owner, unless said otherwise.
#[must_use]
#[derive(Debug, Clone)]
pub struct Pod {
    object: Value,
    is_ready: bool,
}

impl Pod {
    /// A running pod.
    pub fn new(namespace: &str, name: &str) -> Self {
        let containers = json!([{ "name": "main", "image": "image", "resources": {} }]);
        let object = json!({
            "metadata": { "namespace": namespace, "name": name, "labels": {} },
            "spec": { "containers": containers, "terminationGracePeriodSeconds": 30 },
            "status": { "phase": "Running" },
        });
        Self { object, is_ready: true }
    }

    fn with(mut self, pointer: &str, value: Value) -> Self {
        *self.object.pointer_mut(pointer).unwrap() = value;
        self
    }

    /// On this node.
    pub fn on(mut self, node: &str) -> Self {
        self.object["spec"]["nodeName"] = json!(node);
        self
    }

    /// With this label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Controlled by an owner of this kind.
    pub fn owned_by(mut self, kind: &str, name: &str) -> Self {
        let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        self.object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-of-{name}"), "controller": true,
        }]);
        self
    }

    /// In this phase. A pod is ready only while it runs.
    pub fn phase(mut self, phase: &str) -> Self {
        self.is_ready &= phase == "Running";
        self.with("/status/phase", json!(phase))
    }

    /// Not ready.
    pub fn unready(mut self) -> Self {
        self.is_ready = false;
        self
    }

    /// A mirror of a static pod, which the kubelet brings back.
    pub fn mirror(mut self) -> Self {
        self.object["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("hash");
        self
    }

    /// Kept by this finalizer.
    pub fn finalizer(mut self, name: &str) -> Self {
        self.object["metadata"]["finalizers"] = json!([name]);
        self
    }

    /// With this volume, besides others.
    pub fn volume(mut self, volume: &Value) -> Self {
        let spec = self.object["spec"].as_object_mut().unwrap();
        spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut().unwrap().push(volume.clone());
        self
    }

    /// With this grace period.
    pub fn grace_secs(self, secs: u32) -> Self {
        self.with("/spec/terminationGracePeriodSeconds", json!(secs))
    }

    /// The object, with its status.
    pub(crate) fn object(&self) -> Value {
        let mut object = self.object.clone();
        object["status"]["conditions"] = json!([ready_condition(self.is_ready)]);
        object
    }
}

fn ready_condition(is_ready: bool) -> Value {
    json!({ "type": "Ready", "status": if is_ready { "True" } else { "False" } })
}

/// A node that has just been booted and is ready.
pub(crate) fn node(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "spec": {},
        "status": {
            "conditions": [ready_condition(true)],
            "nodeInfo": { "bootID": boot_id(), "machineID": name, "systemUUID": name, "kubeletVersion": "v1.36.2" },
        },
    })
}

/// A boot id that no node has had.
pub fn boot_id() -> String {
    Uuid::new_v4().to_string()
}

/// The lease of a node's kubelet.
pub(crate) fn lease(node: &str, namespace: &str) -> Value {
    json!({
        "metadata": { "namespace": namespace, "name": node },
        "spec": { "holderIdentity": node, "leaseDurationSeconds": 40 },
    })
}

/// A disruption budget with this spec.
pub(crate) fn budget(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name }, "spec": spec })
}
