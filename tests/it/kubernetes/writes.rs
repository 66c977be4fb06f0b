//! Patches, preconditions, and the cordon.

use std::time::Duration;

use harness::wait::{eventually, within};
use serde_json::{Value, json};

use super::api::{JSON_PATCH, MERGE};
use super::cluster::{Cluster, version};

fn cordon(version: Option<&Value>) -> Value {
    let mut patch =
        json!({ "metadata": { "annotations": { "owner": "us" } }, "spec": { "unschedulable": true } });
    if let Some(version) = version {
        patch["metadata"]["resourceVersion"] = version.clone();
    }
    patch
}

#[tokio::test]
async fn version_is_a_precondition_of_a_merge_patch() {
    let cluster = Cluster::start().await;
    let before = cluster.api.get(&cluster.node()).await.expect(200);
    let stale = before["metadata"]["resourceVersion"].clone();
    let after = cluster.api.patch(MERGE, &cluster.node(), &cordon(Some(&stale))).await.expect(200);
    assert_eq!(after["spec"]["unschedulable"], true);
    assert!(version(&after) > version(&before));
    let message =
        cluster.api.patch(MERGE, &cluster.node(), &cordon(Some(&stale))).await.refused(409, "Conflict");
    assert_eq!(
        message,
        format!(
            "Operation cannot be fulfilled on nodes \"{}\": the object has been modified; please apply your changes to \
             the latest version and try again",
            cluster.node
        )
    );
}

#[tokio::test]
async fn patch_that_changes_nothing_makes_no_version() {
    let cluster = Cluster::start().await;
    cluster.api.patch(MERGE, &cluster.node(), &cordon(None)).await.expect(200);
    let tainted = await_taint(&cluster, true).await;
    let again = cluster.api.patch(MERGE, &cluster.node(), &cordon(None)).await.expect(200);
    assert_eq!(version(&again), version(&tainted));
}

/// Waits until a node has the taint of a cordon, or not. Returns the node.
async fn await_taint(cluster: &Cluster, is_there: bool) -> Value {
    eventually("the taint to follow", async || {
        let object = cluster.api.get(&cluster.node()).await.expect(200);
        let taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let is_ours = |taint: &Value| {
            taint["key"] == "node.kubernetes.io/unschedulable" && taint["effect"] == "NoSchedule"
        };
        (taints.iter().any(is_ours) == is_there).then_some(object)
    })
    .await
}

#[tokio::test]
async fn taint_follows_the_cordon() {
    let cluster = Cluster::start().await;
    cluster.api.patch(MERGE, &cluster.node(), &cordon(None)).await.expect(200);
    await_taint(&cluster, true).await;
    let uncordon =
        json!({ "spec": { "unschedulable": null }, "metadata": { "annotations": { "owner": null } } });
    cluster.api.patch(MERGE, &cluster.node(), &uncordon).await.expect(200);
    let object = await_taint(&cluster, false).await;
    assert_eq!(object["spec"].get("unschedulable"), None);
}

#[tokio::test]
async fn json_patch_tests_before_it_writes() {
    let cluster = Cluster::start().await;
    cluster.api.patch(MERGE, &cluster.node(), &cordon(None)).await.expect(200);
    let uncordon = |owner: &str| {
        json!([
            { "op": "test", "path": "/metadata/annotations/owner", "value": owner },
            { "op": "remove", "path": "/metadata/annotations/owner" },
            { "op": "remove", "path": "/spec/unschedulable" },
        ])
    };
    let before = await_taint(&cluster, true).await;
    for owner in ["them", ""] {
        let message =
            cluster.api.patch(JSON_PATCH, &cluster.node(), &uncordon(owner)).await.refused(422, "Invalid");
        assert_eq!(message, "the server rejected our request due to an error in our request");
    }
    assert_eq!(cluster.api.get(&cluster.node()).await.expect(200), before);
    cluster.api.patch(JSON_PATCH, &cluster.node(), &uncordon("us")).await.expect(200);
    // The path is no longer there.
    cluster.api.patch(JSON_PATCH, &cluster.node(), &uncordon("us")).await.refused(422, "Invalid");
}

