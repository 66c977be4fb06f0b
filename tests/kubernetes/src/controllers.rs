//! What else writes in a cluster: the disruption controller, owners of pods, kubelets, and who taints and annotates nodes.
//!
//! They run within each write, so that a test need not wait for them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::budget::{self, Scales};
use crate::creation::NOT_READY_TAINT;
use crate::deletion::{self, timestamp};
use crate::recreation::Recreation;
use crate::resource::{LEASES, NODES, PODS};
use crate::store::{Key, Store};

/// The namespace of the kubelets' leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";
/// The most rounds in which one controller answers another.
const ROUNDS_MAX: usize = 10;
/// How long kubelets may keep secrets. It is 0 in a small cluster.
const TTL_ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// What a node's kubelet does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kubelet {
    /// Whether it renews its lease, and does anything at all.
    pub(crate) is_running: bool,
    /// Whether it ends pods that are to terminate.
    pub(crate) ends_pods: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    /// Whether the status of budgets stays as it is.
    pub(crate) is_disruption_frozen: bool,
    /// How many pods their owners want.
    pub(crate) scales: Scales,
    /// Pods that come back.
    pub(crate) recreation: Recreation,
    /// The kubelets, by node.
    pub(crate) kubelets: BTreeMap<String, Kubelet>,
}

impl Controllers {
    /// Lets each of them do what there is to do since this version of the store, before which they had settled; without one, they
    /// look at everything, because they have changed themselves, or time has passed.
    pub(crate) fn settle(&mut self, store: &mut Store, since: Option<u64>, now: DateTime<Utc>) {
        for _ in 0..ROUNDS_MAX {
            let before = store.version();
            write_nodes(store, since, now);
            self.end_pods(store, since);
            let kubelets = &self.kubelets;
            let has_kubelet = |node: &str| kubelets.get(node).is_some_and(|kubelet| kubelet.is_running);
            self.recreation.run(store, has_kubelet, now);
            if !self.is_disruption_frozen {
                budget::update_all(store, &mut self.scales, since, now);
            }
            if store.version() == before {
                return;
            }
        }
        panic!("the controllers do not settle");
    }

    fn end_pods(&self, store: &mut Store, since: Option<u64>) {
        for pod in store.changed(PODS, since) {
            let kubelet = pod["spec"]["nodeName"].as_str().and_then(|node| self.kubelets.get(node));
            let is_ending = !pod["metadata"]["deletionTimestamp"].is_null();
            if is_ending && kubelet.is_some_and(|kubelet| kubelet.is_running && kubelet.ends_pods) {
                deletion::confirm(store, &key_of_pod(&pod));
            }
        }
    }

    /// Renews the leases of all kubelets that run.
    pub(crate) fn renew_leases(&self, store: &mut Store, now: DateTime<Utc>) {
        for (node, kubelet) in &self.kubelets {
            let key = Key::new(LEASES, LEASE_NAMESPACE, node);
            if let Some(lease) = store.get(&key).filter(|_| kubelet.is_running) {
                let mut lease = Value::clone(&lease);
                lease["spec"]["renewTime"] = json!(now.to_rfc3339_opts(SecondsFormat::Micros, true));
                store.put(&key, lease);
            }
        }
    }
}

fn key_of_pod(pod: &Value) -> Key {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    Key::new(PODS, text("namespace"), text("name"))
}

/// Removes the pods of nodes that are no more, as the garbage collector does after a minute.
pub(crate) fn collect_orphans(store: &mut Store) {
    let nodes = store.list(NODES, None);
    let names: BTreeSet<&str> = nodes.iter().filter_map(|node| node["metadata"]["name"].as_str()).collect();
    for pod in store.list(PODS, None) {
        if pod["spec"]["nodeName"].as_str().is_some_and(|node| !names.contains(node)) {
            store.remove(&key_of_pod(&pod));
        }
    }
}

/// Gives nodes the taints that follow from their cordon and their condition, and what else each node has.
fn write_nodes(store: &mut Store, since: Option<u64>, now: DateTime<Utc>) {
    for node in store.changed(NODES, since) {
        let mut after = Value::clone(&node);
        set_taints(&mut after, now);
        after["metadata"]["annotations"][TTL_ANNOTATION] = json!("0");
        store.put(&Key::new(NODES, "", node["metadata"]["name"].as_str().unwrap_or_default()), after);
    }
}

fn set_taints(node: &mut Value, now: DateTime<Utc>) {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let ready = ready.and_then(|condition| condition["status"].as_str());
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    for (key, is_wanted) in [
        ("node.kubernetes.io/unschedulable", node["spec"]["unschedulable"] == json!(true)),
        // Before the first report of the kubelet it stays as it is.
        (NOT_READY_TAINT, ready.is_none_or(|status| status == "False")),
        ("node.kubernetes.io/unreachable", ready == Some("Unknown")),
    ] {
        let is_it = |taint: &Value| taint["key"] == key && taint["effect"] == "NoSchedule";
        match (taints.iter().any(is_it), is_wanted) {
            (true, false) => taints.retain(|taint| !is_it(taint)),
            (false, true) => {
                taints.push(json!({ "key": key, "effect": "NoSchedule", "timeAdded": timestamp(now) }));
            }
            (true, true) | (false, false) => {}
        }
    }
    if taints.is_empty() {
        node["spec"].as_object_mut().unwrap().remove("taints");
    } else {
        node["spec"]["taints"] = json!(taints);
    }
}
