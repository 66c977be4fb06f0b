//! Kubernetes nodes are drained around upgrades and reboots: orchestrator and workers as processes, and an API server over HTTP.

use std::fs;

use harness::host::Host;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_test_kubernetes::resource::{BUDGETS, NODES, PODS};
use os_upgrade_test_kubernetes::{ApiServer, Pod};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAMESPACE: &str = "shop";
const MARK: &str = "os-upgrade/cordon";

/// A site whose hosts are nodes of a cluster.
pub(super) struct Hall {
    pub(super) site: Site,
    pub(super) hosts: Vec<Host>,
    pub(super) cluster: ApiServer,
    _directory: TempDir,
}

impl Hall {
    /// Hosts `h01` and so on, each a node with a pod of a daemon set.
    pub(super) async fn start(hosts: usize, more: &str) -> Self {
        let cluster = ApiServer::start().await;
        cluster.add_namespace(NAMESPACE, &json!({}));
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        fs::write(&kubeconfig, cluster.kubeconfig(cluster.admin_token()).to_string()).unwrap();
        for number in 1..=hosts {
            let name = format!("h{number:02}");
            cluster.add_node(&name);
            let agent = Pod::new(NAMESPACE, &format!("agent-{number}")).on(&name);
            cluster.add_pod(&agent.owned_by("DaemonSet", "agent"));
        }
        let settings = format!(
            "[site]\nname = \"hall-1\"\n[kubernetes]\nkubeconfig = \"{}\"\n[reboot]\nbackoff-first = \"1s\"\n\
             backoff-max = \"1s\"\nbackoff-jitter = \"0s\"\n{more}",
            kubeconfig.display()
        );
        let site = Site::start_with(&settings).await;
        let mut all: Vec<Host> = (1..=hosts).map(|number| site.host(&format!("h{number:02}"))).collect();
        site.run(&mut all).await;
        Self { site, hosts: all, cluster, _directory: directory }
    }

    /// A pod on this node that can be evicted.
    pub(super) fn add_pod(&self, name: &str, node: &str) {
        let pod = Pod::new(NAMESPACE, name).on(node).label("app", name).owned_by("ReplicaSet", name);
        self.cluster.add_pod(&pod);
    }

    /// A budget that lets no pod of this name go.
    fn add_budget(&self, name: &str) {
        let spec = json!({ "maxUnavailable": 0, "selector": { "matchLabels": { "app": name } } });
        self.cluster.add_budget(NAMESPACE, &format!("{name}-budget"), &spec);
    }

    fn node(&self, name: &str) -> Value {
        self.cluster.object(NODES, "", name).unwrap()
    }

    fn is_cordoned(&self, name: &str) -> bool {
        let node = self.node(name);
        let is_marked = node["metadata"]["annotations"].get(MARK).is_some();
        assert_eq!(is_marked, node["spec"]["unschedulable"] == true, "{node}");
        is_marked
    }

    fn has_pod(&self, name: &str) -> bool {
        self.cluster.object(PODS, NAMESPACE, name).is_some()
    }

    async fn await_cordoned(&self, name: &str, is_cordoned: bool) {
        eventually(&format!("{name} cordoned: {is_cordoned}"), async || {
            (self.is_cordoned(name) == is_cordoned).then_some(())
        })
        .await;
    }

    /// Waits until the worker of the first host has announced that it reboots on request.
    pub(super) async fn await_reboots_on_request(&self) {
        eventually("a worker that reboots on request", async || {
            let (_, shown) = self.site.rest().get("/v1/state/os-upgrade/hosts").await;
            (shown[0]["reboots-on-request"] == true).then_some(())
        })
        .await;
    }

    /// Waits until the reboot queue is empty.
    pub(super) async fn await_empty_queue(&self) {
        eventually("an empty queue", async || {
            (self.site.orchestrator.done(&["rq", "list", "-o", "json"]).await == "[]").then_some(())
        })
        .await;
    }

    /// What `hosts show` says.
    async fn shown(&self, name: &str) -> String {
        self.site.orchestrator.done(&["hosts", "show", name]).await
    }
}

#[tokio::test]
async fn nodes_are_drained_before_upgrades_and_uncordoned_after() {
    let mut hall = Hall::start(2, "").await;
    hall.add_pod("web", "h01");
    hall.hosts[0].hold("upgrade");
    let id = hall.site.rest().start_run().await;
    hall.hosts[0].await_script("upgrade-begins").await;
    assert!(hall.is_cordoned("h01") && !hall.is_cordoned("h02"));
    assert!(!hall.has_pod("web") && hall.has_pod("agent-1"), "the pod of the daemon set stays");

    // The next leader writes its fence into the mark, while the host is at work.
    let fence = |hall: &Hall| hall.node("h01")["metadata"]["annotations"][MARK].as_str().unwrap().to_owned();
    let before = fence(&hall);
    hall.site.orchestrator.kill_and_start().await;
    eventually("a new fence in the mark", async || (fence(&hall) != before).then_some(())).await;

    hall.hosts[0].release("upgrade");
    let run = hall.site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let events = run.events_of("h01");
    let place = |what: &str| {
        events.iter().position(|event| event == what).unwrap_or_else(|| panic!("{what}: {events:?}"))
    };
    assert!(
        place("drained") < place("command-sent upgrade") && place("recovering") < place("upgraded"),
        "{events:?}"
    );
    assert!(!hall.is_cordoned("h01") && !hall.is_cordoned("h02"));
}

