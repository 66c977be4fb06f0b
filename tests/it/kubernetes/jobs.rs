//! The jobs of the cluster at a server: what comes of each order. What a drain does with pods is in `drain`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::DateTime;
use os_upgrade_adapters::Adapters;
use os_upgrade_adapters::cluster;
use os_upgrade_adapters::kubernetes::client::Access;
use os_upgrade_adapters::kubernetes::mark::ANNOTATION;
use os_upgrade_kernel::{
    Job, JobDone, NoAnswer, NodeFence, NodeJob, NodeOrder, NodeOutcome, SeenMark, SeenNode,
};
use os_upgrade_protocol::HostName;
use os_upgrade_settings::NodeFrom;
use os_upgrade_shell::fleet_lock::RetryAfter;
use os_upgrade_test_kubernetes::Fault;
use os_upgrade_test_kubernetes::resource::NODES;
use serde_json::{Value, json};

use super::adapter::{
    Cluster, NODE, OWNER, SITE, USER, carry_out, check, evict, fence, host, is_drained, job, left, names,
    outcome, owner, rules,
};

const UNCORDON: NodeOrder =
    NodeOrder::Uncordon { ready: false, left: None, is_ours: false, takes_over: None };

fn after_boot(left: Option<&str>) -> NodeOrder {
    NodeOrder::Uncordon { ready: true, left: left.map(str::to_owned), is_ours: false, takes_over: None }
}

/// The text of a mark.
fn mark(site: &str, fence: NodeFence) -> String {
    let mark =
        json!({ "site": site, "owner": OWNER, "host": NODE, "fence": fence, "wasUnschedulable": false });
    mark.to_string()
}

fn refusal(outcome: NodeOutcome) -> String {
    let NodeOutcome::Refused { detail } = outcome else { panic!("not refused: {outcome:?}") };
    detail
}

fn lost(outcome: NodeOutcome) -> String {
    let NodeOutcome::CordonLost { detail } = outcome else { panic!("not lost: {outcome:?}") };
    detail
}

impl Cluster {
    /// Gives a node this mark, or takes it away, and lets it take pods or not.
    fn set_node(&self, node: &str, mark: Option<&str>, is_unschedulable: bool) {
        self.server.edit(NODES, "", node, |node| {
            node["metadata"]["annotations"] = mark.map_or(json!({}), |mark| json!({ ANNOTATION: mark }));
            node["spec"]["unschedulable"] = json!(is_unschedulable);
        });
    }

    /// Sets a label of a node, or takes it away.
    fn label(&self, node: &str, key: &str, value: Option<&str>) {
        self.server.edit(NODES, "", node, |node| match value {
            Some(value) => node["metadata"]["labels"][key] = json!(value),
            None => node["metadata"]["labels"] = json!({}),
        });
    }

    fn is_cordoned(&self, node: &str) -> bool {
        let node = self.server.object(NODES, "", node).unwrap();
        assert_eq!(
            node["spec"]["unschedulable"] == json!(true),
            node["metadata"]["annotations"][ANNOTATION].is_string()
        );
        node["spec"]["unschedulable"] == json!(true)
    }

    fn boot_id(&self) -> String {
        self.node()["status"]["nodeInfo"]["bootID"].as_str().unwrap().to_owned()
    }

    fn sequence(&self) -> Value {
        let text = self.node()["metadata"]["annotations"][ANNOTATION].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&text).unwrap()["fence"]["sequence"].clone()
    }
}

#[tokio::test]
async fn empty_node_is_cordoned_and_drained() {
    for order in [check, evict] {
        let cluster = Cluster::start().await;
        let drained = NodeOutcome::Drained { boot_id: Some(cluster.boot_id()) };
        assert_eq!(carry_out(&cluster.adapter(), order(false)).await, drained);
        assert!(cluster.is_cordoned(NODE));
        // The cordon is found, and nothing is written.
        let writes = cluster.writes();
        assert_eq!(carry_out(&cluster.adapter(), order(true)).await, drained);
        assert_eq!(cluster.writes(), writes);
    }
}

