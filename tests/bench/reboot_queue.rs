//! The reboot queue: nodes of a Kubernetes cluster that are drained, rebooted and uncordoned. The floor is a bare loop that
//! sends the requests which nobody can do without.
//!
//! The API server is that of the tests, in this process, and serves floor and orchestrator alike. Its pods end at once and
//! its nodes boot at once, so what is left is the speed of the API server, and what is added to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use harness::http;
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::{Action, HostName};
use os_upgrade_test_kubernetes::resource::NODES;
use os_upgrade_test_kubernetes::{ApiServer, Pod, boot_id};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::report::{Pairs, Report, Target, Unit, progress};
use crate::site::Site;
use crate::workers::{Machines, Step, host};

/// Number of pods on each node.
const PODS: usize = 10;
/// Turns of the floor and of the queue.
const TURNS: usize = 2;
/// Limit of the time of the queue, relative to the floor.
const RATIO_MAX: f64 = 1.3;
/// Limit of the number of requests, relative to the floor.
const REQUESTS_MAX: f64 = 1.2;
const NAMESPACE: &str = "shop";
const QUEUE: &str = "/v1/state/reboot-queue";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// How large a cluster is, and how much is done at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Number of nodes.
    pub(crate) nodes: usize,
    /// Number of nodes under way at once, of the queue and of the floor.
    pub(crate) at_once: usize,
}

/// The cluster, and the machines of its nodes.
#[derive(Debug)]
struct Cluster {
    server: ApiServer,
    http: Client,
    size: Size,
}

impl Cluster {
    async fn start(size: Size) -> anyhow::Result<Self> {
        let server = ApiServer::start().await;
        server.add_namespace(NAMESPACE, &json!({}));
        let names: Vec<HostName> = (0..size.nodes).map(host).collect();
        server.add_nodes(names.iter().map(HostName::as_str));
        Ok(Self { server, http: http::builder([]).build()?, size })
    }

    /// Adds the pods that were evicted, and forgets what happened so far.
    fn refill(&self) {
        let pods: Vec<Pod> = (0..self.size.nodes * PODS)
            .map(|number| {
                let node = host(number / PODS);
                Pod::new(NAMESPACE, &format!("p{number:06}")).on(node.as_str()).owned_by("ReplicaSet", "web")
            })
            .collect();
        self.server.add_pods(&pods);
        self.server.forget_calls();
    }

    /// How many requests each node has cost since the last refill, without the three events about it, which nobody waits for.
    fn requests(&self) -> f64 {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        count(self.server.calls().iter().filter(|call| call.resource != "events").count())
            / count(self.size.nodes)
    }

    /// The floor: drains, reboots and uncordons nodes, as many at once as the queue, and looks at nothing else.
    async fn bare(self: &Arc<Self>) -> anyhow::Result<Duration> {
        let started = Instant::now();
        futures::stream::iter(0..self.size.nodes)
            .map(|number| {
                let cluster = Arc::clone(self);
                async move { tokio::spawn(async move { cluster.bare_reboot(&host(number)).await }).await? }
            })
            .buffer_unordered(self.size.at_once)
            .try_collect::<()>()
            .await?;
        Ok(started.elapsed())
    }

    async fn bare_reboot(&self, host: &HostName) -> anyhow::Result<()> {
        let node = format!("/api/v1/nodes/{host}");
        let patch = |unschedulable: Value| {
            let body = json!({ "spec": { "unschedulable": unschedulable } }).to_string();
            self.http.patch(self.url(&node)).header(CONTENT_TYPE, MERGE_PATCH).body(body)
        };
        self.answer(patch(json!(true))).await?;
        let pods = self.pods_of(host).await?;
        ensure!(pods.len() == PODS, "{host} has {} pods", pods.len());
        for options in [json!({ "dryRun": ["All"] }), json!({})] {
            for pod in &pods {
                self.evict(pod, &options).await?;
            }
        }
        ensure!(self.pods_of(host).await?.is_empty(), "{host} is not drained");
        self.reboot(host);
        self.answer(self.http.get(self.url(&node))).await?;
        self.answer(patch(Value::Null)).await?;
        Ok(())
    }

    async fn pods_of(&self, host: &HostName) -> anyhow::Result<Vec<Value>> {
        let path = format!("/api/v1/pods?limit=250&fieldSelector=spec.nodeName%3D{host}");
        let mut list = self.answer(self.http.get(self.url(&path))).await?;
        match list["items"].take() {
            Value::Array(pods) => Ok(pods),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => {
                bail!("a list without items: {other}")
            }
        }
    }