#[tokio::test]
async fn drain_that_a_budget_refuses_lets_others_go_first() {
    let hall = Hall::start(2, "").await;
    hall.add_pod("db", "h01");
    hall.add_pod("web", "h01");
    hall.add_budget("db");
    hall.hosts[1].hold("upgrade");
    let id = hall.site.rest().start_run().await;
    hall.hosts[1].await_script("upgrade-begins").await;
    assert!(hall.has_pod("db") && hall.has_pod("web"), "nothing was evicted");
    assert!(!hall.is_cordoned("h01"));

    hall.cluster.remove(BUDGETS, NAMESPACE, "db-budget");
    hall.hosts[1].release("upgrade");
    let run = hall.site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let mut events = run.0["events"].as_array().unwrap().iter();
    let gave_up = events.find(|event| event["step"] == "backed-off").unwrap();
    let why = gave_up["why"]["text"].as_str().unwrap();
    assert!(
        gave_up["host"] == "h01" && why.contains("db-budget") && why.contains("ReplicaSet/db"),
        "{gave_up}"
    );
    assert!(!hall.has_pod("db") && !hall.is_cordoned("h01") && !hall.is_cordoned("h02"));
}

#[tokio::test]
async fn cordon_of_an_administrator_survives_an_upgrade() {
    let hall = Hall::start(1, "").await;
    hall.cluster.edit(NODES, "", "h01", |node| node["spec"]["unschedulable"] = json!(true));
    let id = hall.site.rest().start_run().await;
    let run = hall.site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let node = hall.node("h01");
    assert_eq!(
        (&node["spec"]["unschedulable"], node["metadata"]["annotations"].get(MARK)),
        (&json!(true), None)
    );
}