#[tokio::test]
async fn lost_cordon_is_not_made_anew() {
    let (ours, theirs) = (mark(SITE, fence(7)), mark("there", fence(1)));
    for (mark, is_unschedulable, expected) in [
        (Some(ours.as_str()), false, "schedulable"),
        (None, true, "mark"),
        (None, false, "mark"),
        (Some(theirs.as_str()), true, "there"),
        (Some("odd"), true, "read"),
    ] {
        for order in [check(true), evict(true)] {
            let cluster = Cluster::start().await;
            cluster.add("web");
            cluster.set_node(NODE, mark, is_unschedulable);
            let detail = lost(carry_out(&cluster.adapter(), order).await);
            assert!(detail.contains(expected) && detail.contains(&format!("node {NODE}")), "{detail}");
            assert_eq!((cluster.writes(), cluster.calls("list", "pods").len()), (0, 0));
        }
    }
}

#[tokio::test]
async fn cordon_takes_over_what_is_the_sites() {
    let earlier = mark(SITE, fence(3));
    // Without a cordon before, somebody's uncordon is overridden; with one, only the fence is rewritten.
    for (order, is_unschedulable) in [(check(false), false), (check(true), true), (evict(true), true)] {
        let cluster = Cluster::start().await;
        cluster.set_node(NODE, Some(&earlier), is_unschedulable);
        assert!(is_drained(&carry_out(&cluster.adapter(), order).await));
        assert!(cluster.is_cordoned(NODE));
        assert_eq!((cluster.sequence(), cluster.writes()), (json!(7), 1));
    }
}

#[tokio::test]
async fn what_is_not_the_sites_is_refused() {
    let (later, theirs) = (mark(SITE, NodeFence { restored: 1, sequence: 1 }), mark("there", fence(1)));
    let all = [check(false), evict(false), NodeOrder::Hold, UNCORDON];
    for order in &all {
        let cluster = Cluster::start().await;
        cluster.set_node(NODE, Some(&later), true);
        let before = cluster.node();
        let superseded = NodeOutcome::Superseded { fence: NodeFence { restored: 1, sequence: 1 } };
        assert_eq!(carry_out(&cluster.adapter(), order.clone()).await, superseded);
        assert_eq!((cluster.writes(), cluster.node()), (0, before));
    }
    for (mark, orders, expected) in [("odd", &all[..], ANNOTATION), (theirs.as_str(), &all[..2], "there")] {
        for order in orders {
            let cluster = Cluster::start().await;
            cluster.add("web");
            cluster.set_node(NODE, Some(mark), true);
            let before = cluster.node();
            let detail = refusal(carry_out(&cluster.adapter(), order.clone()).await);
            assert!(detail.contains(expected), "{order:?} {detail}");
            assert_eq!((cluster.writes(), cluster.node()), (0, before));
        }
    }
    let cluster = Cluster::start().await;
    cluster.set_node(NODE, Some(&later), true);
    let outcome = carry_out(&cluster.adapter(), check(true)).await;
    assert!(matches!(outcome, NodeOutcome::Superseded { .. }), "{outcome:?}");
}

#[tokio::test]
async fn hold_writes_the_fence_where_there_is_a_mark() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    for is_unschedulable in [true, false] {
        cluster.set_node(NODE, Some(&mark(SITE, fence(3))), is_unschedulable);
        assert_eq!(carry_out(&adapter, NodeOrder::Hold).await, NodeOutcome::Held);
        assert_eq!(cluster.sequence(), json!(7));
    }
    cluster.server.forget_calls();
    let theirs = mark("there", fence(1));
    for (mark, held) in [
        (Some(mark(SITE, fence(7))), NodeOutcome::Held),
        (Some(theirs), NodeOutcome::Unmarked),
        (None, NodeOutcome::Unmarked),
    ] {
        cluster.set_node(NODE, mark.as_deref(), true);
        assert_eq!(carry_out(&adapter, NodeOrder::Hold).await, held);
    }
    cluster.server.remove(NODES, "", NODE);
    assert_eq!(carry_out(&adapter, NodeOrder::Hold).await, NodeOutcome::Unmarked);
    assert_eq!(cluster.writes(), 0);
}

/// What the mark says of the time before is journaled, because somebody may remove the mark.
#[tokio::test]
async fn administrators_cordon_is_told() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    cluster.set_node(NODE, None, true);
    for order in [check(false), check(true), evict(true)] {
        let outcome = carry_out(&adapter, order).await;
        let NodeOutcome::FoundUnschedulable { outcome } = outcome else { panic!("{outcome:?}") };
        assert!(is_drained(&outcome), "{outcome:?}");
    }
    let held = NodeOutcome::FoundUnschedulable { outcome: Box::new(NodeOutcome::Held) };
    assert_eq!(carry_out(&adapter, NodeOrder::Hold).await, held);
}

