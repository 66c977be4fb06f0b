//! The Kubernetes nodes of hosts: how they are shown, and how operators have them uncordoned.

use chrono::{TimeDelta, Utc};
use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::routes::run_hosts::HostReport;
use os_upgrade_kernel::config::LockProvider;
use os_upgrade_kernel::fact::{NodeFact, QueueFact, RunFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{
    Fact, HostEvent, KubernetesSettings, Node, NodeStage, NodeStep, NodeWait, Pod, PodObstacle, Pods, Reason,
    RebootCommandSettings, RebootSettings, SeenHost, SeenNode, Settings,
};
use os_upgrade_protocol::{Action, GroupName, Outcome};
use os_upgrade_site::drain_previews::{
    DrainPreview, DrainPreviews, NoPreview, PodName, PreviewRead, PreviewsDrains,
};
use os_upgrade_test_site::{put_config, run_id, trigger};

use super::*;

const UNCORDON: &str = "POST /v1/state/os-upgrade/uncordon-host";
const HISTORY: &str = "GET /v1/state/os-upgrade/enrolment-history";

fn settings() -> Settings {
    let kubernetes =
        KubernetesSettings { drain_timeout: "10m".parse().unwrap(), uncordon_failed: false, hosts: None };
    Settings { auto_approve: true, kubernetes: Some(kubernetes), ..Settings::default() }
}

/// A node that has been at `stage` since 05:00:00.
fn node(stage: NodeStage, waits: Option<NodeWait>) -> Node {
    let since = "2026-11-21T05:00:00Z".parse().unwrap();
    Node {
        stage,
        since,
        fence: None,
        boot_id: None,
        left: None,
        waits,
        was_unschedulable: false,
        takes_over: None,
    }
}

fn waits_for_pods() -> NodeWait {
    let pod = |name: &str, owner: Option<&str>, obstacle| Pod {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        owner: owner.map(ToOwned::to_owned),
        obstacle,
        since: "2026-11-21T05:00:01Z".parse().unwrap(),
    };
    let budget = PodObstacle::Budget { budgets: vec!["db".to_owned()] };
    let first =
        vec![pod("db-0", Some("StatefulSet/db"), budget), pod("once", None, PodObstacle::Terminating)];
    NodeWait::Pods { pods: Pods { count: 7, first, kubelet_silent: false } }
}

/// A site of a cluster: the node of `h02` stays cordoned, and that of `h03` is being uncordoned.
async fn api() -> TestApi {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    let mut records = vec![site.decide_record(&[Input::Settings(settings()), put_config()])];
    records.push(site.fence());
    let uncordoning = NodeStage::Uncordoning { release: None, reason: None };
    for (name, node) in
        [("h02", node(NodeStage::Drained, None)), ("h03", node(uncordoning, Some(NodeWait::NotReady)))]
    {
        site.state.nodes.insert(host(name), node);
    }
    TestApi::new(site, &records).await
}

/// A site of a cluster in which the drain of `h01` has just begun, and its records.
fn draining() -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01", "h02"]);
    let seen = |name: &str| SeenNode { name: format!("node-{name}"), ..SeenNode::default() };
    let seen = ["h01", "h02"].map(|name| (host(name), seen(name)));
    site.view.nodes = Some(seen.into_iter().collect());
    let mut records = vec![site.decide_record(&[Input::Settings(settings()), put_config()]), site.fence()];
    records.extend([site.decide_record(&[trigger("r1")]), site.send()]);
    records.push(site.reply(["h01", "h02"], Action::Prepare, &Outcome::Done));
    (site, records)
}

async fn json_of(api: &TestApi, name: &str) -> Value {
    api.call(&format!("GET /v1/state/os-upgrade/hosts/{name}"), "").await.1
}

async fn shown(api: &TestApi, name: &str) -> Host<'static> {
    api.read(&format!("GET /v1/state/os-upgrade/hosts/{name}")).await
}

