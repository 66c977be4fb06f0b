//! Clocks that differ: nothing starts until it is clear which time is right.

use chrono::{TimeDelta, Utc};
use harness::host::Host;
use harness::raw_worker::RawWorker;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::json;

/// Orchestrator and NATS share the machine's clock, so only hosts can show that it is wrong.
#[tokio::test]
async fn hosts_that_have_another_time_are_believed() {
    let site = Site::start().await;
    let rest = site.rest();
    let elsewhere = RawWorker::start(site.nats.client().await, "h01").await;
    rest.await_scheduled(&["h01"]).await;
    let refusal = eventually("a trigger to be refused", async || {
        elsewhere.heartbeat_at(Utc::now() + TimeDelta::hours(6)).await;
        let path = "/v1/state/os-upgrade/trigger-upgrade-site?validate=true";
        let (status, body) = rest.call(Method::POST, path, "").await;
        (status == 503).then_some(body)
    })
    .await;
    let info = json!({ "kind": "clock-disputed", "differ": 1, "hosts": 1 });
    assert_eq!(refusal["errors"][0]["error-info"], info);

    // Half of the hosts suffice, and real workers send their time.
    let mut hosts: [Host; 1] = [site.host("h02")];
    hosts[0].start();
    rest.await_scheduled(&["h01", "h02"]).await;
    eventually("a trigger to be accepted", async || {
        elsewhere.heartbeat_at(Utc::now() + TimeDelta::hours(6)).await;
        (rest.trigger("").await.0 < 300).then_some(())
    })
    .await;
}
