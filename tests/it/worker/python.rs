//! The worker in Python takes configurations of a file server.

use std::fs;

use harness::file_server::FileServer;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

use super::supervised::{Supervised, VERSIONS, python};

const CONFIGURE: (&str, &str) = ("configure", "cat >../$1.new && mv ../$1.new ../$1");
const REVOKE: (&str, &str) = ("revoke", "rm -f ../$1");

/// Waits until the scripts have made `app` so, and the worker has reported it.
async fn await_app(site: &Site, worker: &Supervised, expected: Option<&str>) {
    let path = worker.directory.path().join("app");
    eventually(&format!("app to be {expected:?}"), async || {
        let stream = site.jetstream().get_stream("os-upgrade:applied").await.ok()?;
        let report = stream.get_last_raw_message_by_subject("os-upgrade:applied.h01").await.ok()?;
        let report: Value = serde_json::from_slice(&report.payload).unwrap();
        let items = report["items"].as_array().unwrap();
        let is_reported = match expected {
            Some(_) => items.len() == 1 && items[0]["name"] == "app" && items[0]["id"].is_string(),
            None => items.is_empty(),
        };
        (is_reported && fs::read_to_string(&path).ok().as_deref() == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn python_worker_takes_configurations() {
    let (site, files) = (Site::start().await, FileServer::start().await);
    // A worker in Python that cannot read when it starts takes none until it is started again.
    for stream in ["os-upgrade:desired", "os-upgrade:applied"] {
        eventually(stream, async || site.jetstream().get_stream(stream).await.ok()).await;
    }
    let worker = Supervised::start(&python(&site.nats.url()), &[VERSIONS, CONFIGURE, REVOKE]);
    files.put("/h01/app.conf", "level=1");
    let provider = json!({
        "name": "app", "kind": "http", "url": files.url("/{host}/app.conf"),
        "poll-interval": "10s", "on-removal": "remove",
    });
    let config = json!({
        "worker-applications": [{ "name": "python-worker" }], "config-providers": [provider],
    });
    let (status, answer) = site.rest().call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
    assert!(status < 300, "{answer}");
    await_app(&site, &worker, Some("level=1")).await;
    files.put("/h01/app.conf", "level=2");
    await_app(&site, &worker, Some("level=2")).await;
    files.remove("/h01/app.conf");
    await_app(&site, &worker, None).await;
}
