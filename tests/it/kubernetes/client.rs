//! The `kube` client against the server of the tests: what it can do, and where it does not do what it says.

use std::pin::pin;

use futures::TryStreamExt as _;
use harness::wait::eventually;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{
    DeleteParams, EvictParams, ListParams, Patch, PatchParams, Preconditions, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Error};
use os_upgrade_test_kubernetes::resource::{BUDGETS, PODS};
use os_upgrade_test_kubernetes::{ApiServer, Fault, Pod as NewPod};
use serde_json::{Value, json};

/// A server with a node `n` and a pod `p` on it, and a client that repeats nothing by itself.
async fn start() -> (ApiServer, Client) {
    let server = ApiServer::start().await;
    let mut config = prepare(&server).await;
    config.default_retry = false;
    (server, Client::try_from(config).unwrap())
}

/// Adds the objects, and returns the default configuration of a client.
async fn prepare(server: &ApiServer) -> Config {
    server.add_node("n");
    server.add_pod(&NewPod::new("default", "p").on("n").label("app", "a"));
    // As any client of rustls, it needs a provider.
    drop(harness::http::builder([]));
    let config = Kubeconfig::from_yaml(&server.kubeconfig(server.admin_token()).to_string()).unwrap();
    Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap()
}

/// The code of a refusal.
fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> u16 {
    match result {
        Err(Error::Api(status)) => status.code,
        other => panic!("not refused by the server: {other:?}"),
    }
}

#[tokio::test]
async fn client_lists_watches_and_patches() {
    let (_server, client) = start().await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
    let groups = client.list_api_groups().await.unwrap();
    assert!(groups.groups.iter().any(|group| group.name == "policy"));
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client);
    let list = pods.list(&ListParams::default().fields("spec.nodeName=n").limit(10)).await.unwrap();
    assert_eq!(list.items.len(), 1);

    let version = nodes.get("n").await.unwrap().metadata.resource_version.unwrap();
    let mut watch = pin!(nodes.watch(&WatchParams::default(), &version).await.unwrap());
    let cordon = |version: &str| json!({ "metadata": { "resourceVersion": version }, "spec": { "unschedulable": true } });
    let params = PatchParams::default();
    let patched = nodes.patch("n", &params, &Patch::Merge(cordon(&version))).await.unwrap();
    assert_eq!(patched.spec.unwrap().unschedulable, Some(true));
    assert_eq!(code(nodes.patch("n", &params, &Patch::Merge(cordon(&version))).await), 409);
    let event = watch.try_next().await.unwrap().unwrap();
    let WatchEvent::Modified(node) = event else { panic!("{event:?}") };
    assert_eq!(node.metadata.resource_version, patched.metadata.resource_version);
    // The taint follows.
    assert!(matches!(watch.try_next().await.unwrap().unwrap(), WatchEvent::Modified(_)));
}

#[tokio::test]
async fn client_trusts_the_authority_of_its_config() {
    let server = ApiServer::start_with_tls().await;
    let config = prepare(&server).await;
    let nodes: Api<Node> = Api::all(Client::try_from(config.clone()).unwrap());
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let other = ApiServer::start_with_tls().await;
    let mut distrusted = config;
    distrusted.cluster_url = other.url.parse().unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(distrusted).unwrap());
    let Err(error) = nodes.list(&ListParams::default()).await else { panic!("trusted") };
    assert!(!matches!(error, Error::Api(_)), "{error:?}");
}

#[tokio::test]
async fn client_sees_expired_watches() {
    let (server, client) = start().await;
    server.compact();
    let nodes: Api<Node> = Api::all(client);
    let mut watch = pin!(nodes.watch(&WatchParams::default(), "1").await.unwrap());
    let event = watch.try_next().await.unwrap().unwrap();
    let WatchEvent::Error(status) = event else { panic!("{event:?}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn client_evicts_and_tells_refusals_apart() {
    let (server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let params = EvictParams::default();
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } });
    server.add_budget("default", "a", &spec);
    let Err(Error::Api(status)) = pods.evict("p", &params).await else { panic!("evicted") };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    let causes = status.details.unwrap().causes;
    assert_eq!((causes.len(), causes[0].reason.as_str()), (1, "DisruptionBudget"));

    // Throttling is no `Status`: the client makes one up, without causes.
    server.plan(Fault::Throttled, "create", "pods/eviction", 1);
    let Err(Error::Api(status)) = pods.evict("p", &params).await else { panic!("evicted") };
    assert_eq!(status.code, 429);
    assert!(status.details.is_none_or(|details| details.causes.is_empty()));

    server.edit(BUDGETS, "default", "a", |budget| {
        budget["spec"]["minAvailable"] = json!(0);
        budget["metadata"]["generation"] = json!(2);
    });
    pods.evict("p", &params).await.unwrap();
    assert_eq!(code(pods.evict("p", &params).await), 404);
}

/// How an eviction with options, and a JSON patch, are sent with the client: as requests of one's own.
#[tokio::test]
async fn client_sends_own_requests() {
    let (server, client) = start().await;
    let send = async |method: Method, path: &str, kind: &str, body: Value| {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
        client.request::<Value>(request.body(body.to_string().into_bytes()).unwrap()).await
    };
    let evict = async |options: Value| {
        let body = json!({ "metadata": { "name": "p" }, "deleteOptions": options });
        let path = "/api/v1/namespaces/default/pods/p/eviction";
        send(Method::POST, path, "application/json", body).await
    };
    assert_eq!(code(evict(json!({ "preconditions": { "uid": "another" } })).await), 409);
    evict(json!({ "dryRun": ["All"] })).await.unwrap();
    let uid = server.object(PODS, "default", "p").unwrap()["metadata"]["uid"].clone();
    evict(json!({ "preconditions": { "uid": uid } })).await.unwrap();
    assert_eq!(server.object(PODS, "default", "p"), None);
    let dry_runs: Vec<bool> = server.calls().iter().map(|call| call.is_dry_run).collect();
    assert_eq!(dry_runs, [false, true, false]);

    let patch = json!([{ "op": "test", "path": "/metadata/annotations/owner", "value": "us" }]);
    assert_eq!(code(send(Method::PATCH, "/api/v1/nodes/n", "application/json-patch+json", patch).await), 422);
}

/// By default the client repeats what is answered with 429, 503 or 504, fifteen times and ever more slowly: a budget's refusal
/// would arrive after minutes, and a request could leave long after its reason has gone.
#[tokio::test]
async fn client_repeats_refused_evictions_by_default() {
    let server = ApiServer::start().await;
    let config = prepare(&server).await;
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } });
    server.add_budget("default", "a", &spec);
    let pods: Api<Pod> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    let eviction = tokio::spawn(async move { pods.evict("p", &EvictParams::default()).await.is_ok() });
    eventually("repeated calls", async || (server.calls().len() >= 3).then_some(())).await;
    assert!(!eviction.is_finished());
    eviction.abort();
}

/// The client writes `delete_options`, which the server does not know: preconditions and dry runs that are given in this way
/// do not arrive. Whoever evicts has to send the body themselves.
#[tokio::test]
async fn client_loses_options_of_evictions() {
    let (server, client) = start().await;
    let preconditions = Preconditions { uid: Some("another".to_owned()), resource_version: None };
    let options = DeleteParams::default().preconditions(preconditions);
    let params = EvictParams { delete_options: Some(options), ..EvictParams::default() };
    let pods: Api<Pod> = Api::namespaced(client, "default");
    pods.evict("p", &params).await.unwrap();
    assert_eq!(server.object(PODS, "default", "p"), None);
}