#[tokio::test]
async fn json_patch_may_test_the_version() {
    let cluster = Cluster::start().await;
    let before = cluster.api.get(&cluster.node()).await.expect(200);
    let patch = |version: &Value| {
        json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": version },
            { "op": "add", "path": "/spec/unschedulable", "value": true },
        ])
    };
    let version = &before["metadata"]["resourceVersion"];
    cluster.api.patch(JSON_PATCH, &cluster.node(), &patch(version)).await.expect(200);
    cluster.api.patch(JSON_PATCH, &cluster.node(), &patch(version)).await.refused(422, "Invalid");
}

#[tokio::test]
async fn dry_run_of_a_patch_changes_nothing() {
    let cluster = Cluster::start().await;
    let before = cluster.api.get(&cluster.node()).await.expect(200);
    let path = format!("{}?dryRun=All", cluster.node());
    assert_eq!(
        cluster.api.patch(MERGE, &path, &cordon(None)).await.expect(200)["spec"]["unschedulable"],
        true
    );
    assert_eq!(cluster.api.get(&cluster.node()).await.expect(200), before);
}

#[tokio::test]
async fn status_is_written_apart() {
    let cluster = Cluster::start().await;
    let patch = json!({ "spec": { "unschedulable": true }, "status": { "phase": "odd" } });
    let after = cluster.api.patch(MERGE, &format!("{}/status", cluster.node()), &patch).await.expect(200);
    assert_eq!((after["spec"].get("unschedulable"), &after["status"]["phase"]), (None, &json!("odd")));
    let patch = json!({ "spec": { "unschedulable": true }, "status": { "phase": "other" } });
    let after = cluster.api.patch(MERGE, &cluster.node(), &patch).await.expect(200);
    assert_eq!((&after["spec"]["unschedulable"], &after["status"]["phase"]), (&json!(true), &json!("odd")));
}

#[tokio::test]
async fn replacement_keeps_identity() {
    let cluster = Cluster::start().await;
    let before = cluster.api.get(&cluster.node()).await.expect(200);
    let mut object = before.clone();
    object["spec"]["unschedulable"] = json!(true);
    object["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
    let after = cluster.api.put(&cluster.node(), &object).await.expect(200);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["creationTimestamp"], before["metadata"]["creationTimestamp"]);
    cluster.api.put(&cluster.node(), &object).await.refused(409, "Conflict");
}

#[tokio::test]
async fn names_are_taken_once() {
    let cluster = Cluster::start().await;
    let object = json!({ "metadata": { "name": cluster.node } });
    let message = cluster.api.post("/api/v1/nodes", &object).await.refused(409, "AlreadyExists");
    assert_eq!(message, format!("nodes \"{}\" already exists", cluster.node));
    let event = json!({
        "metadata": { "generateName": "drained-" }, "reason": "Drained",
        "involvedObject": { "kind": "Pod", "namespace": cluster.namespace },
    });
    let created = cluster.api.post(&cluster.collection("events"), &event).await.expect(201);
    assert!(created["metadata"]["name"].as_str().unwrap().starts_with("drained-"), "{created}");
    if cluster.fake().is_some() {
        cluster.api.post("/api/v1/namespaces/gone/events", &event).await.refused(404, "NotFound");
    }
}

#[tokio::test]
async fn pods_of_a_deleted_node_are_collected() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    cluster.api.delete(&cluster.node(), &json!({})).await.expect(200);
    match cluster.fake() {
        Some(server) => {
            cluster.api.get(&cluster.pod("a-0")).await.expect(200);
            server.collect_orphans();
        }
        // It was 58 s at a real server.
        None => {
            within(Duration::from_mins(3), "the pod to be collected", async || {
                let answer = cluster.api.get(&cluster.pod("a-0")).await;
                (answer.status == 404).then_some(())
            })
            .await;
        }
    }
    cluster.api.get(&cluster.pod("a-0")).await.refused(404, "NotFound");
}
