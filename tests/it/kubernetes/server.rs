//! What a test can do to the server of the tests: faults, rights, kubelets, reboots, stale reads.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use harness::wait::eventually;
use os_upgrade_test_kubernetes::resource::{BUDGETS, LEASES, NODES, PODS};
use os_upgrade_test_kubernetes::{ApiServer, Call, Fault, Pod, Rules};
use serde_json::{Value, json};

use super::api::{Api, MERGE};
use super::cluster::eviction;

fn admin(server: &ApiServer) -> Api {
    Api::new(&server.url, Some(server.admin_token()))
}

/// The boot id of a node, and its condition.
fn boot(server: &ApiServer, name: &str) -> (String, String) {
    let node = server.object(NODES, "", name).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&node["status"]["nodeInfo"]["bootID"]), text(&node["status"]["conditions"][0]["status"]))
}

fn renewed(server: &ApiServer, node: &str) -> DateTime<Utc> {
    let lease = server.object(LEASES, "kube-node-lease", node).unwrap();
    lease["spec"]["renewTime"].as_str().unwrap().parse().unwrap()
}

const EVICTION: &str = "/api/v1/namespaces/default/pods/p/eviction";

fn evict_p() -> Value {
    eviction("default", "p", &json!({}))
}

#[tokio::test]
async fn faults_meet_the_calls_they_are_planned_for() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_node("n");
    server.plan(Fault::Status(500), "get", "nodes", 2);
    server.plan(Fault::Conflict, "patch", "*", 1);
    api.get("/api/v1/nodes").await.expect(200);
    for _ in 0..2 {
        api.get("/api/v1/nodes/n").await.refused(500, "InternalError");
    }
    api.get("/api/v1/nodes/n").await.expect(200);
    let cordon = json!({ "spec": { "unschedulable": true } });
    api.patch(MERGE, "/api/v1/nodes/n", &cordon).await.refused(409, "Conflict");
    assert_eq!(server.object(NODES, "", "n").unwrap()["spec"], json!({}));
    api.patch(MERGE, "/api/v1/nodes/n", &cordon).await.expect(200);
    server.plan(Fault::Status(403), "*", "*", usize::MAX);
    api.get("/api/v1/nodes").await.refused(403, "Forbidden");
    server.heal();
    api.get("/api/v1/nodes").await.expect(200);
}

#[tokio::test]
async fn connections_are_cut_before_or_after_the_write() {
    for (fault, is_done) in [(Fault::CutBefore, false), (Fault::CutAfter, true)] {
        let server = ApiServer::start().await;
        let api = admin(&server);
        server.add_pod(&Pod::new("default", "p"));
        server.plan(fault, "create", "pods/eviction", 1);
        assert!(api.try_post(EVICTION, &evict_p()).await.is_err());
        assert_eq!(server.object(PODS, "default", "p").is_none(), is_done, "{fault:?}");
    }
}

#[tokio::test]
async fn late_answers_follow_the_write() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_pod(&Pod::new("default", "p"));
    server.plan(Fault::LateAnswer(Duration::from_hours(1)), "create", "pods/eviction", 1);
    let request = tokio::spawn(async move { api.try_post(EVICTION, &evict_p()).await.is_ok() });
    eventually("the eviction", async || server.object(PODS, "default", "p").is_none().then_some(())).await;
    assert!(!request.is_finished());
    request.abort();

    // A slow one is not carried out once its client has gone.
    server.add_pod(&Pod::new("default", "p"));
    server.forget_calls();
    server.plan(Fault::Slow(Duration::from_hours(1)), "create", "pods/eviction", 1);
    let api = admin(&server);
    let request = tokio::spawn(async move { api.try_post(EVICTION, &evict_p()).await.is_ok() });
    eventually("the call", async || (!server.calls().is_empty()).then_some(())).await;
    request.abort();
    admin(&server).post(EVICTION, &evict_p()).await.expect(201);
}

