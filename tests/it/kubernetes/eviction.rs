//! Evictions, and deletions of pods.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use futures::future::join_all;
use harness::wait::eventually;
use os_upgrade_test_kubernetes::resource::BUDGETS;
use serde_json::{Value, json};

use super::api::{Answer, MERGE};
use super::cluster::{Cluster, eviction};

/// The cause that a refusal by a budget gives.
#[track_caller]
fn budget_cause(answer: &Answer) -> String {
    let message = answer.refused(429, "TooManyRequests");
    assert_eq!(message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let causes = &answer.json()["details"]["causes"];
    assert_eq!(causes[0]["reason"], "DisruptionBudget", "{answer:?}");
    assert_eq!(causes.as_array().unwrap().len(), 1, "{answer:?}");
    causes[0]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn granted_eviction_is_a_success() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    let body = cluster.evict("a-0", &json!({})).await.expect(201);
    assert_eq!((&body["kind"], &body["status"]), (&json!("Status"), &json!("Success")));
}

#[tokio::test]
async fn wrong_uid_is_refused_and_spends_the_budget() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 2).await;
    assert_eq!(cluster.add_budget("a", &json!({ "minAvailable": 1 })).await["disruptionsAllowed"], 1);
    let answer = cluster.evict("a-0", &json!({ "preconditions": { "uid": "another" } })).await;
    let message = answer.refused(409, "Conflict");
    assert!(message.contains("the UID in the precondition (another) does not match"), "{message}");

    let status = cluster.status("a").await;
    assert_eq!(status["disruptionsAllowed"], 0, "{status}");
    assert!(status["disruptedPods"]["a-0"].is_string(), "{status}");
    // The controller follows.
    eventually("the pod to count as disrupted", async || {
        (cluster.status("a").await["currentHealthy"] == 1).then_some(())
    })
    .await;
    let cause = budget_cause(&cluster.evict("a-1", &json!({})).await);
    assert_eq!(cause, "The disruption budget a needs 1 healthy pods and has 1 currently");
    // The server's code says that this lasts two minutes.
    let Some(server) = cluster.fake() else { return };
    // The machine may be slow, too.
    server.skew_clock(TimeDelta::seconds(60));
    assert_eq!(cluster.status("a").await["disruptionsAllowed"], 0);
    server.skew_clock(TimeDelta::seconds(121));
    assert_eq!(cluster.status("a").await["disruptionsAllowed"], 1);
}

#[tokio::test]
async fn right_uid_is_accepted() {
    let cluster = Cluster::start().await;
    let created = cluster.add("a-0", "a", "Running", true, json!({})).await;
    let uid = &created["metadata"]["uid"];
    cluster.evict("a-0", &json!({ "preconditions": { "uid": uid } })).await.expect(201);
}

#[tokio::test]
async fn refusal_by_budget_names_it() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a2", 3).await;
    cluster.add_budget("a2", &json!({ "minAvailable": 3 })).await;
    let answer = cluster.evict("a2-0", &json!({})).await;
    assert_eq!(budget_cause(&answer), "The disruption budget a2 needs 3 healthy pods and has 3 currently");
    assert_eq!(answer.header("retry-after"), "");
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["details"].get("retryAfterSeconds"), None);
}

#[tokio::test]
async fn budget_without_current_status_refuses() {
    let cluster = Cluster::start().await;
    let Some(server) = cluster.fake() else { return };
    cluster.add_pods("a", 2).await;
    cluster.add_budget("a", &json!({ "minAvailable": 1 })).await;
    // A budget whose status is older than it, and one that has none yet.
    server.freeze_disruption_controller(true);
    let spec = json!({ "spec": { "minAvailable": 0 } });
    cluster.api.patch(MERGE, &cluster.budget("a"), &spec).await.expect(200);
    cluster.add_pods("b", 1).await;
    let object = json!({
        "metadata": { "name": "b" }, "spec": { "minAvailable": 0, "selector": { "matchLabels": { "app": "b" } } },
    });
    let path = cluster.collection("poddisruptionbudgets");
    cluster.api.post(&path, &object).await.expect(201);

    for name in ["a", "b"] {
        let answer = cluster.evict(&format!("{name}-0"), &json!({})).await;
        let cause = budget_cause(&answer);
        assert_eq!(cause, format!("The disruption budget {name} is still being processed by the server."));
        assert_eq!(answer.header("retry-after"), "10");
        assert_eq!(answer.json()["details"]["retryAfterSeconds"], 10);
    }
    server.freeze_disruption_controller(false);
    cluster.evict("a-0", &json!({})).await.expect(201);
}

