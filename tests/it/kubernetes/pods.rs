//! Pods that nothing brings back, and pods that are never evicted.

use harness::wait::PATIENCE;
use os_upgrade_adapters::cluster::NamedPod;
use os_upgrade_adapters::kubernetes::plan::Policy;
use os_upgrade_kernel::{NodeOutcome, PodObstacle};
use os_upgrade_test_kubernetes::Pod;
use os_upgrade_test_kubernetes::resource::PODS;
use serde_json::json;

use super::adapter::{Cluster, NODE, carry_out, check, drain_on, evict, is_drained, left, names, selector};

/// As kured's blocking pods: neither a budget nor a controller decides about them.
#[tokio::test]
async fn awaited_pods_are_neither_evicted_nor_deleted() {
    let mut cluster = Cluster::start().await;
    let protected = selector(json!({ "matchLabels": { "team": "other" } }));
    let awaited = selector(json!({ "matchLabels": { "wait": "yes" } }));
    cluster.config.policy = Policy::new(Some(protected), None).unwrap().waiting_for(Some(awaited)).unwrap();
    let awaited = |name: &str| Pod::new("default", name).on(NODE).label("wait", "yes");
    cluster.server.add_pod(&awaited("build"));
    cluster.server.add_pod(&awaited("done").phase("Succeeded"));
    cluster.add("web");
    assert_eq!(names(&cluster.preview().await.blocked), ["build"]);
    let outcome = cluster.drain().await;
    assert_eq!((names(left(&outcome)), &left(&outcome)[0].obstacle), (vec!["build"], &PodObstacle::Awaited));
    assert_eq!(cluster.pod_writes(), 0);

    cluster.server.edit(PODS, "default", "build", |pod| pod["status"]["phase"] = json!("Succeeded"));
    let adapter = cluster.adapter();
    assert_eq!(carry_out(&adapter, check(true)).await, NodeOutcome::Clear);
    // One that comes later is waited for, and holds up no other.
    cluster.server.add_pod(&awaited("late"));
    carry_out(&adapter, evict(true)).await;
    let outcome = carry_out(&adapter, evict(true)).await;
    assert_eq!((names(left(&outcome)), cluster.evictions()), (vec!["late"], vec!["web".to_owned()]));
    cluster.server.edit(PODS, "default", "late", |pod| pod["metadata"]["labels"] = json!({}));
    assert!(is_drained(&drain_on(&adapter, PATIENCE).await));
    assert!(cluster.is_there("build") && cluster.is_there("done") && !cluster.is_there("late"));
}

#[tokio::test]
async fn finalizer_that_keeps_a_pod_is_named() {
    let cluster = Cluster::start().await;
    cluster.server.add_pod(&Pod::new("default", "web").on(NODE).finalizer("example.com/wait"));
    let outcome = cluster.drain_in_vain().await;
    let expected = PodObstacle::Finalizers { finalizers: vec!["example.com/wait".to_owned()] };
    assert_eq!((names(left(&outcome)), &left(&outcome)[0].obstacle), (vec!["web"], &expected));
    cluster.server.edit(PODS, "default", "web", |pod| pod["metadata"]["finalizers"] = json!([]));
    assert!(is_drained(&cluster.drain().await));
}

#[tokio::test]
async fn preview_names_what_is_lost_with_a_pod() {
    let cluster = Cluster::start().await;
    let data = json!({ "name": "scratch", "emptyDir": {} });
    cluster.server.add_pod(&Pod::new("default", "shell").on(NODE));
    cluster.server.add_pod(&Pod::new("default", "web").on(NODE).owned_by("ReplicaSet", "web").volume(&data));
    let preview = cluster.preview().await;
    let losses = |pod: &NamedPod| (pod.name.clone(), pod.is_bare, pod.has_empty_dir);
    let losses: Vec<_> = preview.evicted.iter().map(losses).collect();
    assert_eq!(losses, [("shell".to_owned(), true, false), ("web".to_owned(), false, true)]);
}