#[tokio::test]
async fn expired_tokens_are_refused_until_renewed() {
    let server = ApiServer::start().await;
    let api = Api::new(&server.url, Some(&server.grant("us", Rules::all())));
    api.get("/api/v1/nodes").await.expect(200);
    let token = server.renew_token("us");
    for _ in 0..2 {
        api.get("/api/v1/nodes").await.refused(401, "Unauthorized");
    }
    Api::new(&server.url, Some(&token)).get("/api/v1/nodes").await.expect(200);
}

#[tokio::test]
async fn calls_can_be_compared_with_rights() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_pod(&Pod::new("default", "p"));
    api.post(EVICTION, &evict_p()).await.expect(201);
    api.get("/apis/policy/v1/poddisruptionbudgets?limit=1").await.expect(200);
    let call =
        |verb, group, resource, subresource: Option<&str>, namespace: Option<&str>, name: Option<&str>| {
            Call {
                user: "admin".to_owned(),
                verb,
                group,
                resource,
                subresource: subresource.map(str::to_owned),
                namespace: namespace.map(str::to_owned),
                name: name.map(str::to_owned),
                is_dry_run: false,
                field_selector: String::new(),
            }
        };
    let calls = server.calls();
    assert_eq!(
        calls,
        [
            call("create", "", "pods", Some("eviction"), Some("default"), Some("p")),
            call("list", "policy", "poddisruptionbudgets", None, None, None),
        ]
    );
    let evict = json!([{ "apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"] }]);
    let list = json!([{ "apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list"] }]);
    for (rules, allowed) in [
        (Rules::of_cluster_role(&evict), [true, false]),
        (Rules::of_role("default", &evict), [true, false]),
        (Rules::of_role("shop", &evict), [false, false]),
        (Rules::of_role("default", &list), [false, false]),
        (Rules::of_cluster_role(&list).and(Rules::of_role("default", &evict)), [true, true]),
    ] {
        assert_eq!(calls.iter().map(|call| rules.allow(call)).collect::<Vec<_>>(), allowed, "{rules:?}");
    }
}

#[tokio::test]
async fn kubelets_end_pods_or_keep_them() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_node("n");
    for name in ["ends", "stays", "held"] {
        let pod = Pod::new("default", name).on("n");
        server.add_pod(&if name == "held" { pod.finalizer("example.com/held") } else { pod });
    }
    let delete = async |name: &str| {
        api.delete(&format!("/api/v1/namespaces/default/pods/{name}"), &json!({})).await.expect(200);
        server.object(PODS, "default", name)
    };
    assert_eq!(delete("ends").await, None);
    let held = delete("held").await.unwrap();
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    server.edit(PODS, "default", "held", |pod| pod["metadata"]["finalizers"] = json!([]));
    assert_eq!(server.object(PODS, "default", "held"), None);
    server.end_pods("n", false);
    assert!(delete("stays").await.is_some());
    server.end_pods("n", true);
    assert_eq!(server.object(PODS, "default", "stays"), None);
}