#[tokio::test]
async fn nodes_are_shown_while_something_is_done_to_them() {
    let (mut site, records) = draining();
    site.state.nodes.insert(host("h01"), node(NodeStage::Evicting, Some(waits_for_pods())));
    site.state.nodes.insert(host("h03"), node(NodeStage::Drained, None));
    site.view.hosts.insert(host("h03"), SeenHost::default());
    let api = TestApi::new(site, &records).await;
    let pods = json!([
        {
            "namespace": "shop", "name": "db-0", "owner": "StatefulSet/db", "obstacle": "budget",
            "text": "is kept by the budget db", "since": "2026-11-21T05:00:01Z",
        },
        {
            "namespace": "shop", "name": "once", "obstacle": "terminating", "text": "is terminating",
            "since": "2026-11-21T05:00:01Z",
        },
    ]);
    let evicting = json_of(&api, "h01").await["node"].clone();
    let waits = &evicting["waits"];
    let text = waits["text"].as_str().unwrap();
    assert!(text.starts_with("pod shop/db-0 of StatefulSet/db is kept by the budget db"), "{text}");
    assert_eq!(
        (&evicting["stage"], &evicting["since"], &waits["kind"], &waits["count"], &waits["pods"]),
        (&json!("evicting"), &json!("2026-11-21T05:00:00Z"), &json!("pods"), &json!(7), &pods)
    );
    let kept = json!({"stage": "drained", "since": "2026-11-21T05:00:00Z", "kept": true});
    assert_eq!(json_of(&api, "h03").await["node"], kept);
    let idle = shown(&api, "h02").await;
    assert_eq!((idle.kubernetes_node.as_deref(), idle.node.is_none()), (Some("node-h02"), true));
    let (_, hosts) = api.call("GET /v1/state/os-upgrade/hosts", "").await;
    assert_eq!((&hosts[0]["node"], &hosts[1]["node"], &hosts[2]["node"]), (&evicting, &Value::Null, &kept));
    let (_, state) = api.call("GET /v1/state/os-upgrade?fields=hosts/hostname,hosts/node/kept", "").await;
    let expected = json!([
        {"hostname": "h01", "node": {}}, {"hostname": "h02"}, {"hostname": "h03", "node": {"kept": true}},
    ]);
    assert_eq!(state["hosts"], expected);
}

#[tokio::test]
async fn kept_nodes_are_uncordoned() {
    let api = api().await;
    let body = |name: &str| json!({"host": name, "reason": " mended "}).to_string();
    assert_eq!(api.call(&format!("{UNCORDON}?validate=true"), &body("h02")).await, (204, Value::Null));
    assert_eq!(shown(&api, "h02").await.node.unwrap().stage.as_str(), "drained");
    assert_eq!(api.call(UNCORDON, &body("h02")).await, (204, Value::Null));
    let node = shown(&api, "h02").await.node.unwrap();
    assert_eq!((node.stage.as_str(), node.kept), ("uncordoning", false));
    // It is so.
    assert_eq!(api.call(UNCORDON, &body("h02")).await, (204, Value::Null));
    assert_eq!(api.call(UNCORDON, &body("h03")).await, (204, Value::Null));

    let (status, history) = api.call(HISTORY, "").await;
    let step = json!({"kind": "uncordon-requested", "actor": "api", "reason": "mended"});
    let fact = json!({"type": "node", "host": "h02", "step": step});
    let items = history["items"].as_array().unwrap();
    assert_eq!((status, items.len(), &items[0]["fact"]), (200, 1, &fact));
    assert_eq!((&items[0]["actor"], &items[0]["host"]), (&json!("api"), &json!("h02")));
    assert_eq!(api.call(&format!("{HISTORY}?count=true"), "").await, (200, json!({"count": 1})));
}

/// Only what operators did is in the history: a site has far more steps of nodes.
#[tokio::test]
async fn other_steps_are_not_in_the_history() {
    let mut site = TestSite::new(["h01"]);
    let mut record = site.decide_record(&[Input::Settings(settings()), put_config()]);
    let due = NodeStep::UncordonDue { release: None, reason: None };
    record.record.facts.push(Fact::Node(NodeFact::Step { host: host("h01"), step: due }));
    let api = TestApi::new(site, &[record]).await;
    assert_eq!(api.call(HISTORY, "").await, (200, json!({"items": []})));
}

