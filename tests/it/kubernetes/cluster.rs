//! A cluster whose API is tested. What a test needs in it is created over the API, so that a real one could stand in its place.

use harness::kubernetes::ApiServer;
use harness::kubernetes::access::Rules;
use harness::wait::eventually;
use serde_json::{Value, json};

use super::api::{Answer, Api, MERGE};

/// The namespace of a test.
pub(super) const NAMESPACE: &str = "shop";
/// The node of a test.
pub(super) const NODE: &str = "node-1";

/// A cluster with a namespace and a node, whose kubelet does not run: pods that are to terminate stay.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) api: Api,
    /// For what only the server of the tests can do.
    pub(super) server: ApiServer,
}

/// The path of a pod.
pub(super) fn pod(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}")
}

/// The path of a budget.
pub(super) fn budget(name: &str) -> String {
    format!("/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/{name}")
}

/// The path of a node.
pub(super) fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// The body of an eviction.
pub(super) fn eviction(name: &str, options: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name, "namespace": NAMESPACE },
        "deleteOptions": options,
    })
}

/// An object's version.
pub(super) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let server = ApiServer::start().await;
        let api = Api::new(&server.url, Some(server.admin_token()));
        let cluster = Self { api, server };
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        cluster.api.post("/api/v1/namespaces", &namespace).await.expect(201);
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let node = json!({ "metadata": { "name": NODE }, "status": ready });
        cluster.api.post("/api/v1/nodes", &node).await.expect(201);
        cluster
    }

    /// A caller with these rights in the whole cluster.
    pub(super) fn user(&self, name: &str, rules: &Value) -> Api {
        let token = self.server.grant(name, Rules::of_cluster_role(rules));
        Api::new(&self.server.url, Some(&token))
    }

    /// Adds a pod labelled `app=APP`, in this phase and ready or not, with more metadata. Returns it.
    pub(super) async fn add(
        &self,
        name: &str,
        app: &str,
        phase: &str,
        is_ready: bool,
        metadata: Value,
    ) -> Value {
        let mut object = json!({
            "metadata": { "name": name, "labels": { "app": app } },
            "spec": { "nodeName": NODE, "containers": [{ "name": "main", "image": "image" }] },
        });
        json_patch::merge(&mut object["metadata"], &metadata);
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        self.api.post(&path, &object).await.expect(201);
        let ready = json!({ "type": "Ready", "status": if is_ready { "True" } else { "False" } });
        let status = json!({ "status": { "phase": phase, "conditions": [ready] } });
        self.api.patch(MERGE, &format!("{}/status", pod(name)), &status).await.expect(200)
    }

    /// Adds running, ready pods without an owner: `APP-0` and so on.
    pub(super) async fn add_pods(&self, app: &str, number: usize) {
        for index in 0..number {
            self.add(&format!("{app}-{index}"), app, "Running", true, json!({})).await;
        }
    }

    /// Adds a budget `APP` for the pods of an app, and waits until its status is computed. Returns that.
    pub(super) async fn add_budget(&self, app: &str, spec: &Value) -> Value {
        let mut object = json!({
            "metadata": { "name": app }, "spec": { "selector": { "matchLabels": { "app": app } } },
        });
        json_patch::merge(&mut object["spec"], spec);
        let path = format!("/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets");
        self.api.post(&path, &object).await.expect(201);
        eventually("the budget's status", async || {
            let budget = self.api.get(&budget(app)).await.expect(200);
            let is_computed = budget["status"]["observedGeneration"] == budget["metadata"]["generation"];
            is_computed.then(|| budget["status"].clone())
        })
        .await
    }

    /// The status of a budget.
    pub(super) async fn budget(&self, name: &str) -> Value {
        self.api.get(&budget(name)).await.expect(200)["status"].clone()
    }

    /// Evicts a pod.
    pub(super) async fn evict(&self, name: &str, options: &Value) -> Answer {
        self.api.post(&format!("{}/eviction", pod(name)), &eviction(name, options)).await
    }
}
