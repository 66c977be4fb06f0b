//! Who is refused, and how; and throttling.

use serde_json::json;

use harness::kubernetes::Fault;

use super::api::Api;
use super::cluster::{Cluster, NAMESPACE, NODE, eviction, node, pod};

#[tokio::test]
async fn no_token_is_forbidden() {
    let cluster = Cluster::start().await;
    let nobody = Api::new(&cluster.server.url, None);
    assert_eq!(
        nobody.get("/api/v1/nodes").await.refused(403, "Forbidden"),
        "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the \
         cluster scope"
    );
    // Which version it is, everybody may know.
    assert_eq!(nobody.get("/version").await.expect(200)["gitVersion"], "v1.36.2");
    nobody.get("/apis").await.refused(403, "Forbidden");
}

#[tokio::test]
async fn wrong_token_is_unauthorized() {
    let cluster = Cluster::start().await;
    let nobody = Api::new(&cluster.server.url, Some("wrong"));
    assert_eq!(nobody.get("/api/v1/nodes").await.refused(401, "Unauthorized"), "Unauthorized");
}

#[tokio::test]
async fn missing_right_is_named() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create"] }]);
    let bob = cluster.user("bob", &rules);
    bob.get(&pod("a-0")).await.expect(200);
    // The right to create pods is none to evict them.
    let answer = bob.post(&format!("{}/eviction", pod("a-0")), &eviction("a-0", &json!({}))).await;
    assert_eq!(
        answer.refused(403, "Forbidden"),
        "pods \"a-0\" is forbidden: User \"bob\" cannot create resource \"pods/eviction\" in API group \"\" in the \
         namespace \"shop\""
    );
    let path = format!("/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets");
    assert_eq!(
        bob.get(&path).await.refused(403, "Forbidden"),
        "poddisruptionbudgets.policy is forbidden: User \"bob\" cannot list resource \"poddisruptionbudgets\" in API \
         group \"policy\" in the namespace \"shop\""
    );
    assert_eq!(bob.get(&node(NODE)).await.json()["details"], json!({ "name": NODE, "kind": "nodes" }));
}

#[tokio::test]
async fn throttling_is_told_in_plain_text() {
    let cluster = Cluster::start().await;
    cluster.add_pods("a", 1).await;
    cluster.server.plan(Fault::Throttled, "create", "pods/eviction", 1);
    let answer = cluster.evict("a-0", &json!({})).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, "1"));
    assert!(answer.header("content-type").starts_with("text/plain"), "{answer:?}");
    assert_eq!(answer.text.trim_end(), "Too many requests, please try again later.");
    cluster.evict("a-0", &json!({})).await.expect(201);
}

#[tokio::test]
async fn unknown_paths_and_formats_are_refused() {
    let cluster = Cluster::start().await;
    cluster.api.get("/api/v1/services").await.refused(404, "NotFound");
    cluster.api.get(&format!("{}/log", pod("a-0"))).await.refused(404, "NotFound");
    let answer = cluster.api.patch("application/apply-patch+yaml", &node(NODE), &json!({})).await;
    answer.refused(415, "UnsupportedMediaType");
    cluster.api.delete("/api/v1/nodes", &json!({})).await.refused(405, "MethodNotAllowed");
}