#[tokio::test]
async fn other_nodes_are_not_uncordoned() {
    let (site, records) = draining();
    let api = TestApi::new(site, &records).await;
    let draining = shown(&api, "h01").await;
    assert_eq!(
        (draining.status.unwrap().as_str(), draining.node.unwrap().stage.as_str()),
        ("draining", "checking")
    );
    for (body, expected, message) in [
        (r#"{"host":"h01"}"#, 400, "missing field `reason`"),
        (r#"{"host":"h01","reason":" "}"#, 400, "give a reason"),
        (r#"{"host":"h01","reason":"x"}"#, 409, "h01 is under way"),
        (r#"{"host":"h02","reason":"x"}"#, 404, "the node of h02 is not cordoned by this site"),
        (r#"{"host":"nobody","reason":"x"}"#, 404, "the node of nobody is not cordoned by this site"),
    ] {
        let (status, answer) = api.call(UNCORDON, body).await;
        let said = answer["errors"][0]["error-message"].as_str().unwrap();
        assert!(status == expected && said.contains(message), "{body}: {status} {said}");
    }
    let info = &api.call(UNCORDON, r#"{"host":"h01","reason":"x"}"#).await.1["errors"][0]["error-info"];
    assert_eq!(info, &json!({"kind": "node-in-use", "host": "h01"}));
}

/// `/metrics` of an instance that has read the state.
async fn metrics(api: &TestApi) -> String {
    let read = PublishedState { is_read: true, ..api.site.published().as_ref().clone() };
    api.shown.store(Arc::new(read));
    api.send(build("GET /metrics", "", "")).await.2
}

fn value(text: &str, name: &str) -> u64 {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

#[tokio::test]
async fn nodes_in_metrics() {
    let api = api().await;
    let text = metrics(&api).await;
    let of_stages = |text: &str| {
        ["checking", "evicting", "drained", "rechecking", "uncordoning"]
            .map(|stage| value(text, &format!(r#"os_upgrade_nodes{{stage="{stage}"}}"#)))
    };
    assert_eq!(of_stages(&text), [0, 0, 1, 0, 1]);
    assert_eq!(value(&text, "os_upgrade_nodes_kept_cordoned"), 1);
    assert_eq!(value(&text, "os_upgrade_nodes_oldest_drain_seconds"), 0);
    assert!(
        value(&text, "os_upgrade_nodes_oldest_uncordon_seconds") > 0,
        "the test's clock is behind: {text}"
    );

    let (site, records) = draining();
    let text = metrics(&TestApi::new(site, &records).await).await;
    assert_eq!((of_stages(&text), value(&text, "os_upgrade_nodes_kept_cordoned")), ([1, 0, 0, 0, 0], 0));
    assert!(value(&text, "os_upgrade_nodes_oldest_drain_seconds") > 0, "{text}");

    let text = metrics(&TestApi::new(TestSite::new(["h01"]), &[]).await).await;
    assert_eq!(of_stages(&text), [0; 5]);
}

#[tokio::test]
async fn given_up_drains_in_metrics_and_history() {
    let (mut site, mut records) = draining();
    let too_long = Reason::DrainTimedOut { after: "10m".parse().unwrap(), waits: Some(waits_for_pods()) };
    let event = HostEvent::BackedOff { until: Utc::now() + TimeDelta::minutes(5), reason: too_long };
    let fact = Fact::Run(RunFact::Host { run: run_id("r1"), host: host("h01"), event });
    let mut record = site.decide_record(&[Input::Tick]);
    site.state.apply(site.now, &fact).unwrap();
    record.record.facts.push(fact);
    records.push(record);
    let api = TestApi::new(site, &records).await;
    let text = metrics(&api).await;
    assert_eq!(value(&text, r#"os_upgrade_nodes_backed_off{reason="drain-timed-out"}"#), 1);

    // Its history has what happened to it and to its node.
    let report: HostReport<'_> = api.read("GET /v1/state/os-upgrade/runs/r1/hosts/h01").await;
    let phases: Vec<_> = report.phases.iter().map(|phase| phase.status.as_str()).collect();
    assert_eq!(phases, ["pending", "preparing", "prepared", "draining", "prepared"]);
    assert!(report.host.why.as_ref().unwrap().text.contains("pod shop/db-0"), "{report:?}");
}

/// A cluster that answers so.
#[derive(Debug)]
struct Cluster(Result<DrainPreview, NoPreview>);

impl PreviewsDrains for Cluster {
    fn preview<'a>(&'a self, _host: &'a HostName) -> PreviewRead<'a> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

/// The answer about `name` where the cluster answers `preview`; `None` if an instance has no cluster.
async fn preview(name: &str, preview: Option<Result<DrainPreview, NoPreview>>) -> (u16, Value) {
    preview_at(api().await, name, preview).await
}

async fn preview_at(
    api: TestApi,
    name: &str,
    preview: Option<Result<DrainPreview, NoPreview>>,
) -> (u16, Value) {
    let drains = preview.map(|preview| DrainPreviews::new(Cluster(preview))).unwrap_or_default();
    let options = Options { drains, ..Options::default() };
    let router = router(api.site.clone(), api.history.clone(), Authenticator::default(), &options);
    let api = TestApi { router, ..api };
    api.call(&format!("GET /v1/state/os-upgrade/hosts/{name}/drain-preview"), "").await
}

#[tokio::test]
async fn drains_are_previewed() {
    let NodeWait::Pods { pods: Pods { first: blocked, .. } } = waits_for_pods() else { panic!() };
    let named = |name: &str, has_empty_dir| PodName {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        owner: None,
        is_bare: true,
        has_empty_dir,
    };
    let found = DrainPreview {
        evicted: vec![named("web-1", false), named("web-2", true)],
        blocked: blocked[..1].to_vec(),
        ..DrainPreview::default()
    };
    let web = json!([
        { "namespace": "shop", "name": "web-1", "bare": true },
        { "namespace": "shop", "name": "web-2", "bare": true, "empty-dir": true },
    ]);
    let db = json!({
        "namespace": "shop", "name": "db-0", "owner": "StatefulSet/db", "obstacle": "budget",
        "text": "is kept by the budget db", "since": "2026-11-21T05:00:01Z",
    });
    let expected = json!({
        "evicted": web, "deleted": [], "awaited": [], "blocked": [db], "own": [],
    });
    assert_eq!(preview("h01", Some(Ok(found.clone()))).await, (200, expected));
    assert_eq!(preview("h99", Some(Ok(found))).await, (404, error("there is no host \"h99\"")));
    let none = "the settings of this instance name no Kubernetes cluster";
    assert_eq!(preview("h01", None).await, (404, error(none)));
    for (why, status) in [
        (NoPreview::NoNode("h01 has two nodes".to_owned()), 404),
        (NoPreview::Unavailable("no answer".to_owned()), 503),
    ] {
        assert_eq!(preview("h01", Some(Err(why.clone()))).await, (status, error(&why.to_string())));
    }

    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let answer = api.call("GET /v1/state/os-upgrade/hosts/h01/drain-preview", "").await;
    assert_eq!(answer, (404, error("h01 is not a node of a Kubernetes cluster")));
}

/// A site of a cluster with the worker `h01` and the node `n1`, which the reboot command is to reboot, after `events`.
pub(super) fn rebooting(boot_id: Option<&str>, events: Vec<EntryEvent>) -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01"]);
    let seen = SeenNode { name: "n1".to_owned(), boot_id: Some("one".to_owned()), ..SeenNode::default() };
    site.view.nodes = Some([(host("n1"), seen)].into_iter().collect());
    let command = RebootCommandSettings { within: "5m".parse().unwrap(), checks_boot: false };
    let reboot = RebootSettings { command: Some(command), ..RebootSettings::default() };
    let settings = Settings { reboot, ..settings() };
    let mut records = vec![site.decide_record(&[Input::Settings(settings), put_config()]), site.fence()];
    let mut record = site.decide_record(&[Input::Tick]);
    let group = GroupName::new("default").unwrap();
    let event = |event| Fact::Queue(QueueFact::Reboot { index: 0, host: host("n1"), event });
    let begins = [
        Fact::Queue(QueueFact::RebootsQueued {
            hosts: vec![host("n1")],
            actor: "anna".to_owned(),
            reason: None,
            window: None,
        }),
        event(EntryEvent::Started { group, provider: LockProvider::Embedded, drain: true }),
        event(EntryEvent::AttemptDue { node: "n1".to_owned(), boot_id: boot_id.map(ToOwned::to_owned) }),
        event(EntryEvent::AttemptBegan),
    ];
    for fact in begins.into_iter().chain(events.into_iter().map(event)) {
        site.state.apply(site.now, &fact).unwrap();
        record.record.facts.push(fact);
    }
    records.push(record);
    (site, records)
}

/// Nothing frees the slot and ends the cordon of a node without a worker but an operator, who has to see them and how.
#[tokio::test]
async fn node_that_was_given_up_is_shown_and_freed() {
    let given_up = EntryEvent::GivenUp { actor: "anna".to_owned(), reason: "burnt".to_owned() };
    let (site, records) = rebooting(Some("one"), vec![EntryEvent::AttemptSucceeded, given_up]);
    let since = os_upgrade_protocol::time::format(site.now);
    let api = TestApi::new(site, &records).await;
    let (_, hosts) = api.call("GET /v1/state/os-upgrade/hosts?keys=true", "").await;
    assert_eq!(hosts, json!(["h01", "n1"]));
    let node = json_of(&api, "n1").await;
    let slot = json!({"group": "default", "since": since, "entry": "0", "kept": true});
    assert_eq!((&node["without-worker"], &node["slot"]), (&json!(true), &slot));
    assert_eq!(node["node"], json!({"stage": "checking", "since": since, "kept": true}));
    let why = sentence(&node);
    let expected = format!(
        "it has held a slot of group default for entry 0 of the reboot queue since {since}; `os-upgrade lock release \
         --group=default --id=n1 --reason TEXT` releases it; its node stays cordoned, because its host failed or was given up; \
         `os-upgrade hosts uncordon --reason=TEXT n1` ends that; no worker has announced itself on it"
    );
    assert_eq!(why, expected);
    let (_, state) = api.call("GET /v1/state/os-upgrade?fields=hosts/hostname,hosts/node/kept", "").await;
    assert_eq!(state["hosts"][1], json!({"hostname": "n1", "node": {"kept": true}}));

    let about = json!({"group": "default", "id": "n1", "reason": "replaced"}).to_string();
    assert_eq!(api.call("POST /v1/state/fleet-lock/release", &about).await.0, 204);
    let uncordon = json!({"host": "n1", "reason": "replaced"}).to_string();
    assert_eq!(api.call(UNCORDON, &uncordon).await.0, 204);
    let node = shown(&api, "n1").await;
    assert_eq!((node.slot.is_none(), node.node.unwrap().stage.as_str()), (true, "uncordoning"));
    assert!(!shown(&api, "h01").await.without_worker);
}

/// An operator is needed where the command failed, and where nobody knows whether it did and it is not run again.
#[tokio::test]
async fn reboots_that_wait_for_an_operator_in_metrics() {
    let failed = || EntryEvent::Failed {
        reason: Reason::RebootCommandFailed { detail: "no".to_owned(), output: String::new() },
    };
    let unknown = || EntryEvent::AttemptUnknown {
        reason: Reason::RebootUnknown { detail: "killed".to_owned(), output: String::new() },
    };
    for (boot_id, event, expected) in [
        (Some("one"), failed(), 1),
        (None, unknown(), 1),
        // It is run again.
        (Some("one"), unknown(), 0),
        (Some("one"), EntryEvent::AttemptSucceeded, 0),
    ] {
        let (site, records) = rebooting(boot_id, vec![event.clone()]);
        let text = metrics(&TestApi::new(site, &records).await).await;
        assert_eq!(value(&text, "os_upgrade_reboot_queue_failed"), expected, "{boot_id:?} {event:?}");
    }
}

/// A node that has no worker can be in the reboot queue.
#[tokio::test]
async fn drain_of_a_node_without_a_worker_is_previewed() {
    let (mut site, records) = draining();
    site.view.nodes.get_or_insert_default().insert(host("h08"), SeenNode::default());
    let api = TestApi::new(site, &records).await;
    let (status, _) = preview_at(api, "h08", Some(Ok(DrainPreview::default()))).await;
    assert_eq!(status, 200);
}
