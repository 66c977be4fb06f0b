//! A cluster whose API is tested. What a test needs in it is created over the API, so that a real one can stand in its place:
//! that of the kubeconfig which `OS_UPGRADE_TEST_KUBECONFIG` names. Each test has a namespace and a node of its own there, and
//! removes them.

use std::path::Path;

use harness::wait::eventually;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use os_upgrade_test_kubernetes::ApiServer;
use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{Answer, Api, MERGE};

/// The variable that names a kubeconfig.
pub(super) const KUBECONFIG: &str = "OS_UPGRADE_TEST_KUBECONFIG";
/// A label of what belongs to tests, for whoever has to clean up after a test that was killed.
const LABEL: &str = "os-upgrade-test";

/// Where the API is.
enum Server {
    /// In this process.
    Fake(ApiServer),
    /// Elsewhere, shared with others.
    Real(Box<Config>),
}

/// A cluster with a namespace and a node, whose kubelet does not run: pods that are to terminate stay.
pub(super) struct Cluster {
    pub(super) api: Api,
    /// The namespace of the test.
    pub(super) namespace: String,
    /// The node of the test.
    pub(super) node: String,
    server: Server,
}

/// What a kubeconfig says.
pub(super) async fn configuration(kubeconfig: &Path) -> Config {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap()
}

/// The body of an eviction.
pub(super) fn eviction(namespace: &str, name: &str, options: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name, "namespace": namespace },
        "deleteOptions": options,
    })
}

