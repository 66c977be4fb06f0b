//! Runs that start by themselves, with real parts.

use std::collections::BTreeMap;

use chrono::{Timelike as _, Utc};
use harness::host::APPLICATION;
use harness::raw_worker::RawWorker;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

const CONFIG: &str = "/v1/config/os-upgrade";

/// Open all the time, anew at every midnight of a zone where it is about noon, so that none comes while a test runs.
fn always() -> Value {
    let days = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday";
    // The sign in these names is the other one: Etc/GMT+5 is behind by five hours.
    let behind = i64::from(Utc::now().hour()) - 12;
    let timezone = format!("Etc/GMT{behind:+}");
    json!({ "days-of-week": days, "start-time": "00:00", "duration": "24h", "timezone": timezone })
}

fn configuration(windows: &[Value], deny: &[Value]) -> String {
    json!({
        "worker-applications": [{ "name": APPLICATION }],
        "maintenance-windows": windows,
        "deny-windows": deny,
    })
    .to_string()
}

#[tokio::test]
async fn an_open_window_starts_one_run_also_when_the_orchestrator_comes_back_in_it() {
    let mut site = Site::start().await;
    let rest = site.rest();
    // Nobody is there to be upgraded when the window opens, and the orchestrator is killed in it.
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[always()], &[])).await.0, 204);
    site.orchestrator.kill().await;
    let mut host = site.host("h01");
    host.hold("upgrade");
    host.start();
    site.orchestrator.start_ready().await;
    let id = eventually("a run", async || rest.newest_run_or_none().await).await;
    host.await_said("upgrade-begins").await;

    // Neither is the run altered by another configuration, nor by none at all.
    let run = rest.get(&format!("/v1/state/os-upgrade/runs/{id}")).await.1;
    assert_eq!(run["trigger"], "window", "{run}");
    let now = rest.get("/v1/state/os-upgrade").await.1;
    assert_eq!(now["current-upgrade-info"]["not-after"], run["not-after"]);
    assert!(run["not-after"].as_str().unwrap().ends_with(":00:00Z"), "{run}");
    let denied = configuration(&[always()], &[always()]);
    assert_eq!(rest.call(Method::PUT, CONFIG, &denied).await.0, 204);
    assert_eq!(rest.call(Method::DELETE, CONFIG, "").await.0, 204);
    assert_eq!(rest.get("/v1/state/os-upgrade").await.1["status"], "upgrading");
    host.let_go("upgrade");
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));

    // The occurrence has had its run, whoever leads: the state says when the next one is.
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[always()], &[])).await.0, 201);
    site.orchestrator.kill_and_start().await;
    rest.await_scheduled(&["h01"]).await;
    let why = rest.try_host("h01").await.unwrap();
    assert_eq!(why["until"], run["not-after"], "{why}");
    assert_eq!(rest.runs().await.len(), 1);
}

/// It was off before the orchestrator came, which has never heard of it but by what the bus has kept.
#[tokio::test]
async fn a_host_that_is_off_does_not_hold_up_a_run_that_starts_by_itself() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let off = RawWorker::start(site.nats.client().await, "h01").await;
    off.announce(&json!({ "host": "h01", "application": APPLICATION, "heartbeats": true }).to_string()).await;
    let mut host = site.host("h02");
    host.start();
    rest.await_scheduled(&["h01", "h02"]).await;
    site.orchestrator.kill().await;
    site.orchestrator.start_ready().await;
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[always()], &[])).await.0, 204);
    eventually("hosts to be awaited", async || {
        let (_, state) = rest.try_call(Method::GET, "/v1/state/os-upgrade", "").await?;
        (state["next-upgrade-reason"] == "hosts-awaited").then_some(())
    })
    .await;
    let id = eventually("a run", async || rest.newest_run_or_none().await).await;
    let run = rest.ended(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "skipped"), ("h02", "upgraded")]));
    // Nobody looked on: the log tells of it.
    let log = site.orchestrator.log();
    for line in ["a run has started", "the host is upgraded", "the run is completed"] {
        assert!(log.lines().any(|said| said.contains(line) && said.contains(&id)), "{line}: {log}");
    }
}
