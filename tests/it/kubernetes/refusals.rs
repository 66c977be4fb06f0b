//! Who is refused, and how; and throttling.

use serde_json::{Value, json};

use harness::wait::eventually;
use os_upgrade_test_kubernetes::Fault;

use super::api::{JSON_PATCH, MERGE};
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
    let (bob, user) = cluster.account("bob", &rules).await;
    // The server takes a moment to see a role.
    eventually("the role to count", async || {
        (bob.get(&cluster.pod("a-0")).await.status == 200).then_some(())
    })
    .await;
    // The right to create pods is none to evict them.
    let answer = bob
        .post(&format!("{}/eviction", cluster.pod("a-0")), &eviction(&cluster.namespace, "a-0", &json!({})))
        .await;
    assert_eq!(
        answer.refused(403, "Forbidden"),
        format!(
            "pods \"a-0\" is forbidden: User \"{user}\" cannot create resource \"pods/eviction\" in API group \"\" in the \
             namespace \"{}\"",
            cluster.namespace
        )
    );
    let path = cluster.collection("poddisruptionbudgets");
    assert_eq!(
        bob.get(&path).await.refused(403, "Forbidden"),
        format!(
            "poddisruptionbudgets.policy is forbidden: User \"{user}\" cannot list resource \"poddisruptionbudgets\" in API \
             group \"policy\" in the namespace \"{}\"",
            cluster.namespace
        )
    );
    assert_eq!(
        bob.get(&cluster.node()).await.json()["details"],
        json!({ "name": cluster.node, "kind": "nodes" })
    );
}

/// What the answers to requests are that no client sends on purpose.
#[tokio::test]
async fn nonsense_is_told_apart() {
    let cluster = Cluster::start().await;
    let get = async |path: &str| cluster.api.get(path).await;
    for path in ["/nonsense", "/apis/odd.example.com/v1/things"] {
        let answer = get(path).await;
        assert_eq!((answer.status, answer.text.as_str()), (404, "404 page not found\n"), "{path}");
        assert!(answer.header("content-type").starts_with("text/plain"), "{answer:?}");
    }
    let no_resource = "the server could not find the requested resource";
    assert_eq!(get("/api/v1/things").await.refused(404, "NotFound"), no_resource);
    assert_eq!(get("/api/v1/things").await.json()["details"], json!({}));
    let bad_number = "strconv.ParseInt: parsing \"x\": invalid syntax";
    assert_eq!(get("/api/v1/nodes?limit=x").await.refused(400, "BadRequest"), bad_number);
    let message = get("/api/v1/nodes?resourceVersion=x").await.refused(400, "BadRequest");
    assert!(
        message.starts_with("invalid resource version: resourceVersion: Invalid value: \"x\""),
        "{message}"
    );
    let answer = cluster.api.post(&cluster.node(), &json!({})).await;
    let no_method = "the server does not allow this method on the requested resource";
    assert_eq!(answer.refused(405, "MethodNotAllowed"), no_method);

    let patch = async |kind: &str, patch: Value| cluster.api.patch(kind, &cluster.node(), &patch).await;
    let answer = patch("application/odd", json!({})).await;
    assert_eq!(answer.refused(415, "UnsupportedMediaType"), "415: Unsupported Media Type");
    let message = patch(MERGE, json!({ "metadata": { "name": "x" } })).await.refused(400, "BadRequest");
    assert!(
        message.starts_with("the name of the object (x) does not match the name on the URL"),
        "{message}"
    );
    let other_uid = json!({ "metadata": { "name": cluster.node, "uid": "x" } });
    let message = patch(MERGE, other_uid.clone()).await.refused(422, "Invalid");
    assert!(message.ends_with("metadata.uid: Invalid value: \"x\": field is immutable"), "{message}");
    let message = cluster.api.put(&cluster.node(), &other_uid).await.refused(409, "Conflict");
    assert!(
        message.contains("Precondition failed: UID in precondition: x, UID in object meta: "),
        "{message}"
    );
    patch(JSON_PATCH, json!({ "op": "remove" })).await.refused(400, "BadRequest");
    for operation in
        [json!({ "op": "odd", "path": "/spec" }), json!({ "op": "remove", "path": "/spec/nothing" })]
    {
        patch(JSON_PATCH, json!([operation])).await.refused(422, "Invalid");
    }
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