#[tokio::test]
async fn nodes_of_failed_hosts_stay_cordoned_for_a_person() {
    let hall = Hall::start(1, "").await;
    hall.hosts[0].fail("upgrade", "no space left");
    let id = hall.site.rest().start_run().await;
    assert_eq!(hall.site.rest().await_end(&id).await.result(), Some("failed"));
    assert!(hall.is_cordoned("h01"));
    let shown = hall.shown("h01").await;
    assert!(shown.contains("hosts uncordon --reason=TEXT h01"), "{shown}");

    // Somebody makes it schedulable by hand: only the mark is left, and goes, too.
    hall.cluster.edit(NODES, "", "h01", |node| node["spec"]["unschedulable"] = json!(false));
    eventually("a node without a mark", async || {
        hall.node("h01")["metadata"]["annotations"].get(MARK).is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn kept_nodes_are_uncordoned_for_operators() {
    let hall = Hall::start(1, "").await;
    hall.hosts[0].fail("upgrade", "no space left");
    let id = hall.site.rest().start_run().await;
    assert_eq!(hall.site.rest().await_end(&id).await.result(), Some("failed"));
    let program = &hall.site.orchestrator;
    let status = program.done(&["status"]).await;
    assert!(status.contains("uncordon: os-upgrade hosts uncordon --reason=TEXT h01"), "{status}");

    let uncordon = ["hosts", "uncordon", "h01", "--reason", "mended"];
    let printed = program.done(&[&uncordon[..], &["-o", "json"]].concat()).await;
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), json!({ "being-uncordoned": ["h01"] }));
    hall.await_cordoned("h01", false).await;
    let history = program.done(&["hosts", "history"]).await;
    let line = history.lines().nth(1).unwrap();
    assert!(line.contains("uncordoned") && line.ends_with("mended"), "{history}");
    eventually("a node that is as it was before", async || {
        let (code, _, stderr) = program.ask(&uncordon, "").await;
        (code == Some(5) && stderr.contains("the node of h01 is not cordoned by this site")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn drains_are_previewed_without_touching_anything() {
    let hall = Hall::start(1, "").await;
    for name in ["web", "db"] {
        hall.add_pod(name, "h01");
    }
    hall.add_budget("db");
    let printed = hall.site.orchestrator.done(&["drain", "--dry-run", "h01"]).await;
    let expected = "blocked  shop/db of ReplicaSet/db is kept by the budget db-budget
evicted  shop/web of ReplicaSet/web";
    assert_eq!(printed, expected);
    assert!(hall.has_pod("web") && !hall.is_cordoned("h01"));
}

#[tokio::test]
async fn queued_reboots_drain_and_wait_for_the_kubelet() {
    let hall = Hall::start(1, "").await;
    hall.add_pod("web", "h01");
    let program = &hall.site.orchestrator;
    hall.await_reboots_on_request().await;
    hall.cluster.edit(NODES, "", "h01", |node| node["status"]["nodeInfo"]["bootID"] = json!("boot-1"));
    hall.hosts[0].hold("reboot");
    program.done(&["reboot-queue", "add", "h01"]).await;
    hall.hosts[0].await_script("reboot").await;
    assert!(hall.is_cordoned("h01") && !hall.has_pod("web"));
    hall.hosts[0].release("reboot");

    // The worker is back before the kubelet has reported the boot.
    eventually("a node that is waited for", async || {
        let printed = program.done(&["rq", "list", "-o", "json"]).await;
        let entries: Vec<Value> = serde_json::from_str(&printed).unwrap();
        (entries[0]["why"]["kind"] == "node-under-way"
            && entries[0]["why"]["text"].as_str()?.contains("not ready"))
        .then_some(())
    })
    .await;
    assert!(hall.is_cordoned("h01"));
    hall.cluster.reboot_node("h01");
    hall.await_cordoned("h01", false).await;
    hall.await_empty_queue().await;
    assert_eq!(program.done(&["lock", "list", "-o", "name"]).await, "");
}

/// Although both may be upgraded at once, and there are slots for both.
#[tokio::test]
async fn api_server_is_upgraded_alone() {
    let selector = "api-server-selector = \"kubernetes.io/hostname=h01\"";
    let hall = Hall::start(2, &format!("{selector}\n[fleet-lock.groups]\ndefault = 2")).await;
    let (_, printed, _) = hall.site.orchestrator.command(&["doctor"]).await;
    assert!(printed.contains("nodes of hosts: 2 (h01, h02), 2 ready, 1 API servers"), "{printed}");
    hall.site.orchestrator.done(&["config", "set", "rollout.max-concurrent", "2", "--yes"]).await;
    hall.hosts[0].hold("upgrade");
    let id = hall.site.rest().start_run().await;
    hall.hosts[0].await_script("upgrade-begins").await;
    eventually("a host that waits for the API server", async || {
        hall.shown("h02").await.contains("h01 is an API server and under way").then_some(())
    })
    .await;
    assert!(hall.is_cordoned("h01") && !hall.is_cordoned("h02"));

    hall.hosts[0].release("upgrade");
    let run = hall.site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert!(!hall.is_cordoned("h01") && !hall.is_cordoned("h02"));
}

/// The next leader goes on where the last one was: it evicts nothing twice, and reboots once.
#[tokio::test]
async fn drain_survives_its_leader() {
    let mut hall = Hall::start(1, "").await;
    hall.add_pod("slow", "h01");
    hall.cluster.end_pods("h01", false);
    hall.await_reboots_on_request().await;
    hall.site.orchestrator.done(&["rq", "add", "h01"]).await;
    let is_ending = |hall: &Hall| {
        let pod = hall.cluster.object(PODS, NAMESPACE, "slow").expect("a pod that does not end");
        !pod["metadata"]["deletionTimestamp"].is_null()
    };
    eventually("an eviction", async || is_ending(&hall).then_some(())).await;
    hall.site.orchestrator.kill_and_start().await;
    hall.site.orchestrator.ready().await;
    eventually("a drain that goes on", async || {
        let printed = hall.site.orchestrator.done(&["rq", "list", "-o", "json"]).await;
        printed.contains("slow").then_some(())
    })
    .await;
    assert!(hall.is_cordoned("h01") && hall.site.commands_to("reboot").await.is_empty());
    hall.cluster.end_pod(NAMESPACE, "slow");
    hall.hosts[0].await_script("reboot").await;
    hall.cluster.reboot_node("h01");
    hall.await_empty_queue().await;
    let calls = hall.cluster.calls().into_iter();
    let evictions = calls.filter(|call| call.subresource.as_deref() == Some("eviction") && !call.is_dry_run);
    assert_eq!((evictions.count(), hall.site.commands_to("reboot").await.len()), (1, 1));
    assert!(!hall.is_cordoned("h01"));
}

#[tokio::test]
async fn nodes_that_nothing_owns_are_uncordoned() {
    let hall = Hall::start(1, "").await;
    let mark = |site: &str, host: &str| {
        let fence = json!({ "restored": 0, "sequence": 1 });
        json!({ "site": site, "host": host, "owner": "r1", "fence": fence, "wasUnschedulable": false })
    };
    hall.cluster.add_node("h02");
    for (node, site) in [("h01", "hall-1"), ("h02", "hall-2")] {
        let mark = mark(site, node);
        hall.cluster.edit(NODES, "", node, |node| {
            node["spec"]["unschedulable"] = json!(true);
            node["metadata"]["annotations"] = json!({ MARK: mark.to_string() });
        });
    }
    hall.await_cordoned("h01", false).await;
    assert!(hall.is_cordoned("h02"), "another site's");
}