/// The pods on a node, by name.
async fn pods_on(api: &Api, node: &str) -> Vec<String> {
    let list = api.get(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")).await.expect(200);
    let items = list["items"].as_array().unwrap().iter();
    items.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pods_come_back_as_their_owners_do() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_node("n");
    server.add_node("other");
    let on = |name: &str| Pod::new("default", name).on("n");
    server.add_pod(&on("static").mirror());
    server.add_pod(&on("agent-x").owned_by("DaemonSet", "agent"));
    server.add_pod(&on("db-0").owned_by("StatefulSet", "db"));
    server.add_pod(&on("web-x").owned_by("ReplicaSet", "web").label("app", "web"));
    server.add_pod(&on("bare"));
    for (kind, name) in [("DaemonSet", "agent"), ("StatefulSet", "db"), ("ReplicaSet", "web")] {
        server.recreate("default", kind, name, "other");
    }
    server.add_budget(
        "default",
        "web",
        &json!({
            "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } },
        }),
    );
    for name in ["static", "agent-x", "db-0", "web-x", "bare"] {
        api.delete(&format!("/api/v1/namespaces/default/pods/{name}"), &json!({})).await.expect(200);
    }
    assert_eq!(pods_on(&api, "n").await, ["agent-again-1", "static"]);
    assert_eq!(pods_on(&api, "other").await, ["db-0", "web-again-2"]);
    let budget = server.object(BUDGETS, "default", "web").unwrap();
    assert_eq!(
        (&budget["status"]["expectedPods"], &budget["status"]["currentHealthy"]),
        (&json!(1), &json!(1))
    );

    // While the kubelet keeps the pods, a replica set replaces them, and a stateful set waits.
    server.end_pods("other", false);
    for name in ["db-0", "web-again-2"] {
        api.delete(&format!("/api/v1/namespaces/default/pods/{name}"), &json!({})).await.expect(200);
    }
    assert_eq!(pods_on(&api, "other").await, ["db-0", "web-again-2", "web-again-3"]);
    server.end_pods("other", true);
    assert_eq!(pods_on(&api, "other").await, ["db-0", "web-again-3"]);
}

#[tokio::test]
async fn reboot_changes_the_boot_id_before_ready() {
    let server = ApiServer::start().await;
    server.add_node("n");
    let (first, ready) = boot(&server, "n");
    assert_eq!(ready, "True");
    let before = renewed(&server, "n");
    eventually("the lease to be renewed", async || (renewed(&server, "n") > before).then_some(())).await;
    server.stop_kubelet("n");
    assert_eq!(boot(&server, "n"), (first.clone(), "True".to_owned()));
    server.lose_node("n");
    assert_eq!(boot(&server, "n"), (first.clone(), "Unknown".to_owned()));
    let silent = renewed(&server, "n");
    server.boot_node("n");
    let (second, ready) = boot(&server, "n");
    assert_eq!(ready, "False");
    assert_ne!(second, first);
    assert!(renewed(&server, "n") > silent);
    server.ready_node("n");
    assert_eq!(boot(&server, "n"), (second.clone(), "True".to_owned()));
    server.reboot_node("n");
    assert_ne!(boot(&server, "n").0, second);
}

#[tokio::test]
async fn clocks_may_differ() {
    let server = ApiServer::start().await;
    server.skew_clock(TimeDelta::hours(2));
    server.add_node("n");
    let expected = Utc::now() + TimeDelta::minutes(119);
    assert!(renewed(&server, "n") > expected);
    let answer = admin(&server).get("/api/v1/nodes/n").await;
    let date = DateTime::parse_from_rfc2822(answer.header("date")).unwrap();
    assert!(date.to_utc() > expected, "{date}");
    let created: DateTime<Utc> =
        answer.json()["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    assert!(created > expected, "{created}");
}

#[tokio::test]
async fn cache_may_be_stale() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_node("a");
    server.stall_cache(true);
    server.add_node("b");
    let count = async |query: &str| {
        let list = api.get(&format!("/api/v1/nodes?{query}")).await.expect(200);
        list["items"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("resourceVersion=0").await), (2, 1));
    let mut watch = api.watch("/api/v1/nodes?watch=1&resourceVersion=0").await;
    assert_eq!(watch.next_change().await.1, "a");
    assert!(watch.is_silent().await);
    server.stall_cache(false);
    assert_eq!(watch.next_change().await.1, "b");
    assert_eq!(count("resourceVersion=0").await, 2);
}

/// A real one knows more, and would delete all nodes.
#[tokio::test]
async fn unknown_paths_and_formats_are_refused() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    server.add_node("n");
    server.add_pod(&Pod::new("default", "p"));
    api.get("/api/v1/services").await.refused(404, "NotFound");
    api.get("/api/v1/namespaces/default/pods/p/log").await.refused(404, "NotFound");
    let answer = api.patch("application/apply-patch+yaml", "/api/v1/nodes/n", &json!({})).await;
    answer.refused(415, "UnsupportedMediaType");
    api.delete("/api/v1/nodes", &json!({})).await.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn connections_end_with_the_server() {
    let server = ApiServer::start().await;
    let api = admin(&server);
    let mut watch = api.watch("/api/v1/nodes?watch=1&resourceVersion=1").await;
    assert_eq!(watch.next().await.unwrap()["type"], "ERROR");
    drop(server);
    assert!(api.try_post("/api/v1/nodes", &json!({})).await.is_err());
}
