//! A cluster as the adapter sees it: a server, and a client with no more rights than it says it needs.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use os_upgrade_adapters::cluster::{self, ClusterConfig, Preview};
use os_upgrade_adapters::kubernetes::client::{Access, Client};
use os_upgrade_adapters::kubernetes::drain::Pace;
use os_upgrade_adapters::kubernetes::mark::{Claim, Cordoned};
use os_upgrade_adapters::kubernetes::node;
use os_upgrade_adapters::kubernetes::permit::Permit;
use os_upgrade_adapters::kubernetes::plan::Policy;
use os_upgrade_adapters::kubernetes::request_rate::RequestRate;
use os_upgrade_adapters::kubernetes::rights::{RIGHTS, Right};
use os_upgrade_kernel::{
    JobDone, NodeFence, NodeJob, NodeOrder, NodeOutcome, Owner, Pod as LeftPod, PodObstacle,
};
use os_upgrade_protocol::HostName;
use os_upgrade_settings::NodeFrom;
use os_upgrade_shell::fleet_lock::RetryAfter;
use os_upgrade_shell::jobs::JobReport;
use os_upgrade_test_kubernetes::resource::{NODES, PODS};
use os_upgrade_test_kubernetes::{ApiServer, Call, Pod, Rules};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// The node of a test, and its host.
pub(super) const NODE: &str = "n";
/// The user of the client.
pub(super) const USER: &str = "os-upgrade";
/// The site of the client.
pub(super) const SITE: &str = "here";
/// What the node is cordoned for.
pub(super) const OWNER: &str = "run-1";
/// A limit that no test reaches unless something hangs.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two rounds.
const ROUND: Duration = Duration::from_millis(20);
/// As fast as a test can go.
const PACE: Pace =
    Pace { retry: Duration::from_millis(100), retries: 0, grace: None, skip_terminating_after: None };
const REQUESTS_PER_SECOND: u32 = 1_000;

/// A server with one node, and a client of it.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) config: ClusterConfig,
    /// The folder of the kubeconfig.
    _folder: TempDir,
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

/// A kubeconfig in a folder of its own.
pub(super) fn kubeconfig(config: &Value) -> (TempDir, Access) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, config.to_string()).unwrap();
    (folder, Access::Kubeconfig { file, context: None })
}

/// The client with this kubeconfig.
pub(super) async fn client_of(config: &Value) -> Client {
    let (_folder, access) = kubeconfig(config);
    Client::new(&access).await.unwrap()
}

/// The rate of requests of a cluster.
pub(super) fn requests_per_second(requests: u32) -> RequestRate {
    RequestRate::per_second(NonZeroU32::new(requests).unwrap())
}

/// A selector.
pub(super) fn selector(labels: Value) -> LabelSelector {
    serde_json::from_value(labels).unwrap()
}

pub(super) fn fence(sequence: u64) -> NodeFence {
    NodeFence { restored: 0, sequence }
}

pub(super) fn host() -> HostName {
    HostName::new(NODE).unwrap()
}

/// Who speaks for the node.
pub(super) fn claim() -> Claim {
    Claim { site: SITE.to_owned(), host: host(), fence: fence(7), journal: None, takes_over: None }
}

/// A permission that lasts.
pub(super) fn lasting() -> Permit<'static> {
    Permit::new(&|| true)
}

pub(super) fn owner() -> Owner {
    Owner::Run(OWNER.parse().unwrap())
}

pub(super) fn check(is_cordoned: bool) -> NodeOrder {
    NodeOrder::Check { owner: owner(), is_cordoned }
}

pub(super) fn evict(is_cordoned: bool) -> NodeOrder {
    NodeOrder::Evict { owner: owner(), is_cordoned, is_ours: false }
}

/// The job about the node with the fence of [`claim`].
pub(super) fn job(order: NodeOrder) -> NodeJob {
    NodeJob { order, host: host(), fence: fence(7) }
}

/// The outcome in a report.
pub(super) fn outcome(report: JobReport) -> NodeOutcome {
    let JobDone::Cluster(_, outcome) = report.done else { panic!("not an outcome: {report:?}") };
    outcome
}

/// The outcome of a job while this instance leads.
pub(super) async fn carry_out(adapter: &cluster::Cluster, order: NodeOrder) -> NodeOutcome {
    outcome(adapter.carry_out(job(order), || true).await)
}

/// The pods that are left; none of a node that is drained.
pub(super) fn left(outcome: &NodeOutcome) -> &[LeftPod] {
    if let NodeOutcome::Remaining { pods } = outcome {
        return &pods.first;
    }
    assert!(is_drained(outcome), "neither drained nor remaining: {outcome:?}");
    &[]
}

pub(super) fn is_drained(outcome: &NodeOutcome) -> bool {
    matches!(outcome, NodeOutcome::Drained { boot_id: Some(_) })
}

