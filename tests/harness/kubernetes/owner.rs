//! Who controls a pod.

use serde_json::{Value, json};

/// The controller of pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) namespace: String,
    pub(super) kind: String,
    pub(super) name: String,
}

impl Owner {
    /// The owner of this kind and name.
    pub(super) fn new(namespace: &str, kind: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// The controller of a pod, if it has one.
    pub(super) fn of(pod: &Value) -> Option<Self> {
        let references = pod["metadata"]["ownerReferences"].as_array()?;
        let controller = references.iter().find(|reference| reference["controller"] == json!(true))?;
        let namespace = pod["metadata"]["namespace"].as_str()?;
        Some(Self::new(namespace, controller["kind"].as_str()?, controller["name"].as_str()?))
    }
}