#[tokio::test]
async fn concurrent_evictions_share_the_budget() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 10).await;
    assert_eq!(cluster.add_budget("a", &json!({ "minAvailable": 7 })).await["disruptionsAllowed"], 3);
    let names: Vec<String> = (0..10).map(|index| format!("a-{index}")).collect();
    let options = json!({});
    let answers = join_all(names.iter().map(|name| cluster.evict(name, &options))).await;
    let mut counts = BTreeMap::<u16, usize>::new();
    for answer in answers {
        *counts.entry(answer.status).or_default() += 1;
    }
    assert_eq!(counts, BTreeMap::from([(201, 3), (429, 7)]));
}

#[tokio::test]
async fn dry_run_spends_no_budget() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 4).await;
    cluster.add_budget("a", &json!({ "minAvailable": 3 })).await;
    for index in 0..4 {
        let name = format!("a-{index}");
        cluster.evict(&name, &json!({ "dryRun": ["All"] })).await.expect(201);
        let path = format!("{}/eviction?dryRun=All", cluster.pod(&name));
        cluster.api.post(&path, &eviction(&cluster.namespace, &name, &json!({}))).await.expect(201);
        assert_eq!(
            cluster.api.get(&cluster.pod(&name)).await.expect(200)["metadata"].get("deletionTimestamp"),
            None
        );
    }
    assert_eq!(cluster.status("a").await["disruptionsAllowed"], 1);
    cluster.evict("a-0", &json!({})).await.expect(201);
    budget_cause(&cluster.evict("a-1", &json!({ "dryRun": ["All"] })).await);
}

#[tokio::test]
async fn two_budgets_over_a_pod_are_an_error() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    cluster.add_budget("a", &json!({ "minAvailable": 0 })).await;
    let everything = json!({ "metadata": { "name": "all" }, "spec": { "minAvailable": 0, "selector": {} } });
    let path = cluster.collection("poddisruptionbudgets");
    cluster.api.post(&path, &everything).await.expect(201);
    let body = cluster.evict("a-0", &json!({})).await.expect(500);
    assert_eq!(
        body["message"],
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    );
}

#[tokio::test]
async fn relative_budgets_need_a_controller() {
    let cluster = Cluster::start().await;
    for (app, spec) in [("a", json!({ "maxUnavailable": 1 })), ("c", json!({ "minAvailable": "30%" }))] {
        cluster.add_pods(app, 3).await;
        let status = cluster.add_budget(app, &spec).await;
        assert_eq!(
            (&status["expectedPods"], &status["disruptionsAllowed"]),
            (&json!(0), &json!(0)),
            "{status}"
        );
        assert_eq!(status["conditions"][0]["reason"], "InsufficientPods", "{status}");
        let cause = budget_cause(&cluster.evict(&format!("{app}-0"), &json!({})).await);
        assert_eq!(cause, format!("The disruption budget {app} does not allow evicting pods currently"));
    }

    cluster.add_pods("b", 3).await;
    let status = cluster.add_budget("b", &json!({ "minAvailable": 2 })).await;
    assert_eq!((&status["expectedPods"], &status["disruptionsAllowed"]), (&json!(3), &json!(1)), "{status}");
}

#[tokio::test]
async fn owners_count_for_max_unavailable() {
    let cluster = Cluster::start().await;
    // Elsewhere, pods of an owner that is not there are collected.
    if cluster.fake().is_none() {
        return;
    }
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true });
    for index in 0..4 {
        let metadata = json!({ "ownerReferences": [owner] });
        cluster.add(&format!("a-{index}"), "a", "Running", true, metadata).await;
    }
    let status = cluster.add_budget("a", &json!({ "maxUnavailable": "30%" })).await;
    // 30 % of four pods, rounded up.
    assert_eq!((&status["expectedPods"], &status["disruptionsAllowed"]), (&json!(4), &json!(2)), "{status}");
    assert_eq!((&status["currentHealthy"], &status["desiredHealthy"]), (&json!(4), &json!(2)), "{status}");
}

