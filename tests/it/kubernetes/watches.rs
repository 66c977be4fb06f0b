//! Watches.

use serde_json::json;

use super::api::{MERGE, Watch};
use super::cluster::{Cluster, version};

async fn watch(cluster: &Cluster, query: &str) -> Watch {
    cluster.api.watch(&format!("{}?watch=true&{query}", cluster.collection("pods"))).await
}

async fn current(cluster: &Cluster) -> u64 {
    version(&cluster.api.get("/api/v1/pods?limit=1").await.expect(200))
}

#[tokio::test]
async fn changes_arrive_in_order() {
    let cluster = Cluster::start().await;
    let start = current(&cluster).await;
    let mut watch = watch(&cluster, &format!("resourceVersion={start}")).await;
    let added = cluster.add("a-0", "a", "Running", true, json!({})).await;
    assert_eq!(watch.next_change().await.0, "ADDED");
    // Its status.
    assert_eq!(watch.next_change().await, ("MODIFIED".to_owned(), "a-0".to_owned(), version(&added)));
    let deleted =
        cluster.api.delete(&cluster.pod("a-0"), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    // A pod that goes at once is seen as it ends, too.
    let mut before = version(&added);
    for expected in ["MODIFIED", "DELETED"] {
        let (kind, name, last) = watch.next_change().await;
        assert_eq!((kind.as_str(), name.as_str()), (expected, "a-0"));
        assert!(last > before);
        before = last;
    }
    assert!(version(&deleted) <= before);
}

#[tokio::test]
async fn watch_without_version_begins_with_what_is() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 2).await;
    for query in ["", "resourceVersion=0"] {
        let mut watch = watch(&cluster, query).await;
        for name in ["a-0", "a-1"] {
            let (kind, found, _) = watch.next_change().await;
            assert_eq!((kind.as_str(), found.as_str()), ("ADDED", name), "{query}");
        }
    }
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let cluster = Cluster::start().await;
    let start = current(&cluster).await;
    let query = format!("labelSelector=app%3Da&resourceVersion={start}");
    let mut watch = watch(&cluster, &query).await;
    cluster.add("p", "b", "Running", true, json!({})).await;
    for (app, kind) in [("a", "ADDED"), ("b", "DELETED")] {
        let patch = json!({ "metadata": { "labels": { "app": app } } });
        let after = cluster.api.patch(MERGE, &cluster.pod("p"), &patch).await.expect(200);
        assert_eq!(watch.next_change().await, (kind.to_owned(), "p".to_owned(), version(&after)));
    }
}

#[tokio::test]
async fn too_old_a_version_is_told_within_the_watch() {
    let cluster = Cluster::start().await;
    let start = current(&cluster).await;
    cluster.add_pods("a", 1).await;
    let Some(server) = cluster.fake() else { return };
    server.compact();
    let mut watch = watch(&cluster, &format!("resourceVersion={start}")).await;
    let event = watch.next().await.unwrap();
    let status = &event["object"];
    assert_eq!((&event["type"], &status["kind"]), (&json!("ERROR"), &json!("Status")), "{event}");
    assert_eq!((&status["reason"], &status["code"]), (&json!("Expired"), &json!(410)), "{event}");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn watch_from_the_future_is_silent() {
    let cluster = Cluster::start().await;
    let start = current(&cluster).await;
    let mut future = watch(&cluster, &format!("resourceVersion={}", start + 1_000_000)).await;
    let mut present = watch(&cluster, &format!("resourceVersion={start}")).await;
    cluster.add_pods("a", 1).await;
    assert_eq!(present.next_change().await.0, "ADDED");
    assert!(future.is_silent().await);
}

#[tokio::test]
async fn bookmarks_come_if_asked_for() {
    let cluster = Cluster::start().await;
    let start = current(&cluster).await;
    let query = format!("resourceVersion={start}&allowWatchBookmarks=true");
    let mut watch = watch(&cluster, &query).await;
    // A change of another resource advances the version.
    let patch = json!({ "spec": { "unschedulable": true } });
    let after = cluster.api.patch(MERGE, &cluster.node(), &patch).await.expect(200);
    loop {
        let event = watch.next().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["kind"]),
            (&json!("BOOKMARK"), &json!("Pod")),
            "{event}"
        );
        if version(&event["object"]) >= version(&after) {
            break;
        }
    }
}

#[tokio::test]
async fn watches_end_when_asked_or_cut() {
    let cluster = Cluster::start().await;
    let start = current(&cluster).await;
    assert_eq!(
        watch(&cluster, &format!("resourceVersion={start}&timeoutSeconds=1")).await.next().await,
        None
    );
    // 0 stands for the time that the server chooses.
    let mut endless = watch(&cluster, &format!("resourceVersion={start}&timeoutSeconds=0")).await;
    cluster.add_pods("a", 1).await;
    assert_eq!(endless.next_change().await.0, "ADDED");
    let Some(server) = cluster.fake() else { return };
    let mut watch = watch(&cluster, &format!("resourceVersion={}", current(&cluster).await)).await;
    server.end_watches();
    assert_eq!(watch.next().await, None);
}
