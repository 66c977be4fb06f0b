//! Who controls a pod.

use serde_json::{Value, json};

/// The controller of pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Owner {
    /// The owner of this kind and name.
    pub(crate) fn new(namespace: &str, kind: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// The controller of a pod, if it has one.
    pub(crate) fn of(pod: &Value) -> Option<Self> {
        let references = pod["metadata"]["ownerReferences"].as_array()?;
        let controller = references.iter().find(|reference| reference["controller"] == json!(true))?;
        let namespace = pod["metadata"]["namespace"].as_str()?;
        Some(Self::new(namespace, controller["kind"].as_str()?, controller["name"].as_str()?))
    }
}
