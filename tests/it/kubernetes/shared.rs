//! The suite at a cluster that others use: its tests do not disturb each other, and leave nothing behind.

use std::time::Duration;

use harness::wait::PATIENCE;
use os_upgrade_test_kubernetes::ApiServer;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::api::Api;
use super::cluster::{KUBECONFIG, configuration};

/// The files of the suite.
const SUITE: [&str; 5] = ["eviction", "lists", "refusals", "watches", "writes"];
/// Fewer would mean that some are not found.
const TESTS_MIN: usize = 40;

/// The names of all nodes, namespaces, pods and budgets.
async fn everything(api: &Api) -> Vec<String> {
    let mut names = Vec::new();
    for path in
        ["/api/v1/nodes", "/api/v1/namespaces", "/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets"]
    {
        let list = api.get(path).await.expect(200);
        let items = list["items"].as_array().into_iter().flatten();
        names.extend(items.map(|item: &Value| format!("{path} {}", item["metadata"]["name"])));
    }
    names
}

#[tokio::test]
#[should_panic(expected = "DELETE /api/v1/nodes is not about an object of the test")]
async fn suite_sends_nothing_that_touches_others() {
    let server = ApiServer::start().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, server.kubeconfig(server.admin_token()).to_string()).unwrap();
    let api = Api::of(configuration(&file).await, Some("ours".to_owned()));
    api.delete("/api/v1/nodes/ours", &Value::Null).await.refused(404, "NotFound");
    api.delete("/api/v1/nodes", &Value::Null).await;
}

#[tokio::test]
async fn suite_leaves_no_trace_in_a_cluster() {
    let server = ApiServer::start_with_tls().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, server.kubeconfig(server.admin_token()).to_string()).unwrap();
    server.add_node("of-somebody-else");
    // It may change nothing.
    let api = Api::of(configuration(&file).await, Some("nothing".to_owned()));
    let before = everything(&api).await;
    // A real server collects these pods by itself.
    let collect = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.collect_orphans();
        }
    };
    let suite = Command::new(std::env::current_exe().unwrap())
        .args(SUITE.map(|file| format!("kubernetes::{file}::")))
        .env(KUBECONFIG, &file)
        .kill_on_drop(true)
        .output();
    let output = tokio::select! {
        output = tokio::time::timeout(3 * PATIENCE, suite) => output.expect("the end of the suite").unwrap(),
        () = collect => unreachable!("it goes on for ever"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let tests = text.lines().filter(|line| line.ends_with("... ok")).count();
    assert!(tests >= TESTS_MIN, "{text}");
    assert_eq!(everything(&api).await, before);
}