#[tokio::test]
async fn cordon_ends_without_its_mark() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    let uncordon = |is_ours| NodeOrder::Uncordon { ready: false, left: None, is_ours, takes_over: None };
    for is_ours in [false, true] {
        assert!(is_drained(&carry_out(&adapter, check(false)).await));
        cluster.set_node(NODE, None, true);
        assert_eq!(carry_out(&adapter, uncordon(is_ours)).await, NodeOutcome::Uncordoned);
        assert_eq!(cluster.node()["spec"]["unschedulable"] == json!(true), !is_ours);
        cluster.set_node(NODE, None, false);
    }
}

/// The outcome of an uncordon does not reach the journal, so that it is repeated.
#[tokio::test]
async fn repeated_uncordon_leaves_an_administrators_cordon() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    let uncordon = || NodeOrder::Uncordon { ready: false, left: None, is_ours: true, takes_over: None };
    assert!(is_drained(&carry_out(&adapter, check(false)).await));
    assert_eq!(carry_out(&adapter, uncordon()).await, NodeOutcome::Uncordoned);
    cluster.set_node(NODE, None, true);
    assert_eq!(carry_out(&adapter, uncordon()).await, NodeOutcome::Uncordoned);
    assert_eq!(cluster.node()["spec"]["unschedulable"], json!(true));
}

/// Somebody removes the mark alone before the node is looked at once more.
#[tokio::test]
async fn recheck_without_the_mark_does_not_keep_the_cordon() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    assert!(is_drained(&carry_out(&adapter, check(false)).await));
    cluster.set_node(NODE, None, true);
    let recheck = NodeOrder::Evict { owner: owner(), is_cordoned: false, is_ours: true };
    assert!(is_drained(&carry_out(&adapter, recheck).await));
    assert_eq!(carry_out(&adapter, UNCORDON).await, NodeOutcome::Uncordoned);
    assert_ne!(cluster.node()["spec"]["unschedulable"], json!(true));
}

/// A site that was set up anew comes upon marks of its earlier journal.
#[tokio::test]
async fn mark_of_an_earlier_journal_is_known_by_it() {
    let cluster = Cluster::start().await;
    let of_journal = |secs| cluster.adapter().for_journal(DateTime::from_timestamp(secs, 5).unwrap());
    assert!(is_drained(&carry_out(&of_journal(1), check(false)).await));
    let seen = async |secs| of_journal(secs).nodes().await.unwrap()[&host()].mark.unwrap();
    assert_eq!(seen(1).await, SeenMark { fence: fence(7), is_of_other_journal: false });
    assert_eq!(seen(2).await, SeenMark { fence: fence(7), is_of_other_journal: true });
    let superseded = NodeOutcome::Superseded { fence: fence(7) };
    assert_eq!(carry_out(&of_journal(2), UNCORDON).await, superseded);
    assert_eq!(carry_out(&of_journal(1), UNCORDON).await, NodeOutcome::Uncordoned);
}

#[tokio::test]
async fn mark_of_another_journal_is_taken_over() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    cluster.set_node(NODE, Some(&mark(SITE, fence(900))), true);
    let uncordon = |sequence| NodeOrder::Uncordon {
        ready: false,
        left: None,
        is_ours: false,
        takes_over: Some(fence(sequence)),
    };
    let superseded = NodeOutcome::Superseded { fence: fence(900) };
    assert_eq!(carry_out(&adapter, uncordon(800)).await, superseded);
    assert_eq!(carry_out(&adapter, uncordon(900)).await, NodeOutcome::Uncordoned);
    assert!(!cluster.is_cordoned(NODE));
}

#[tokio::test]
async fn uncordon_leaves_the_node_as_it_was() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    let before = cluster.node()["spec"].clone();
    assert!(is_drained(&carry_out(&adapter, check(false)).await));
    assert_eq!(carry_out(&adapter, UNCORDON).await, NodeOutcome::Uncordoned);
    assert_eq!((cluster.is_cordoned(NODE), &cluster.node()["spec"]), (false, &before));
    // There is nothing to be undone on these.
    let writes = cluster.writes();
    let theirs = mark("there", fence(1));
    for mark in [None, Some(theirs.as_str())] {
        cluster.set_node(NODE, mark, true);
        assert_eq!(carry_out(&adapter, UNCORDON).await, NodeOutcome::Uncordoned);
    }
    assert_eq!(cluster.writes(), writes);
    assert_eq!(cluster.node()["spec"]["unschedulable"], json!(true));
}