/// An object's version.
pub(super) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let name = format!("{LABEL}-{}", Uuid::new_v4().simple());
        let cluster = match std::env::var_os(KUBECONFIG) {
            None => {
                let server = ApiServer::start().await;
                let api = Api::new(&server.url, Some(server.admin_token()));
                let server = Server::Fake(server);
                Self { api, namespace: name.clone(), node: name.clone(), server }
            }
            Some(file) => {
                let config = configuration(Path::new(&file)).await;
                let api = Api::of(config.clone(), Some(name.clone()));
                Self {
                    api,
                    namespace: name.clone(),
                    node: name.clone(),
                    server: Server::Real(Box::new(config)),
                }
            }
        };
        let metadata = json!({ "name": name, "labels": { LABEL: name } });
        cluster.api.post("/api/v1/namespaces", &json!({ "metadata": metadata })).await.expect(201);
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let node = json!({ "metadata": metadata, "status": ready });
        cluster.api.post("/api/v1/nodes", &node).await.expect(201);
        // Controllers write to a new node. After that nobody does but the test.
        eventually("the node to be left alone", async || {
            let node = cluster.api.get(&cluster.node()).await.expect(200);
            let is_annotated = node["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"].is_string();
            (is_annotated && node["spec"].get("taints").is_none()).then_some(())
        })
        .await;
        cluster
    }

    /// For what only the server of the tests can do: [`None`] at another one, where it is left out.
    pub(super) fn fake(&self) -> Option<&ApiServer> {
        match &self.server {
            Server::Fake(server) => Some(server),
            Server::Real(_) => None,
        }
    }

    /// The path of a collection in the namespace, as in `pods`.
    pub(super) fn collection(&self, plural: &str) -> String {
        let group = if plural == "poddisruptionbudgets" { "apis/policy/v1" } else { "api/v1" };
        format!("/{group}/namespaces/{}/{plural}", self.namespace)
    }

    /// The path of a pod.
    pub(super) fn pod(&self, name: &str) -> String {
        format!("{}/{name}", self.collection("pods"))
    }

    /// The path of a budget.
    pub(super) fn budget(&self, name: &str) -> String {
        format!("{}/{name}", self.collection("poddisruptionbudgets"))
    }

    /// The path of the node.
    pub(super) fn node(&self) -> String {
        format!("/api/v1/nodes/{}", self.node)
    }

    /// A caller with this token, or without any.
    pub(super) fn stranger(&self, token: Option<&str>) -> Api {
        match &self.server {
            Server::Fake(server) => Api::new(&server.url, token),
            Server::Real(config) => Api::stranger(Config::clone(config), token),
        }
    }

    /// A service account with these rights in the namespace, and the user's name.
    pub(super) async fn account(&self, name: &str, rules: &Value) -> (Api, String) {
        let namespace = &self.namespace;
        let user = format!("system:serviceaccount:{namespace}:{name}");
        let metadata = json!({ "name": name });
        let accounts = self.collection("serviceaccounts");
        self.api.post(&accounts, &json!({ "metadata": metadata })).await.expect(201);
        let group = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        let role = json!({ "metadata": metadata, "rules": rules });
        self.api.post(&format!("{group}/roles"), &role).await.expect(201);
        let binding = json!({
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
        });
        self.api.post(&format!("{group}/rolebindings"), &binding).await.expect(201);
        let answer = self.api.post(&format!("{accounts}/{name}/token"), &json!({})).await.expect(201);
        (self.stranger(answer["status"]["token"].as_str()), user)
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
            "spec": { "nodeName": self.node, "containers": [{ "name": "main", "image": "image" }] },
        });
        json_patch::merge(&mut object["metadata"], &metadata);
        // A real cluster takes no pod before it has added a service account to the namespace.
        let created = eventually("the pod", async || {
            Some(self.api.post(&self.collection("pods"), &object).await).filter(|answer| answer.status != 403)
        });
        created.await.expect(201);
        let ready = json!({ "type": "Ready", "status": if is_ready { "True" } else { "False" } });
        let status = json!({ "status": { "phase": phase, "conditions": [ready] } });
        self.api.patch(MERGE, &format!("{}/status", self.pod(name)), &status).await.expect(200)
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
        self.api.post(&self.collection("poddisruptionbudgets"), &object).await.expect(201);
        eventually("the budget's status", async || {
            let budget = self.api.get(&self.budget(app)).await.expect(200);
            let is_computed = budget["status"]["observedGeneration"] == budget["metadata"]["generation"];
            is_computed.then(|| budget["status"].clone())
        })
        .await
    }

    /// The status of a budget.
    pub(super) async fn status(&self, budget: &str) -> Value {
        self.api.get(&self.budget(budget)).await.expect(200)["status"].clone()
    }

    /// Evicts a pod.
    pub(super) async fn evict(&self, name: &str, options: &Value) -> Answer {
        let body = eviction(&self.namespace, name, options);
        self.api.post(&format!("{}/eviction", self.pod(name)), &body).await
    }

    /// Ends a terminating pod, as its kubelet would.
    pub(super) async fn end_pod(&self, name: &str) {
        self.api.delete(&self.pod(name), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    }
}

/// Removes what a test has added. Pods go first: without a kubelet they would keep the namespace for ever.
async fn remove(api: &Api, name: &str) {
    let pods = format!("/api/v1/namespaces/{name}/pods");
    let list = api.get(&pods).await.expect(200);
    for pod in list["items"].as_array().into_iter().flatten() {
        let path = format!("{pods}/{}", pod["metadata"]["name"].as_str().unwrap());
        api.patch(MERGE, &path, &json!({ "metadata": { "finalizers": null } })).await;
        api.delete(&path, &json!({ "gracePeriodSeconds": 0 })).await;
    }
    for path in [format!("/api/v1/namespaces/{name}"), format!("/api/v1/nodes/{name}")] {
        let answer = api.delete(&path, &json!({})).await;
        assert!(answer.status < 300 || answer.status == 404, "{answer:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Server::Real(config) = &self.server else { return };
        let (config, name) = (Config::clone(config), self.namespace.clone());
        // A failed test cleans up too, and its runtime may be at its end.
        let cleaner = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { remove(&Api::of(config, Some(name.clone())), &name).await });
        });
        let is_removed = cleaner.join().is_ok();
        assert!(is_removed || std::thread::panicking(), "{} is left", self.namespace);
    }
}