/// The names of pods.
pub(super) fn names(pods: &[LeftPod]) -> Vec<&str> {
    pods.iter().map(|pod| pod.name.as_str()).collect()
}

/// The obstacle of `Cluster::forbid`.
pub(super) fn forbidden(app: &str) -> PodObstacle {
    PodObstacle::Budget { budgets: vec![format!("{app}-budget")] }
}

/// Repeats a job for as long as there is no answer, and the time allows.
async fn answer(adapter: &cluster::Cluster, order: NodeOrder, end: Instant) -> NodeOutcome {
    loop {
        let report = adapter.carry_out(job(order.clone()), || true).await;
        let pause = report.retry_after.map_or(ROUND, RetryAfter::pause);
        let answer = outcome(report);
        if !matches!(answer, NodeOutcome::Unreachable { .. }) || Instant::now() + pause >= end {
            return answer;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Drains the node as the kernel does: a check, then rounds until the node is drained or the time is up.
pub(super) async fn drain(adapter: &cluster::Cluster, limit: Duration) -> NodeOutcome {
    let end = Instant::now() + limit;
    let outcome = answer(adapter, check(false), end).await;
    if outcome != NodeOutcome::Clear {
        return outcome;
    }
    drain_on(adapter, limit).await
}

/// Goes on with a drain.
pub(super) async fn drain_on(adapter: &cluster::Cluster, limit: Duration) -> NodeOutcome {
    let end = Instant::now() + limit;
    loop {
        let outcome = answer(adapter, evict(true), end).await;
        if !matches!(outcome, NodeOutcome::Remaining { .. }) || Instant::now() + ROUND > end {
            return outcome;
        }
        tokio::time::sleep(ROUND).await;
    }
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let server = ApiServer::start().await;
        server.add_node(NODE);
        let token = server.grant(USER, rules(&RIGHTS));
        let (folder, access) = kubeconfig(&server.kubeconfig(&token));
        let client = Client::new(&access).await.unwrap();
        let config = ClusterConfig {
            access,
            site: SITE.to_owned(),
            node_from: NodeFrom::Host,
            policy: Policy::default(),
            requests: requests_per_second(REQUESTS_PER_SECOND),
            pace: PACE,
            api_servers: Selector::from_iter([("role", "api-server")]),
        };
        Self { server, client, config, _folder: folder }
    }

    /// The same with protected namespaces.
    pub(super) fn protecting(mut self, namespaces: Option<Value>) -> Self {
        self.config.policy = Policy::new(namespaces.map(selector), None).unwrap();
        self
    }

    /// An adapter that knows nothing yet.
    pub(super) fn adapter(&self) -> cluster::Cluster {
        cluster::Cluster::new(self.config.clone())
    }

    /// Cordons the node for the claim.
    pub(super) async fn cordon(&self) {
        let cordoned = node::cordon(&self.client, NODE, &claim(), OWNER, false, lasting())
            .await
            .map(|(cordoned, _)| cordoned);
        assert_eq!(cordoned, Ok(Cordoned::Ours { was_unschedulable: false }));
        self.server.forget_calls();
    }

    /// Cordons the node and drains it.
    pub(super) async fn drain(&self) -> NodeOutcome {
        drain(&self.adapter(), PATIENCE).await
    }

    /// Cordons the node and drains it for at most a second.
    pub(super) async fn drain_in_vain(&self) -> NodeOutcome {
        drain(&self.adapter(), Duration::from_secs(1)).await
    }

    pub(super) async fn preview(&self) -> Preview {
        self.adapter().preview(&host()).await.unwrap()
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

    /// The names in deletions of pods but dry runs.
    pub(super) fn deletions(&self) -> Vec<String> {
        let calls = self.calls("delete", "pods").into_iter().filter(|call| !call.is_dry_run);
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

    /// Number of calls so far that were to change something. Events, which are written in the background, and questions about rights
    /// are left out.
    pub(super) fn writes(&self) -> usize {
        let is_write = |call: &&Call| {
            let is_other = ["events", "selfsubjectaccessreviews"].contains(&call.resource);
            !["get", "list", "watch"].contains(&call.verb) && !call.is_dry_run && !is_other
        };
        self.server.calls().iter().filter(is_write).count()
    }

    /// The same without those to the node.
    pub(super) fn pod_writes(&self) -> usize {
        self.writes() - self.calls("patch", "nodes").len()
    }

    /// The rights that the calls so far needed.
    pub(super) fn used(&self) -> BTreeSet<(String, String, String)> {
        let calls = self.server.calls();
        let right = |call: &Call| (call.verb.to_owned(), call.group.to_owned(), call.full_resource());
        calls.iter().filter(|call| call.user == USER).map(right).collect()
    }
}