#[tokio::test]
async fn node_is_ready_only_in_another_boot() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    let NodeOutcome::Drained { boot_id: Some(boot) } = carry_out(&adapter, check(false)).await else {
        panic!("not drained")
    };
    let writes = cluster.writes();
    let is_not_ready = async |left: Option<&str>| {
        assert_eq!(carry_out(&adapter, after_boot(left)).await, NodeOutcome::NotReady);
        assert_eq!(cluster.writes(), writes);
    };
    is_not_ready(Some(&boot)).await;
    cluster.server.stop_kubelet(NODE);
    cluster.server.lose_node(NODE);
    is_not_ready(None).await;
    cluster.server.boot_node(NODE);
    is_not_ready(None).await;
    is_not_ready(Some(&boot)).await;
    cluster.server.ready_node(NODE);
    // A kubelet that does not say which boot it runs in has not left one.
    let next = cluster.boot_id();
    let set_boot = |boot: &str| {
        cluster.server.edit(NODES, "", NODE, |node| node["status"]["nodeInfo"]["bootID"] = json!(boot));
    };
    set_boot("");
    is_not_ready(Some(&boot)).await;
    set_boot(&next);
    assert_eq!(carry_out(&adapter, after_boot(Some(&boot))).await, NodeOutcome::Uncordoned);
    assert!(!cluster.is_cordoned(NODE));
}

#[tokio::test]
async fn node_that_is_gone_is_uncordoned_and_not_drained() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    cluster.server.remove(NODES, "", NODE);
    for order in [UNCORDON, after_boot(None), after_boot(Some("boot"))] {
        assert_eq!(carry_out(&adapter, order).await, NodeOutcome::Uncordoned);
    }
    for order in [check(false), check(true), evict(false), evict(true)] {
        let detail = refusal(carry_out(&adapter, order).await);
        assert!(detail.contains(NODE), "{detail}");
    }
}

#[tokio::test]
async fn deposed_leader_begins_nothing() {
    let cluster = Cluster::start().await;
    cluster.add("a");
    cluster.add("b");
    cluster.server.end_pods(NODE, false);
    let adapter = cluster.adapter();
    let report = adapter.carry_out(job(check(false)), || false).await;
    assert_eq!(report.done, JobDone::NotBegun(Job::Cluster(job(check(false)))));
    assert_eq!(cluster.server.calls(), []);

    // It may write for the first time after this many questions.
    let allowed = async |order: NodeOrder, times: usize| {
        let asked = AtomicUsize::new(0);
        adapter.carry_out(job(order), || asked.fetch_add(1, Ordering::Relaxed) < times).await.done
    };
    assert_eq!(allowed(check(false), 1).await, JobDone::NotBegun(Job::Cluster(job(check(false)))));
    assert_eq!(cluster.writes(), 0);
    assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
    assert_eq!(allowed(evict(true), 1).await, JobDone::NotBegun(Job::Cluster(job(evict(true)))));
    assert_eq!(cluster.pod_writes(), 0);
    // What was done is told, whatever follows.
    let done = allowed(evict(true), 2).await;
    let JobDone::Cluster(_, outcome) = &done else { panic!("{done:?}") };
    assert_eq!((names(left(outcome)), cluster.evictions()), (vec!["b", "a"], vec!["a".to_owned()]));
}

#[tokio::test]
async fn check_changes_nothing_but_the_node() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    assert_eq!(carry_out(&cluster.adapter(), check(false)).await, NodeOutcome::Clear);
    assert_eq!((cluster.writes(), cluster.pod_writes()), (1, 0));
}

