//! A Kubernetes API server of one test: real HTTP, real semantics of what a drain and a reboot touch, objects in memory.
//!
//! What it answers was measured at a real server, and `tests/it/kubernetes` checks it line by line. Other resources and
//! formats (server-side apply, strategic merge patches, protobuf, tables) are not there. The folder has a file per concern;
//! this one has what a test does to the cluster.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod access;
mod accounts;
mod budget;
mod controllers;
mod creation;
mod deletion;
mod discovery;
mod eviction;
mod failure;
mod faults;
mod http;
mod lists;
mod objects;
mod owner;
mod patch;
mod recreation;
mod request;
pub mod resource;
mod selector;
mod state;
mod store;
mod watches;

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{TimeDelta, Utc};
use os_upgrade_test_site::authority::Authority;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

pub use crate::access::{Call, Rules};
use crate::controllers::{Kubelet, LEASE_NAMESPACE};
use crate::creation::Place;
pub use crate::faults::Fault;
pub use crate::objects::{Pod, boot_id};
use crate::owner::Owner;
use crate::resource::{BUDGETS, LEASES, NAMESPACES, NODES, PODS, Resource};
use crate::state::{Shared, State};
use crate::store::Key;

/// The user with every right.
const ADMIN: &str = "admin";
const NAMESPACES_AT_START: [&str; 4] = ["default", LEASE_NAMESPACE, "kube-public", "kube-system"];

/// A server. It stops when dropped, and with it all connections.
#[derive(Debug)]
pub struct ApiServer {
    /// Its base URL.
    pub url: String,
    shared: Arc<Shared>,
    admin_token: String,
    /// The certificate of the authority that vouches for it, in PEM.
    authority: Option<String>,
    _task: AbortOnDropHandle<()>,
}

impl ApiServer {
    /// Starts an empty cluster, without TLS.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts an empty cluster, whose certificate only its kubeconfig vouches for.
    pub async fn start_with_tls() -> Self {
        Self::start_with(Some(Authority::new("kubernetes"))).await
    }

    async fn start_with(authority: Option<Authority>) -> Self {
        let shared = Arc::<Shared>::default();
        let admin_token = shared.change(|state| {
            for name in NAMESPACES_AT_START {
                add(state, NAMESPACES, None, json!({ "metadata": { "name": name } }));
            }
            state.access.grant(ADMIN, Rules::all())
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if authority.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (acceptor, serving) = (authority.as_ref().map(http::acceptor), Arc::clone(&shared));
        let task = tokio::spawn(async move { match http::serve(listener, acceptor, serving).await {} });
        let authority = authority.map(|authority| authority.pem);
        Self { url, shared, admin_token, authority, _task: AbortOnDropHandle::new(task) }
    }

    /// The token of a user with every right.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// The certificate of the authority that vouches for the server, in PEM; none without TLS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// A kubeconfig for the holder of a token, as JSON, which is YAML too.
    pub fn kubeconfig(&self, token: &str) -> Value {
        let mut cluster = json!({ "server": self.url });
        if let Some(authority) = &self.authority {
            cluster["certificate-authority-data"] = json!(BASE64_STANDARD.encode(authority));
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": "test", "user": { "token": token } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
        })
    }

    /// Adds a user with these rights, or replaces the rights of one. Returns the token.
    pub fn grant(&self, user: &str, rules: Rules) -> String {
        self.shared.read(|state| state.access.grant(user, rules))
    }

    /// Makes the user's token expire, and returns the next one.
    pub fn renew_token(&self, user: &str) -> String {
        self.shared.read(|state| state.access.renew_token(user))
    }

    /// The calls about objects so far, refused ones included.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.read(|state| state.access.calls().to_vec())
    }

    /// Forgets the calls so far.
    pub fn forget_calls(&self) {
        self.shared.read(|state| state.access.forget_calls());
    }

    /// Plans a fault for the next calls of this verb and resource, as in `create` of `pods/eviction`; `*` stands for any.
    pub fn plan(&self, fault: Fault, verb: &str, resource: &str, times: usize) {
        self.shared.read(|state| state.faults.plan(fault, verb, resource, times));
    }