#[tokio::test]
async fn budgets_that_cannot_be_computed_refuse() {
    let cluster = Cluster::start().await;
    let Some(server) = cluster.fake() else { return };
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": true });
    // While it selects no pod, its status can be computed.
    cluster.add_budget("a", &json!({ "maxUnavailable": 1 })).await;
    cluster.add("a-0", "a", "Running", true, json!({ "ownerReferences": [owner] })).await;
    let cause = budget_cause(&cluster.evict("a-0", &json!({})).await);
    let why = "daemonsets.apps does not implement the scale subresource";
    assert_eq!(
        cause,
        format!(
            "The disruption budget a does not allow evicting pods currently because it failed sync: {why}"
        )
    );
    // One that never was computed says something else.
    cluster.add("b-0", "b", "Running", true, json!({ "ownerReferences": [owner] })).await;
    server.add_budget(
        &cluster.namespace,
        "b",
        &json!({ "maxUnavailable": 1, "selector": { "matchLabels": { "app": "b" } } }),
    );
    let status = cluster.status("b").await;
    assert_eq!(status["conditions"][0]["message"], why, "{status}");
    let cause = budget_cause(&cluster.evict("b-0", &json!({})).await);
    assert_eq!(cause, "The disruption budget b is still being processed by the server.");

    // A number that no controller writes.
    server.freeze_disruption_controller(true);
    server
        .edit(BUDGETS, &cluster.namespace, "a", |budget| budget["status"]["disruptionsAllowed"] = json!(-1));
    let message = cluster.evict("a-0", &json!({})).await.refused(403, "Forbidden");
    assert!(message.ends_with("pdb disruptions allowed is negative"), "{message}");
}

#[tokio::test]
async fn pods_that_do_not_run_pass_an_empty_budget() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    cluster.add("pending", "a", "Pending", false, json!({})).await;
    cluster.add("succeeded", "a", "Succeeded", false, json!({})).await;
    cluster.add("failed", "a", "Failed", false, json!({})).await;
    assert_eq!(cluster.add_budget("a", &json!({ "minAvailable": 4 })).await["disruptionsAllowed"], 0);
    for name in ["pending", "succeeded", "failed"] {
        cluster.evict(name, &json!({})).await.expect(201);
    }
    budget_cause(&cluster.evict("a-0", &json!({})).await);
}

#[tokio::test]
async fn unready_pods_pass_by_policy() {
    // The policy, the wanted number of one ready pod, and the answers for an unready and the ready pod.
    for (policy, wanted, unready, ready) in [
        (None, 2, 429, 429),
        (None, 1, 201, 429),
        (Some("IfHealthyBudget"), 2, 429, 429),
        (Some("AlwaysAllow"), 2, 201, 429),
    ] {
        let cluster = Cluster::start().await;
        cluster.add("ready", "a", "Running", true, json!({})).await;
        cluster.add("unready", "a", "Running", false, json!({})).await;
        let mut spec = json!({ "minAvailable": wanted });
        if let Some(policy) = policy {
            spec["unhealthyPodEvictionPolicy"] = json!(policy);
        }
        cluster.add_budget("a", &spec).await;
        let answers = (
            cluster.evict("unready", &json!({})).await.status,
            cluster.evict("ready", &json!({})).await.status,
        );
        assert_eq!(answers, (unready, ready), "{policy:?} {wanted}");
    }
}

/// The grace period of a pod that is being deleted.
fn grace(pod: &Value) -> &Value {
    assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    &pod["metadata"]["deletionGracePeriodSeconds"]
}

#[tokio::test]
async fn terminating_pods_can_be_evicted_again() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    cluster.add_budget("a", &json!({ "minAvailable": 0 })).await;
    cluster.evict("a-0", &json!({})).await.expect(201);
    assert_eq!(*grace(&cluster.api.get(&cluster.pod("a-0")).await.expect(200)), 30);
    assert_eq!(cluster.status("a").await["disruptionsAllowed"], 0);
    cluster.evict("a-0", &json!({ "gracePeriodSeconds": 5 })).await.expect(201);
    assert_eq!(*grace(&cluster.api.get(&cluster.pod("a-0")).await.expect(200)), 5);
    // A longer one delays nothing.
    cluster.evict("a-0", &json!({ "gracePeriodSeconds": 60 })).await.expect(201);
    assert_eq!(*grace(&cluster.api.get(&cluster.pod("a-0")).await.expect(200)), 5);
}