#[tokio::test]
async fn lack_of_an_answer_is_told() {
    let cluster = Cluster::start().await;
    let adapter = cluster.adapter();
    let orders = [check(false), check(true), evict(false), evict(true), NodeOrder::Hold, UNCORDON];
    let retry_after = Some(RetryAfter::Server(Duration::from_secs(1)));
    for (fault, expected) in
        [(Fault::CutBefore, None), (Fault::Status(503), None), (Fault::Throttled, retry_after)]
    {
        // A change is tried three times, and then by whoever wants it.
        cluster.server.plan(fault, "get", "nodes", usize::MAX);
        let reports = orders.clone().map(|order| adapter.carry_out(job(order), || true));
        for report in futures::future::join_all(reports).await {
            assert_eq!(report.retry_after, expected);
            let outcome = outcome(report);
            assert!(
                matches!(&outcome, NodeOutcome::Unreachable { why: NoAnswer::Failed { .. } }),
                "{fault:?} {outcome:?}"
            );
        }
        cluster.server.heal();
    }
    drop(cluster);
    let outcome = carry_out(&adapter, after_boot(None)).await;
    assert!(matches!(&outcome, NodeOutcome::Unreachable { why: NoAnswer::Failed { .. } }), "{outcome:?}");
}

/// A wrong kubeconfig is an outcome, and may be corrected at any time.
#[tokio::test]
async fn client_is_made_once_it_can_be() {
    let cluster = Cluster::start().await;
    let Access::Kubeconfig { file, .. } = &cluster.config.access else { panic!("another access") };
    let right = std::fs::read(file).unwrap();
    std::fs::write(file, "odd").unwrap();
    let adapter = cluster.adapter();
    for order in [check(false), UNCORDON] {
        let outcome = carry_out(&adapter, order).await;
        let NodeOutcome::Unreachable { why: NoAnswer::NotSent { detail } } = &outcome else {
            panic!("{outcome:?}")
        };
        assert!(detail.contains(&file.display().to_string()), "{detail}");
    }
    assert!(matches!(adapter.nodes().await, Err(cluster::Failure::NoClient(_))));
    assert!(matches!(adapter.preview(&host()).await, Err(cluster::Failure::NoClient(_))));
    std::fs::write(file, right).unwrap();
    assert!(is_drained(&carry_out(&adapter, check(false)).await));
}

#[tokio::test]
async fn replaced_credentials_are_read() {
    let cluster = Cluster::start().await;
    let Access::Kubeconfig { file, .. } = &cluster.config.access else { panic!("another access") };
    let adapter = cluster.adapter();
    assert!(is_drained(&carry_out(&adapter, check(false)).await));
    let token = cluster.server.renew_token(USER);
    assert!(refusal(carry_out(&adapter, evict(true)).await).contains("credentials"));
    std::fs::write(file, cluster.server.kubeconfig(&token).to_string()).unwrap();
    // The client with the earlier ones is gone.
    assert!(is_drained(&carry_out(&adapter, evict(true)).await));
    cluster.server.grant(USER, rules(&[]));
    assert!(refusal(carry_out(&adapter, evict(true)).await).contains("get nodes"));
}

#[tokio::test]
async fn no_cluster_is_no_answer() {
    let report = Adapters::default().carry_out(Job::Cluster(job(check(false))), || true).await;
    assert_eq!(outcome(report), NodeOutcome::Unreachable { why: NoAnswer::NotConfigured });
    let cluster = Cluster::start().await;
    let adapters = Adapters { cluster: Some(cluster.adapter()), ..Adapters::default() };
    let report = adapters.carry_out(Job::Cluster(job(check(false))), || true).await;
    assert!(is_drained(&outcome(report)));
}

#[tokio::test]
async fn node_is_found_by_its_label() {
    let mut cluster = Cluster::start().await;
    cluster.server.add_node("m");
    cluster.config.node_from = NodeFrom::Label("example.org/host".to_owned());
    let adapter = cluster.adapter();
    let job = |order: NodeOrder| NodeJob { order, host: HostName::new("h1").unwrap(), fence: fence(7) };
    let carry_out = async |order| outcome(adapter.carry_out(job(order), || true).await);

    let detail = refusal(carry_out(check(false)).await);
    assert!(detail.contains("example.org/host=h1"), "{detail}");
    cluster.label(NODE, "example.org/host", Some("h1"));
    cluster.label("m", "example.org/host", Some("h2"));
    assert!(is_drained(&carry_out(check(false)).await));
    assert_eq!((cluster.is_cordoned(NODE), cluster.is_cordoned("m")), (true, false));
    cluster.label("m", "example.org/host", Some("h1"));
    let detail = refusal(carry_out(evict(true)).await);
    assert!(detail.contains("2 nodes") && detail.contains(NODE) && detail.contains('m'), "{detail}");

    // The mark says which one is cordoned, whatever becomes of the labels.
    assert_eq!(carry_out(NodeOrder::Hold).await, NodeOutcome::Held);
    cluster.label(NODE, "example.org/host", None);
    cluster.label("m", "example.org/host", None);
    assert_eq!(carry_out(UNCORDON).await, NodeOutcome::Uncordoned);
    assert!(!cluster.is_cordoned(NODE));
    assert_eq!(carry_out(UNCORDON).await, NodeOutcome::Uncordoned);
    assert_eq!(carry_out(NodeOrder::Hold).await, NodeOutcome::Unmarked);
    let preview = adapter.preview(&HostName::new("h1").unwrap()).await;
    assert!(matches!(preview, Err(cluster::Failure::NoNode { .. })), "{preview:?}");
}