    async fn evict(&self, pod: &Value, options: &Value) -> anyhow::Result<()> {
        let name = pod["metadata"]["name"].as_str().context("a pod without a name")?;
        let mut options = options.clone();
        options["preconditions"] = json!({ "uid": pod["metadata"]["uid"] });
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "namespace": NAMESPACE, "name": name },
            "deleteOptions": options,
        });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction");
        self.answer(self.http.post(self.url(&path)).json(&body)).await?;
        Ok(())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url)
    }

    async fn answer(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let answer = request.bearer_auth(self.server.admin_token()).send().await?.error_for_status()?;
        Ok(answer.json().await?)
    }
}

impl Machines for Cluster {
    fn boot_id(&self, host: &HostName) -> String {
        let node = self.server.object(NODES, "", host.as_str()).expect("the node of a host");
        node["status"]["nodeInfo"]["bootID"].as_str().expect("a booted node").to_owned()
    }

    fn reboot(&self, host: &HostName) {
        self.server.edit(NODES, "", host.as_str(), |node| {
            node["status"]["nodeInfo"]["bootID"] = json!(boot_id());
        });
    }
}

/// A site whose hosts are the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Hall {
    cluster: Arc<Cluster>,
    site: Site,
    _nats: ManagedNats,
}

impl Hall {
    /// Starts it with this many hosts, with all data in `directory`.
    pub(crate) async fn start(
        program: PathBuf,
        directory: &Path,
        cluster_size: Size,
    ) -> anyhow::Result<Self> {
        let cluster = Arc::new(Cluster::start(cluster_size).await?);
        let server = nats_server::find().await?;
        let options = managed_nats::Options { directory: directory.join("nats"), port: None };
        let nats = ManagedNats::start(server, &options).await?;
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.server.kubeconfig(cluster.server.admin_token()).to_string())?;
        let at_once = cluster_size.at_once;
        // The limit that protects real API servers is out of the way.
        let settings = format!(
            "[fleet-lock.groups]\ndefault = {at_once}\n[reboot]\nmax-concurrent-reboots = {at_once}\n\
             [kubernetes]\nkubeconfig = \"{}\"\nrequests-per-second = 10000\n",
            kubeconfig.display()
        );
        let machines: Arc<dyn Machines> = Arc::<Cluster>::clone(&cluster);
        let directory = directory.join("site");
        let mut site = Site::start_on(Some(machines), program, directory, &nats.url(), &settings).await?;
        site.grow(&nats.url(), cluster_size.nodes).await?;
        Ok(Self { cluster, site, _nats: nats })
    }

    /// Queues all hosts, and waits until the queue is empty. Returns how long that took.
    async fn work_off(&mut self) -> anyhow::Result<Duration> {
        self.site.workers.forget();
        let started = Instant::now();
        let nodes = self.cluster.size.nodes;
        let names: Vec<String> = (0..nodes).map(|number| host(number).to_string()).collect();
        self.site.instance.post(&format!("{QUEUE}/add"), Some(&json!({ "nodes": names }))).await?;
        self.site.workers.wait(Action::Reboot, Step::Settled, nodes).await?;
        let is_empty = |entries: &Value| entries.as_array().is_some_and(Vec::is_empty);
        self.site.instance.until(QUEUE, "the reboot queue is empty", is_empty).await?;
        Ok(started.elapsed())
    }

    /// Works off the queue, in turns with the floor.
    pub(crate) async fn measure(&mut self, report: &mut Report) -> anyhow::Result<()> {
        let nodes = self.cluster.size.nodes;
        let pods = nodes * PODS;
        let (mut times, mut requests) = (Pairs::default(), Pairs::default());
        for turn in 1..=TURNS {
            progress(format!("a reboot queue of {nodes} nodes with {pods} pods, {turn} of {TURNS}"));
            self.cluster.refill();
            let floor = self.cluster.bare().await?;
            let floor_requests = self.cluster.requests();
            self.cluster.refill();
            times.push_times(floor, self.work_off().await?);
            requests.push(floor_requests, self.cluster.requests());
        }
        let what = format!("a reboot queue of {nodes} nodes with {pods} pods");
        report.push(what, Unit::Millis, times, Target::AtMost(RATIO_MAX));
        let what = "requests for each of these nodes";
        report.push(what, Unit::Number, requests, Target::AtMost(REQUESTS_MAX));
        Ok(())
    }
}
