//! Lists: selectors, pages and versions.

use serde_json::{Value, json};

use super::cluster::{Cluster, version};

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn selectors_choose() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 2).await;
    cluster.add_pods("b", 1).await;
    cluster.add("elsewhere", "a", "Succeeded", false, json!({})).await;
    // Nobody assigns it to a node.
    let elsewhere = json!({
        "metadata": { "name": "here" },
        "spec": { "schedulerName": "nobody", "containers": [{ "name": "main", "image": "image" }] },
    });
    cluster.api.post(&cluster.collection("pods"), &elsewhere).await.expect(201);
    let node = &cluster.node;
    for (query, expected) in [
        (String::new(), vec!["a-0", "a-1", "b-0", "elsewhere", "here"]),
        ("labelSelector=app%3Da".to_owned(), vec!["a-0", "a-1", "elsewhere"]),
        ("labelSelector=app+notin+(a)".to_owned(), vec!["b-0", "here"]),
        ("labelSelector=!app".to_owned(), vec!["here"]),
        (format!("fieldSelector=spec.nodeName%3D{node}"), vec!["a-0", "a-1", "b-0", "elsewhere"]),
        (format!("fieldSelector=spec.nodeName%3D{node}&labelSelector=app%3Db"), vec!["b-0"]),
        (format!("fieldSelector=spec.nodeName!%3D{node}"), vec!["here"]),
        ("fieldSelector=metadata.name%3Da-1".to_owned(), vec!["a-1"]),
        ("fieldSelector=status.phase%3DSucceeded".to_owned(), vec!["elsewhere"]),
    ] {
        let list = cluster.api.get(&format!("{}?{query}", cluster.collection("pods"))).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
        assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PodList"), &json!("v1")));
    }
    // Of all namespaces, as a drain asks.
    let query = format!("fieldSelector=spec.nodeName%3D{node}&labelSelector=app%3Da");
    let list = cluster.api.get(&format!("/api/v1/pods?{query}")).await.expect(200);
    assert_eq!(names(&list), ["a-0", "a-1", "elsewhere"]);
    let message =
        cluster.api.get("/api/v1/nodes?fieldSelector=spec.odd%3D1").await.refused(400, "BadRequest");
    assert!(message.ends_with("field label not supported: spec.odd"), "{message}");
    cluster.api.get("/api/v1/pods?labelSelector=a+b").await.refused(400, "BadRequest");
    let budgets = cluster.api.get("/apis/policy/v1/poddisruptionbudgets").await.expect(200);
    assert_eq!(
        (&budgets["kind"], &budgets["apiVersion"]),
        (&json!("PodDisruptionBudgetList"), &json!("policy/v1"))
    );
}

/// The pods of the node, two a page.
async fn page(cluster: &Cluster, token: &str) -> super::api::Answer {
    let query = format!("fieldSelector=spec.nodeName%3D{}&limit=2&continue={token}", cluster.node);
    cluster.api.get(&format!("{}?{query}", cluster.collection("pods"))).await
}

fn token(page: &Value) -> &str {
    page["metadata"]["continue"].as_str().unwrap()
}

#[tokio::test]
async fn pages_show_one_moment() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 5).await;
    let first = page(&cluster, "").await.expect(200);
    assert_eq!(names(&first), ["a-0", "a-1"]);
    assert_eq!(first["metadata"].get("remainingItemCount"), None);
    cluster.api.delete(&cluster.pod("a-2"), &json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    cluster.add("a-9", "a", "Running", true, json!({})).await;
    let second = page(&cluster, token(&first)).await.expect(200);
    assert_eq!(names(&second), ["a-2", "a-3"]);
    let third = page(&cluster, token(&second)).await.expect(200);
    assert_eq!((names(&third), third["metadata"].get("continue")), (vec!["a-4"], None));
    assert_eq!(version(&third), version(&first));
    // Without a selector the rest is counted.
    let path = format!("{}?limit=2", cluster.collection("pods"));
    assert_eq!(cluster.api.get(&path).await.expect(200)["metadata"]["remainingItemCount"], 3);
}

#[tokio::test]
async fn nonsense_is_no_continue_token() {
    let cluster = Cluster::start().await;
    page(&cluster, "nonsense").await.refused(400, "BadRequest");
}

#[tokio::test]
async fn continue_tokens_outlive_compaction_or_expire() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 3).await;
    let first = page(&cluster, "").await.expect(200);
    let Some(server) = cluster.fake() else { return };
    server.compact();
    assert_eq!(names(&page(&cluster, token(&first)).await.expect(200)), ["a-2"]);
    server.expire_continue_tokens();
    let answer = page(&cluster, token(&first)).await;
    answer.refused(410, "Expired");
    // The answer has a token for the rest as it is now.
    cluster.add("a-9", "a", "Running", true, json!({})).await;
    let answer = answer.json();
    assert_eq!(names(&page(&cluster, token(&answer)).await.expect(200)), ["a-2", "a-9"]);
}

#[tokio::test]
async fn version_of_the_future_times_out() {
    let cluster = Cluster::start().await;
    let current = version(&cluster.api.get("/api/v1/nodes").await.expect(200));
    for path in ["/api/v1/nodes".to_owned(), cluster.node()] {
        let answer = cluster.api.get(&format!("{path}?resourceVersion={}", current + 1_000_000)).await;
        answer.refused(504, "Timeout");
        let details = &answer.json()["details"];
        assert_eq!(details["causes"][0]["reason"], "ResourceVersionTooLarge", "{answer:?}");
        assert_eq!((answer.header("retry-after"), &details["retryAfterSeconds"]), ("1", &json!(1)));
    }
    cluster.api.get(&format!("/api/v1/nodes?resourceVersion={current}")).await.expect(200);
}