/// A host's name may have a meaning in selectors.
#[tokio::test]
async fn label_has_to_be_the_hosts_name() {
    let mut cluster = Cluster::start().await;
    cluster.config.node_from = NodeFrom::Label("host".to_owned());
    cluster.label(NODE, "host", Some("a"));
    let adapter = cluster.adapter();
    for name in ["a,host=a", "a,host", "b,host!=b"] {
        let job = NodeJob { order: check(false), host: HostName::new(name).unwrap(), fence: fence(7) };
        refusal(outcome(adapter.carry_out(job, || true).await));
    }
    assert_eq!(cluster.writes(), 0);
}

#[tokio::test]
async fn node_is_found_by_a_mapping() {
    let mut cluster = Cluster::start().await;
    cluster.server.add_node("m");
    let host = HostName::new("h1").unwrap();
    cluster.config.node_from = NodeFrom::Mapping([(host.clone(), "m".to_owned())].into());
    let adapter = cluster.adapter();
    let job = NodeJob { order: check(false), host: host.clone(), fence: fence(7) };
    assert!(is_drained(&outcome(adapter.carry_out(job, || true).await)));
    assert_eq!((cluster.is_cordoned(NODE), cluster.is_cordoned("m")), (false, true));
    assert!(refusal(carry_out(&adapter, check(false)).await).contains(NODE));
    let nodes = adapter.nodes().await.unwrap();
    assert_eq!((nodes.len(), nodes[&host].mark.is_some()), (1, true));
}

#[tokio::test]
async fn nodes_of_hosts_are_seen() {
    let mut cluster = Cluster::start().await;
    for index in 0..300 {
        cluster.server.add_node(&format!("m-{index:03}"));
    }
    cluster.cordon().await;
    cluster.label(NODE, "role", Some("api-server"));
    cluster.set_node("m-001", Some(&mark("there", fence(1))), true);
    cluster.set_node("m-299", Some("odd"), true);
    cluster.server.lose_node("m-002");
    let adapter = cluster.adapter();
    let nodes = adapter.nodes().await.unwrap();
    assert_eq!(nodes.len(), 301);
    assert!(nodes.iter().all(|(host, node)| node.name == host.as_str() && node.boot_id.is_some()));
    let nameless = |node: &SeenNode| SeenNode { name: String::new(), boot_id: None, ..node.clone() };
    let seen = |name: &str| nameless(&nodes[&HostName::new(name).unwrap()]);
    let ready = SeenNode { is_ready: true, ..SeenNode::default() };
    let cordoned = SeenNode { is_unschedulable: true, ..ready.clone() };
    let ours = SeenNode {
        is_api_server: true,
        mark: Some(SeenMark { fence: fence(7), is_of_other_journal: false }),
        ..cordoned.clone()
    };
    assert_eq!(seen(NODE), ours);
    assert_eq!((seen("m-000"), seen("m-002")), (ready.clone(), SeenNode::default()));
    // What others have marked, or nobody knows who, is not the site's.
    assert_eq!((seen("m-001"), seen("m-299")), (cordoned.clone(), cordoned));

    // By labels: what several lay claim to is left out.
    cluster.config.node_from = NodeFrom::Label("host".to_owned());
    for (node, host) in [("m-000", "h0"), ("m-001", "h1"), ("m-002", "h1"), ("m-003", "")] {
        cluster.label(node, "host", Some(host));
    }
    let nodes = cluster.adapter().nodes().await.unwrap();
    let nodes = nodes.iter().map(|(host, node)| (host.as_str(), node.name.as_str(), nameless(node)));
    assert_eq!(nodes.collect::<Vec<_>>(), [("h0", "m-000", ready)]);
}
