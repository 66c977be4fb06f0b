//! Who is refused, and how; and throttling.

use serde_json::json;

use harness::kubernetes::Fault;

use super::cluster::{Cluster, eviction};

#[tokio::test]
async fn no_token_is_forbidden() {
    let cluster = Cluster::start().await;
    let nobody = cluster.stranger(None);
    assert_eq!(
        nobody.get("/api/v1/nodes").await.refused(403, "Forbidden"),
        "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the \
         cluster scope"
    );
    // Which version it is, everybody may know.
    let version = nobody.get("/version").await.expect(200);
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."), "{version}");
    nobody.get("/apis").await.refused(403, "Forbidden");
}

#[tokio::test]
async fn wrong_token_is_unauthorized() {
    let cluster = Cluster::start().await;
    let nobody = cluster.stranger(Some("wrong"));
    assert_eq!(nobody.get("/api/v1/nodes").await.refused(401, "Unauthorized"), "Unauthorized");
}

#[tokio::test]
async fn missing_right_is_named() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create"] }]);
    let Some(bob) = cluster.user("bob", &rules) else { return };
    bob.get(&cluster.pod("a-0")).await.expect(200);
    // The right to create pods is none to evict them.
    let answer = bob
        .post(&format!("{}/eviction", cluster.pod("a-0")), &eviction(&cluster.namespace, "a-0", &json!({})))
        .await;
    assert_eq!(
        answer.refused(403, "Forbidden"),
        format!(
            "pods \"a-0\" is forbidden: User \"bob\" cannot create resource \"pods/eviction\" in API group \"\" in the \
             namespace \"{}\"",
            cluster.namespace
        )
    );
    let path = cluster.collection("poddisruptionbudgets");
    assert_eq!(
        bob.get(&path).await.refused(403, "Forbidden"),
        format!(
            "poddisruptionbudgets.policy is forbidden: User \"bob\" cannot list resource \"poddisruptionbudgets\" in API \
             group \"policy\" in the namespace \"{}\"",
            cluster.namespace
        )
    );
    assert_eq!(
        bob.get(&cluster.node()).await.json()["details"],
        json!({ "name": cluster.node, "kind": "nodes" })
    );
}

#[tokio::test]
async fn throttling_is_told_in_plain_text() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    let Some(server) = cluster.fake() else { return };
    server.plan(Fault::Throttled, "create", "pods/eviction", 1);
    let answer = cluster.evict("a-0", &json!({})).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, "1"));
    assert!(answer.header("content-type").starts_with("text/plain"), "{answer:?}");
    assert_eq!(answer.text.trim_end(), "Too many requests, please try again later.");
    cluster.evict("a-0", &json!({})).await.expect(201);
}
