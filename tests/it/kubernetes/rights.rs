//! The rights of the adapter: those that it uses, and what is said where one of them is missing.

use harness::kubernetes::access::Rules;
use harness::kubernetes::objects::Pod;
use harness::kubernetes::resource::BUDGETS;
use harness::wait::eventually;
use os_upgrade_adapters::kubernetes::drain::{DrainOutcome, DrainReport, Preview, Reason};
use os_upgrade_adapters::kubernetes::error::Error;
use os_upgrade_adapters::kubernetes::node;
use os_upgrade_adapters::kubernetes::rights::{
    DELETE_POD, EVICT_POD, GET_NODE, LIST_BUDGETS, LIST_NAMESPACES, LIST_PODS, RIGHTS, Right,
};
use serde_json::json;

use super::adapter::{Cluster, NODE, SITE, USER, claim, lasting, names, rules};
use super::manifests::granted;

/// All rights but one, which is there only within the namespace `default`.
fn only_in_default(right: Right) -> Rules {
    let others: Vec<Right> = RIGHTS.into_iter().filter(|other| *other != right).collect();
    let rule = json!([{ "apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb] }]);
    rules(&others).and(Rules::of_role("default", &rule))
}

/// A cluster with a pod `default/web` and a pod `shop/web` on the node.
async fn two_namespaces(protected: serde_json::Value) -> Cluster {
    let cluster = Cluster::start().await.protecting(Some(protected));
    cluster.server.add_namespace("shop", &json!({ "team": "shop" }));
    for namespace in ["default", "shop"] {
        let pod = Pod::new(namespace, "web").on(NODE);
        cluster.server.add_pod(&pod.owned_by("ReplicaSet", "web").label("app", "web"));
    }
    cluster
}

/// The pods that are left, by namespace, and why.
fn reasons(report: &DrainReport) -> Vec<(&str, &Reason)> {
    report.remaining.iter().map(|pod| (pod.pod.namespace.as_str(), &pod.reason)).collect()
}

fn lacks(reason: &Reason, missing: Right) -> bool {
    matches!(reason, Reason::MissingRight { right, detail }
        if *right == missing && detail.contains("in the namespace \"shop\""))
}

#[tokio::test]
async fn right_missing_in_a_namespace_blocks_its_pods() {
    let cluster = two_namespaces(json!({})).await;
    cluster.server.grant(USER, only_in_default(EVICT_POD));
    let preview = cluster.dry_run().await.unwrap();
    assert_eq!(names(&preview.blocked), ["web"]);
    let report = cluster.drain().await;
    assert_eq!((&report.outcome, report.evicted), (&DrainOutcome::Blocked, 0));
    let [("default", Reason::NotTried), ("shop", reason)] = reasons(&report)[..] else {
        panic!("{report:?}")
    };
    assert!(lacks(reason, EVICT_POD), "{reason:?}");
    assert_eq!(cluster.writes(), 0);
}

/// Rights may change while a drain is under way.
#[tokio::test]
async fn right_that_goes_away_is_waited_for() {
    let cluster = two_namespaces(json!({})).await;
    cluster.server.end_pods(NODE, false);
    cluster.add("late");
    let withdraw = async {
        eventually("an eviction", async || (!cluster.evictions().is_empty()).then_some(())).await;
        cluster.server.grant(USER, rules(&[GET_NODE, LIST_PODS, LIST_NAMESPACES]));
        cluster.server.add_pod(&Pod::new("shop", "more").on(NODE));
        eventually("a refusal", async || cluster.evictions().contains(&"more".to_owned()).then_some(()))
            .await;
        cluster.server.grant(USER, rules(&RIGHTS));
        cluster.server.end_pods(NODE, true);
    };
    let (report, ()) = tokio::join!(cluster.drain(), withdraw);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 4));
}

#[tokio::test]
async fn missing_right_to_delete_blocks_one_pod() {
    let cluster = two_namespaces(json!({ "matchLabels": { "team": "other" } })).await;
    cluster.server.grant(USER, only_in_default(DELETE_POD));
    for namespace in ["default", "shop"] {
        cluster.forbid(namespace, "web");
    }
    let report = cluster.drain_in_vain().await;
    assert_eq!((&report.outcome, report.evicted, report.deleted), (&DrainOutcome::TimedOut, 0, 1));
    let [("shop", reason)] = reasons(&report)[..] else { panic!("{report:?}") };
    assert!(lacks(reason, DELETE_POD), "{reason:?}");
}

/// The budget's refusal is the reason, whether or not its name can be found out.
#[tokio::test]
async fn missing_right_to_read_budgets_is_told() {
    let cluster = two_namespaces(json!({})).await;
    cluster.server.grant(USER, only_in_default(LIST_BUDGETS));
    for namespace in ["default", "shop"] {
        cluster.forbid(namespace, "web");
    }
    let report = cluster.drain().await;
    assert_eq!(report.outcome, DrainOutcome::Blocked);
    let [("default", first), ("shop", second)] = reasons(&report)[..] else { panic!("{report:?}") };
    assert!(
        matches!(first, Reason::Budget { budgets, unread: None, .. } if *budgets == ["web-budget"]),
        "{first:?}"
    );
    let Reason::Budget { budgets, message, unread: Some(Error::Forbidden { right: LIST_BUDGETS, .. }) } =
        second
    else {
        panic!("{second:?}")
    };
    assert_eq!(*budgets, [""; 0]);
    assert!(message.contains("web-budget"), "{message}");
}

/// What is on the node is not known without them.
#[tokio::test]
async fn missing_right_to_look_ends_a_drain() {
    for missing in [LIST_PODS, LIST_NAMESPACES] {
        let cluster = two_namespaces(json!({ "matchLabels": { "team": "shop" } })).await;
        let rights: Vec<Right> = RIGHTS.into_iter().filter(|right| *right != missing).collect();
        cluster.server.grant(USER, rules(&rights));
        let report = cluster.drain().await;
        let DrainOutcome::Unknown(Error::Forbidden { right, .. }) = &report.outcome else {
            panic!("{report:?}")
        };
        assert_eq!(*right, missing);
        assert_eq!(cluster.writes(), 0);
    }
}

/// A change of what is called is a change of the rights that administrators have to give.
#[tokio::test]
async fn used_rights_are_the_declared_ones() {
    let cluster = two_namespaces(json!({ "matchLabels": { "team": "shop" } })).await;
    // As an administrator grants them.
    cluster.server.grant(USER, Rules::of_cluster_role(&granted()));
    for namespace in ["shop", "default"] {
        cluster.forbid(namespace, "web");
    }
    let Preview { blocked, own } = cluster.dry_run().await.unwrap();
    assert_eq!((names(&blocked), own), (vec!["web"], vec![]));
    let permit = lasting();
    node::cordon(&cluster.client, NODE, &claim(), &permit).await.unwrap();
    cluster.server.remove(BUDGETS, "shop", "web-budget");
    let report = cluster.drainer().drain(NODE, &claim(), &permit).await;
    assert_eq!((report.outcome, report.evicted, report.deleted), (DrainOutcome::Drained, 1, 1));
    assert_eq!(node::marked(&cluster.client, SITE).await.unwrap().own.len(), 1);
    node::uncordon(&cluster.client, NODE, &claim(), &permit).await.unwrap();
    let text = |right: Right| (right.verb.to_owned(), right.group.to_owned(), right.resource.to_owned());
    assert_eq!(cluster.used(), RIGHTS.map(text).into());
}
