//! A cluster as the adapter sees it: a server, and a client with no more rights than it says it needs.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::kubernetes::ApiServer;
use harness::kubernetes::access::{Call, Rules};
use harness::kubernetes::objects::Pod;
use harness::kubernetes::resource::{NODES, PODS};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use os_upgrade_adapters::kubernetes::client::{Access, Client};
use os_upgrade_adapters::kubernetes::drain::{DrainReport, Drainer, Pace, Preview, RemainingPod};
use os_upgrade_adapters::kubernetes::mark::{Claim, Cordoned};
use os_upgrade_adapters::kubernetes::node;
use os_upgrade_adapters::kubernetes::permit::{Interrupted, Permit};
use os_upgrade_adapters::kubernetes::plan::{OwnPods, Policy};
use os_upgrade_adapters::kubernetes::rights::{RIGHTS, Right};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The node of a test.
pub(super) const NODE: &str = "n";
/// The user of the client.
pub(super) const USER: &str = "os-upgrade";
/// The site of the client.
pub(super) const SITE: &str = "here";
/// A limit that no test reaches unless something hangs.
const PATIENCE: Duration = Duration::from_mins(1);
/// As fast as a test can go.
const PACE: Pace = Pace {
    request: Duration::from_millis(1),
    round: Duration::from_millis(20),
    retry: Duration::from_millis(100),
    retries: 0,
};

/// A server with one node, and a client of it.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) policy: Policy,
    pub(super) pace: Pace,
}

/// The rules that allow these rights.
pub(super) fn rules(rights: &[Right]) -> Rules {
    let rules: Vec<Value> = rights
        .iter()
        .map(|right| json!({ "apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb] }))
        .collect();
    Rules::of_cluster_role(&json!(rules))
}

/// The client of a server, as the holder of a token.
pub(super) async fn client(server: &ApiServer, token: &str) -> Client {
    client_of(&server.kubeconfig(token)).await
}

/// The client with this kubeconfig.
pub(super) async fn client_of(config: &Value) -> Client {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, config.to_string()).unwrap();
    Client::new(&Access::Kubeconfig { file, context: None }).await.unwrap()
}

/// A selector.
pub(super) fn selector(labels: Value) -> LabelSelector {
    serde_json::from_value(labels).unwrap()
}

/// What the node is cordoned for.
pub(super) fn claim() -> Claim {
    Claim { site: SITE.to_owned(), owner: "run-1/host-1".to_owned(), fence: 7 }
}

/// A permission for this long.
pub(super) fn permit(limit: Duration) -> Permit<'static> {
    Permit::new(Instant::now() + limit, CancellationToken::new(), &|| true)
}

/// A permission that lasts.
pub(super) fn lasting() -> Permit<'static> {
    permit(PATIENCE)
}

/// The names of pods.
pub(super) fn names(pods: &[RemainingPod]) -> Vec<&str> {
    pods.iter().map(|pod| pod.pod.name.as_str()).collect()
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let server = ApiServer::start().await;
        server.add_node(NODE);
        let token = server.grant(USER, rules(&RIGHTS));
        let client = client(&server, &token).await;
        Self { server, client, policy: Policy::default(), pace: PACE }
    }

    /// The same with protected namespaces.
    pub(super) fn protecting(mut self, namespaces: Option<Value>) -> Self {
        self.policy = Policy::new(namespaces.map(selector), None, Vec::new()).unwrap();
        self
    }

    /// The same with pods of the project.
    pub(super) fn owning(mut self, own: OwnPods) -> Self {
        self.policy = Policy::new(None, None, vec![own]).unwrap();
        self
    }

    pub(super) fn drainer(&self) -> Drainer<'_> {
        Drainer { client: &self.client, policy: &self.policy, pace: self.pace }
    }

    /// Cordons the node for the claim.
    pub(super) async fn cordon(&self) {
        let cordoned = node::cordon(&self.client, NODE, &claim(), &lasting()).await;
        assert_eq!(cordoned, Ok(Cordoned::Ours { was_unschedulable: false }));
        self.server.forget_calls();
    }

    /// Cordons the node and drains it.
    pub(super) async fn drain(&self) -> DrainReport {
        self.drain_with(&lasting()).await
    }

    /// Cordons the node and drains it for at most a second.
    pub(super) async fn drain_in_vain(&self) -> DrainReport {
        self.drain_with(&permit(Duration::from_secs(1))).await
    }

    /// Cordons the node and drains it under this permission.
    pub(super) async fn drain_with(&self, permit: &Permit<'_>) -> DrainReport {
        self.cordon().await;
        self.drainer().drain(NODE, &claim(), permit).await
    }

    pub(super) async fn dry_run(&self) -> Result<Preview, Interrupted> {
        self.drainer().dry_run(NODE, &lasting()).await
    }

    /// Adds a running pod of a replica set on the node, labelled `app=NAME`.
    pub(super) fn add(&self, name: &str) {
        self.server
            .add_pod(&Pod::new("default", name).on(NODE).owned_by("ReplicaSet", name).label("app", name));
    }

    /// Adds a budget that never allows the eviction of the pods with this label.
    pub(super) fn forbid(&self, namespace: &str, app: &str) {
        let spec = json!({ "maxUnavailable": 0, "selector": { "matchLabels": { "app": app } } });
        self.server.add_budget(namespace, &format!("{app}-budget"), &spec);
    }

    pub(super) fn is_there(&self, pod: &str) -> bool {
        self.server.object(PODS, "default", pod).is_some()
    }

    /// The node as it is.
    pub(super) fn node(&self) -> Value {
        self.server.object(NODES, "", NODE).unwrap()
    }

    /// The calls of the client so far with this verb and resource.
    pub(super) fn calls(&self, verb: &str, resource: &str) -> Vec<Call> {
        let mut calls = self.server.calls();
        calls.retain(|call| call.verb == verb && call.full_resource() == resource);
        calls
    }

    /// The names in those calls.
    pub(super) fn called(&self, verb: &str, resource: &str) -> Vec<String> {
        self.calls(verb, resource).into_iter().filter_map(|call| call.name).collect()
    }

    /// The pods whose evictions the client has asked for so far, dry runs left out.
    pub(super) fn evictions(&self) -> Vec<String> {
        let calls = self.calls("create", "pods/eviction").into_iter().filter(|call| !call.is_dry_run);
        calls.filter_map(|call| call.name).collect()
    }

    /// Adds running pods of one replica set on the node, `APP-0` and so on, and a budget that allows the eviction of one of them
    /// at a time, so that a dry run of any is granted.
    pub(super) fn add_limited(&self, app: &str, number: usize) {
        for index in 0..number {
            let pod = Pod::new("default", &format!("{app}-{index:02}")).on(NODE);
            self.server.add_pod(&pod.owned_by("ReplicaSet", app).label("app", app));
        }
        let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": { "app": app } } });
        self.server.add_budget("default", &format!("{app}-budget"), &spec);
    }

    /// Number of calls so far that were to change something.
    pub(super) fn writes(&self) -> usize {
        let is_write = |call: &&Call| !["get", "list", "watch"].contains(&call.verb) && !call.is_dry_run;
        self.server.calls().iter().filter(is_write).count()
    }

    /// The rights that the calls so far needed.
    pub(super) fn used(&self) -> BTreeSet<(String, String, String)> {
        let calls = self.server.calls();
        let right = |call: &Call| (call.verb.to_owned(), call.group.to_owned(), call.full_resource());
        calls.iter().filter(|call| call.user == USER).map(right).collect()
    }
}