#[tokio::test]
async fn finalizers_keep_a_pod() {
    let cluster = Cluster::start().await;
    // Nobody removes it. That of jobs is removed from pods that are no job's.
    let metadata = json!({ "finalizers": ["example.com/keep"] });
    cluster.add("job", "a", "Succeeded", false, metadata).await;
    cluster.evict("job", &json!({})).await.expect(201);
    assert_eq!(*grace(&cluster.api.get(&cluster.pod("job")).await.expect(200)), 0);
    let counted = json!({ "metadata": { "finalizers": null } });
    cluster.api.patch(MERGE, &cluster.pod("job"), &counted).await.expect(200);
    cluster.api.get(&cluster.pod("job")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn kubelet_confirms_deletions() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    cluster.evict("a-0", &json!({})).await.expect(201);
    // Without a kubelet it stays.
    cluster.api.get(&cluster.pod("a-0")).await.expect(200);
    cluster.end_pod("a-0").await;
    cluster.api.get(&cluster.pod("a-0")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn eviction_of_what_is_gone_is_not_found() {
    let cluster = Cluster::start().await;
    let message = cluster.evict("gone", &json!({})).await.refused(404, "NotFound");
    assert_eq!(message, "pods \"gone\" not found");
    // A namespace that is not there either.
    let gone = format!("{}-gone", cluster.namespace);
    let path = format!("/api/v1/namespaces/{gone}/pods/{}/eviction", cluster.namespace);
    let body = eviction(&gone, &cluster.namespace, &json!({}));
    cluster.api.post(&path, &body).await.refused(404, "NotFound");
}

#[tokio::test]
async fn recreated_pod_has_another_uid() {
    let cluster = Cluster::start().await;
    let first = cluster.add("db-0", "a", "Running", true, json!({})).await;
    cluster.api.delete(&cluster.pod("db-0"), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    cluster.add("db-0", "a", "Running", true, json!({})).await;
    let options = json!({ "preconditions": { "uid": first["metadata"]["uid"] } });
    cluster.evict("db-0", &options).await.refused(409, "Conflict");
}

#[tokio::test]
async fn eviction_must_name_its_pod() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    let path = format!("{}/eviction", cluster.pod("a-0"));
    let answer = cluster.api.post(&path, &eviction(&cluster.namespace, "b", &json!({}))).await;
    assert_eq!(answer.refused(400, "BadRequest"), "name in URL does not match name in Eviction object");
}

#[tokio::test]
async fn deletion_of_another_uid_is_refused() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    let message =
        cluster.api.delete(&cluster.pod("a-0"), &json!({ "preconditions": { "uid": "another" } })).await;
    let message = message.refused(409, "Conflict");
    assert!(message.contains("the UID in the precondition (another) does not match"), "{message}");
    cluster.api.get(&cluster.pod("a-0")).await.expect(200);
}

#[tokio::test]
async fn deletion_is_graceful() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 2).await;
    let dry = cluster.api.delete(&cluster.pod("a-0"), &json!({ "dryRun": ["All"] })).await.expect(200);
    assert_eq!(*grace(&dry), 30);
    assert_eq!(cluster.api.get(&cluster.pod("a-0")).await.json()["metadata"].get("deletionTimestamp"), None);
    let deleted =
        cluster.api.delete(&cluster.pod("a-0"), &json!({ "gracePeriodSeconds": 7 })).await.expect(200);
    assert_eq!(*grace(&deleted), 7);
    assert_eq!(*grace(&cluster.api.get(&cluster.pod("a-0")).await.expect(200)), 7);
    // Without a grace period it is gone at once, kubelet or not.
    for name in ["a-0", "a-1"] {
        cluster.api.delete(&cluster.pod(name), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
        cluster.api.get(&cluster.pod(name)).await.refused(404, "NotFound");
    }
}