    /// Forgets the faults to come.
    pub fn heal(&self) {
        self.shared.read(|state| state.faults.clear());
    }

    /// Sets how far the server's clock is ahead, and those of the kubelets.
    pub fn skew_clock(&self, ahead: TimeDelta) {
        self.shared.change(|state| state.skew = ahead);
    }

    /// Stops the disruption controller, so that the status of budgets gets stale, or starts it.
    pub fn freeze_disruption_controller(&self, is_frozen: bool) {
        self.shared.change(|state| state.controllers.is_disruption_frozen = is_frozen);
    }

    /// Sets how many pods an owner wants. Without, it is the most that were there at once.
    pub fn scale(&self, namespace: &str, kind: &str, name: &str, pods: i64) {
        self.shared.change(|state| state.controllers.scales.set(Owner::new(namespace, kind, name), pods));
    }

    /// Lets an owner replace pods that end: a daemon set on the same node, others on this one.
    pub fn recreate(&self, namespace: &str, kind: &str, name: &str, node: &str) {
        let owner = Owner::new(namespace, kind, name);
        self.shared.change(|state| state.controllers.recreation.enable(owner, node));
    }

    /// Stops the cache, from which `resourceVersion=0` and all watches are served, or lets it catch up.
    pub fn stall_cache(&self, is_stalled: bool) {
        self.shared.change(|state| state.lists.stall(is_stalled, &state.store));
    }

    /// Forgets old versions: watches from one of them end with 410.
    pub fn compact(&self) {
        self.shared.read(|state| state.store.compact());
    }

    /// Makes the continue tokens of lists expire.
    pub fn expire_continue_tokens(&self) {
        self.shared.read(|state| state.lists.expire());
    }

    /// Ends all watches.
    pub fn end_watches(&self) {
        self.shared.change(|state| state.cuts += 1);
    }

    /// An object as it is.
    pub fn object(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        let key = Key::new(resource, namespace, name);
        self.shared.read(|state| state.store.get(&key)).map(Arc::unwrap_or_clone)
    }

