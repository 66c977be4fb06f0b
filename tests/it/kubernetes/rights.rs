//! The rights of the adapter: those that it uses, and what is said where one of them is missing.

use harness::wait::{PATIENCE, eventually};
use os_upgrade_adapters::kubernetes::rights::{
    CREATE_EVENT, DELETE_POD, EVICT_POD, GET_NODE, LIST_BUDGETS, LIST_NAMESPACES, LIST_PODS, PATCH_NODE,
    RIGHTS, Right,
};
use os_upgrade_kernel::{NodeOrder, NodeOutcome, PodObstacle};
use os_upgrade_test_kubernetes::resource::BUDGETS;
use os_upgrade_test_kubernetes::{Fault, Pod, Rules};
use serde_json::json;

use super::adapter::{
    Cluster, NODE, USER, carry_out, check, drain_on, evict, is_drained, left, names, rules,
};
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
fn obstacles(outcome: &NodeOutcome) -> Vec<(&str, &PodObstacle)> {
    left(outcome).iter().map(|pod| (pod.namespace.as_str(), &pod.obstacle)).collect()
}

/// Whether a right is missing in `shop`.
fn lacks(obstacle: &PodObstacle, missing: Right) -> bool {
    matches!(obstacle, PodObstacle::MissingRight { detail }
        if detail.starts_with(&missing.to_string()) && detail.contains("in the namespace \"shop\""))
}

#[tokio::test]
async fn right_missing_in_a_namespace_blocks_its_pods() {
    let cluster = two_namespaces(json!({})).await;
    cluster.server.grant(USER, only_in_default(EVICT_POD));
    assert_eq!(names(&cluster.preview().await.blocked), ["web"]);
    let outcome = cluster.drain().await;
    let [("shop", obstacle)] = obstacles(&outcome)[..] else { panic!("{outcome:?}") };
    assert!(lacks(obstacle, EVICT_POD), "{obstacle:?}");
    assert_eq!(cluster.pod_writes(), 0);
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
    let (outcome, ()) = tokio::join!(cluster.drain(), withdraw);
    assert!(is_drained(&outcome));
}

#[tokio::test]
async fn missing_right_to_delete_blocks_one_pod() {
    let cluster = two_namespaces(json!({ "matchLabels": { "team": "other" } })).await;
    cluster.server.grant(USER, only_in_default(DELETE_POD));
    for namespace in ["default", "shop"] {
        cluster.forbid(namespace, "web");
    }
    // The dry run finds it out, so that nothing is deleted in vain.
    assert_eq!(names(&cluster.preview().await.blocked), ["web"]);
    let outcome = cluster.drain().await;
    let [("shop", obstacle)] = obstacles(&outcome)[..] else { panic!("{outcome:?}") };
    assert!(lacks(obstacle, DELETE_POD), "{obstacle:?}");
    assert_eq!(cluster.pod_writes(), 0);
}

/// The budget's refusal is the reason, whether or not its name can be found out.
#[tokio::test]
async fn budget_is_named_without_the_right_to_read_it() {
    let cluster = two_namespaces(json!({})).await;
    cluster.server.grant(USER, only_in_default(LIST_BUDGETS));
    for namespace in ["default", "shop"] {
        cluster.forbid(namespace, "web");
    }
    let outcome = cluster.drain().await;
    let named = PodObstacle::Budget { budgets: vec!["web-budget".to_owned()] };
    let [("default", first), ("shop", PodObstacle::UnreadBudget { message })] = obstacles(&outcome)[..]
    else {
        panic!("{outcome:?}")
    };
    // The refusal says it itself.
    assert!(*first == named && message.contains("web-budget"), "{outcome:?}");
}

/// A policy of the cluster, or a plugin of the server, which refuses as if a right were missing.
#[tokio::test]
async fn denial_is_no_missing_right() {
    for fault in [Fault::DeniedByPolicy, Fault::DeniedByPlugin] {
        let cluster = two_namespaces(json!({})).await;
        cluster.server.plan(fault, "create", "pods/eviction", 1);
        let outcome = cluster.drain().await;
        let [(_, PodObstacle::Denied { detail })] = obstacles(&outcome)[..] else { panic!("{outcome:?}") };
        assert!(detail.contains("not on Fridays"), "{detail}");
    }
    let cluster = Cluster::start().await;
    cluster.server.plan(Fault::DeniedByPolicy, "patch", "nodes", 1);
    let outcome = cluster.drain().await;
    let NodeOutcome::Refused { detail } = &outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("not on Fridays") && !detail.contains("right"), "{detail}");
}

/// Where all namespaces are protected, no pod is deleted.
#[tokio::test]
async fn rights_that_are_not_used_are_not_missed() {
    for (protected, missing) in
        [(None, vec![]), (Some(json!({ "matchLabels": { "a": "b" } })), vec![DELETE_POD, LIST_NAMESPACES])]
    {
        let cluster = Cluster::start().await.protecting(protected);
        let optional = [DELETE_POD, LIST_NAMESPACES, CREATE_EVENT];
        let granted: Vec<Right> = RIGHTS.into_iter().filter(|right| !optional.contains(right)).collect();
        cluster.server.grant(USER, rules(&granted));
        assert_eq!(cluster.adapter().missing_rights().await.unwrap(), missing);
    }
}

/// What is on the node is not known without them, and it is not cordoned without the last one.
#[tokio::test]
async fn missing_right_is_a_refusal() {
    for missing in [GET_NODE, LIST_PODS, LIST_NAMESPACES, PATCH_NODE] {
        let cluster = two_namespaces(json!({ "matchLabels": { "team": "shop" } })).await;
        let rights: Vec<Right> = RIGHTS.into_iter().filter(|right| *right != missing).collect();
        cluster.server.grant(USER, rules(&rights));
        let outcome = cluster.drain().await;
        let NodeOutcome::Refused { detail } = &outcome else { panic!("{outcome:?}") };
        assert!(detail.contains(&missing.to_string()), "{detail}");
        assert_eq!(cluster.pod_writes(), 0);
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
    assert_eq!(names(&cluster.preview().await.blocked), ["web"]);
    let adapter = cluster.adapter();
    let outcome = carry_out(&adapter, check(false)).await;
    assert_eq!(names(left(&outcome)), ["web"]);
    cluster.server.remove(BUDGETS, "shop", "web-budget");
    assert!(is_drained(&drain_on(&adapter, PATIENCE).await));
    assert_eq!((cluster.evictions().len(), cluster.deletions().len()), (2, 1));
    assert!(adapter.nodes().await.unwrap().values().all(|node| node.mark.is_some()));
    assert!(is_drained(&carry_out(&adapter, evict(true)).await));
    assert_eq!(carry_out(&adapter, NodeOrder::Hold).await, NodeOutcome::Held);
    let uncordon = NodeOrder::Uncordon { ready: true, left: None, is_ours: false, takes_over: None };
    assert_eq!(carry_out(&adapter, uncordon).await, NodeOutcome::Uncordoned);
    let text = |right: Right| (right.verb.to_owned(), right.group.to_owned(), right.resource.to_owned());
    eventually("an event", async || cluster.calls("create", "events").pop()).await;
    assert_eq!(cluster.used(), RIGHTS.map(text).into());
}