    /// The objects of a namespace, or those without one if it is empty.
    pub fn objects(&self, resource: Resource, namespace: &str) -> Vec<Value> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        self.shared
            .read(|state| state.store.list(resource, namespace))
            .iter()
            .map(|it| Value::clone(it))
            .collect()
    }

    /// Changes an object behind everybody's back, as one more client would.
    pub fn edit(&self, resource: Resource, namespace: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        let key = Key::new(resource, namespace, name);
        self.shared.write(|state| {
            let mut object = Value::clone(&state.store.get(&key).expect("the object"));
            edit(&mut object);
            let written = state.store.put(&key, object);
            if deletion::is_complete(&written, &resource) {
                state.store.remove(&key);
            }
        });
    }

    /// Removes an object at once, whatever it waits for.
    pub fn remove(&self, resource: Resource, namespace: &str, name: &str) {
        self.shared.write(|state| state.store.remove(&Key::new(resource, namespace, name)));
    }

    /// Adds a namespace with these labels.
    pub fn add_namespace(&self, name: &str, labels: &Value) {
        let object = json!({ "metadata": { "name": name, "labels": labels } });
        self.shared.write(|state| add(state, NAMESPACES, None, object));
    }

    /// Adds a ready node, whose kubelet renews its lease and ends pods.
    pub fn add_node(&self, name: &str) {
        self.add_nodes([name]);
    }

    /// Adds several nodes, each as [`Self::add_node`] does.
    pub fn add_nodes<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        self.shared.change(|state| {
            for name in names {
                add(state, NODES, None, objects::node(name));
                add(state, LEASES, Some(LEASE_NAMESPACE), objects::lease(name, LEASE_NAMESPACE));
                let kubelet = Kubelet { is_running: true, ends_pods: true };
                state.controllers.kubelets.insert(name.to_owned(), kubelet);
            }
            let now = state.now();
            state.controllers.renew_leases(&mut state.store, now);
        });
    }

    /// Adds a pod, with the status that it has.
    pub fn add_pod(&self, pod: &Pod) {
        self.add_pods([pod]);
    }

    /// Adds several pods, each with the status that it has.
    pub fn add_pods<'a>(&self, pods: impl IntoIterator<Item = &'a Pod>) {
        self.shared.write(|state| {
            let now = state.now();
            for pod in pods {
                creation::create_running(&mut state.store, &pod.object(), now).unwrap();
            }
        });
    }

    /// Adds a disruption budget with this spec.
    pub fn add_budget(&self, namespace: &str, name: &str, spec: &Value) {
        let object = objects::budget(namespace, name, spec);
        self.shared.write(|state| add(state, BUDGETS, Some(namespace), object));
    }

    /// Sets whether a pod is ready.
    pub fn set_ready(&self, namespace: &str, name: &str, is_ready: bool) {
        self.edit(PODS, namespace, name, |pod| {
            set_ready(pod, if is_ready { "True" } else { "False" }, "Test");
        });
    }

    /// Sets whether the kubelet ends pods that are to terminate. One that does not keeps them for ever.
    pub fn end_pods(&self, node: &str, ends_pods: bool) {
        self.kubelet(node, |kubelet| kubelet.ends_pods = ends_pods);
    }

    /// Ends one terminating pod, as its kubelet would.
    pub fn end_pod(&self, namespace: &str, name: &str) {
        self.shared.change(|state| deletion::confirm(&mut state.store, &Key::new(PODS, namespace, name)));
    }

    /// Stops a kubelet. Its node stays ready until somebody finds out: see [`Self::lose_node`].
    pub fn stop_kubelet(&self, node: &str) {
        self.kubelet(node, |kubelet| kubelet.is_running = false);
    }

    /// Marks a node as unknown, as happens some 40 s after its kubelet has stopped.
    pub fn lose_node(&self, node: &str) {
        self.edit(NODES, "", node, |node| set_ready(node, "Unknown", "NodeStatusUnknown"));
    }

    /// Starts a node's kubelet after a boot: another boot id, not ready yet.
    pub fn boot_node(&self, node: &str) {
        self.edit(NODES, "", node, |node| {
            node["status"]["nodeInfo"]["bootID"] = json!(boot_id());
            set_ready(node, "False", "KubeletNotReady");
        });
        self.kubelet(node, |kubelet| kubelet.is_running = true);
    }

    /// Marks a node as ready.
    pub fn ready_node(&self, node: &str) {
        self.edit(NODES, "", node, |node| set_ready(node, "True", "KubeletReady"));
    }

    /// Reboots a node: lost, then booted, then ready.
    pub fn reboot_node(&self, node: &str) {
        self.stop_kubelet(node);
        self.lose_node(node);
        self.boot_node(node);
        self.ready_node(node);
    }

    /// Removes the pods of nodes that are no more, as happens a minute after their deletion.
    pub fn collect_orphans(&self) {
        self.shared.change(|state| controllers::collect_orphans(&mut state.store));
    }

    fn kubelet(&self, node: &str, change: impl FnOnce(&mut Kubelet)) {
        self.shared.change(|state| {
            change(state.controllers.kubelets.get_mut(node).expect("a node with a kubelet"));
            let now = state.now();
            state.controllers.renew_leases(&mut state.store, now);
        });
    }
}

fn add(state: &mut State, resource: Resource, namespace: Option<&str>, object: Value) -> Value {
    let (now, place) = (state.now(), Place { resource, namespace });
    creation::create(&mut state.store, place, object, now, false).unwrap()
}

/// Sets the condition `Ready` of a pod or a node.
fn set_ready(object: &mut Value, status: &str, reason: &str) {
    let since = deletion::timestamp(Utc::now());
    object["status"]["conditions"] =
        json!([{ "type": "Ready", "status": status, "reason": reason, "lastTransitionTime": since }]);
}
