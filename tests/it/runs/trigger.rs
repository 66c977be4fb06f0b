//! The trigger's answers, and whether a run starts.

use std::time::Duration;

use harness::host::APPLICATION;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::terminal::Terminal;
use harness::wait::{Stopwatch, eventually};
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

const TRIGGER: &str = "/v1/state/os-upgrade/trigger-upgrade-site";

fn message(body: &Value) -> &str {
    body["errors"][0]["error-message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn missing_configuration_404_missing_host_409() {
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    let rest = &orchestrator.rest;
    assert_eq!(rest.trigger("").await.0, 404);
    assert_eq!(rest.get("/v1/config/os-upgrade").await.0, 404);
    let validate = format!("{TRIGGER}?validate=true");
    assert_eq!(rest.call(Method::POST, &validate, "").await.0, 404);
    rest.configure(APPLICATION).await;
    let (status, body) = rest.trigger("").await;
    assert_eq!((status, message(&body).is_empty()), (409, false), "{body}");
    assert_eq!(rest.runs().await, [Value::Null; 0]);
}

#[tokio::test]
async fn bodies_are_accepted_or_refused_whole() {
    let site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    let bad = [
        r#"{"timeout":"soon"}"#,
        r#"{"timeout":"-1s"}"#,
        r#"{"timeout":"0s"}"#,
        r#"{"timeout":5}"#,
        r#"{"timeout":""}"#,
        r#"{"time-out":"1h"}"#,
        r#"{"timeout":"1h"} more"#,
        "[]",
        "now",
        "\u{0}",
    ];
    for body in bad {
        let (status, answer) = rest.trigger(body).await;
        assert_eq!((status, message(&answer).is_empty()), (400, false), "{body}: {answer}");
    }
    let unknown = format!("{TRIGGER}?force=true");
    assert_eq!(rest.call(Method::POST, &unknown, "").await.0, 400);
    // Validated, but not started.
    let validate = format!("{TRIGGER}?validate=true");
    for body in ["", "{}", r#"{"timeout":"1h30m"}"#] {
        assert_eq!(rest.call(Method::POST, &validate, body).await, (204, Value::Null), "{body}");
    }
    assert_eq!(rest.call(Method::POST, &validate, bad[0]).await.0, 400);
    assert_eq!(rest.runs().await, [Value::Null; 0]);
    assert_eq!(rest.state().await["status"], "idle");
    assert_eq!(site.commands().await, [""; 0]);

    for (body, seconds) in [("", 4 * 3600), ("{}", 4 * 3600), (r#"{"timeout":"90m"}"#, 90 * 60)] {
        assert_eq!(rest.trigger(body).await, (204, Value::Null), "{body}");
        let id = rest.newest_run().await;
        let run = rest.await_end(&id).await;
        let time = |key: &str| {
            let text = run.0[key].as_str().expect("a time");
            text.parse::<chrono::DateTime<chrono::Utc>>().expect("a time")
        };
        assert_eq!((time("not-after") - time("start-time")).num_seconds(), seconds, "{body}");
        assert_eq!(run.0["trigger"], "operator");
        assert!(run.0["actor"].as_str().expect("an actor").starts_with("api"), "{}", run.0);
    }
    assert_eq!(rest.runs().await.len(), 3);
    assert_eq!(hosts[0].script_log().len(), 9);
}

#[tokio::test]
async fn trigger_during_run_is_409() {
    let site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    hosts[0].hold("prepare");
    let id = rest.start_run().await;
    let refusals =
        [rest.trigger("").await, rest.call(Method::POST, &format!("{TRIGGER}?validate=true"), "").await];
    for (status, body) in refusals {
        assert_eq!(status, 409);
        assert_eq!(body["errors"][0]["error-info"]["run"], json!(id), "{body}");
    }
    hosts[0].release("prepare");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    assert_eq!(rest.runs().await.len(), 1);
}

#[tokio::test]
async fn concurrent_triggers_start_one_run() {
    let site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    hosts[0].hold("prepare");
    let answers = futures::future::join_all((0..20).map(|_| rest.trigger(""))).await;
    let mut statuses: Vec<u16> = answers.into_iter().map(|(status, _)| status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [&[204][..], &[409; 19]].concat());
    hosts[0].release("prepare");
    let id = rest.newest_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    assert_eq!(rest.runs().await.len(), 1);
}

/// A trigger is refused with 503 in time; reads still work.
async fn assert_refused(site: &Site) {
    let rest = site.rest();
    let elapsed = Stopwatch::start();
    let (status, body) = rest.trigger("").await;
    assert_eq!((status, message(&body).is_empty()), (503, false), "{body}");
    elapsed.assert_below(Duration::from_secs(5));
    assert_eq!(rest.get("/healthz").await.0, 200);
    assert_eq!(rest.get("/v1/state/os-upgrade").await.0, 200);
}

#[tokio::test]
async fn missing_bus_is_503_without_late_run() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    site.nats.kill();
    eventually("the loss to be noticed", async || {
        (site.orchestrator.readiness().await? == "NATS is unreachable").then_some(())
    })
    .await;
    assert_refused(&site).await;
    site.nats.start_again().await;
    site.orchestrator.ready().await;
    // A pending request would have taken effect before this one.
    let validate = format!("{TRIGGER}?validate=true");
    assert_eq!(rest.call(Method::POST, &validate, "").await, (204, Value::Null));
    assert_eq!(rest.runs().await, [Value::Null; 0]);
    assert_eq!(hosts[0].script_log(), [""; 0]);
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}

#[tokio::test]
async fn hung_bus_is_503_without_partial_run() {
    let site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    site.nats.signal(Signal::SIGSTOP);
    assert_refused(&site).await;
    site.nats.signal(Signal::SIGCONT);
    site.orchestrator.ready().await;
    // The append had begun, so it may have been stored: a 503 leaves that open. In that case there is a whole run.
    let (status, _) = rest.trigger("").await;
    assert!(status == 204 || status == 409, "{status}");
    let id = rest.newest_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    eventually("the site to be idle", async || (rest.state().await["status"] == "idle").then_some(())).await;
    let begun = hosts[0].script_log().into_iter().filter(|line| line == "upgrade-begins").count();
    assert_eq!(begun, rest.runs().await.len());
}

/// On a terminal who would go is shown, and nothing starts before somebody has said yes.
#[tokio::test]
async fn people_are_asked_before_a_run_starts() {
    let site = Site::start().await;
    let _hosts = site.hosts(3).await;
    let said = site.orchestrator.done(&["hosts", "defer", "h02", "--reason", "a demo"]).await;
    assert!(said.ends_with("nothing begins there until `os-upgrade hosts defer --end HOST`"), "{said}");
    let mut terminal = Terminal::start(&format!("http://{}", site.orchestrator.address())).await;

    let shown = terminal.types("os-upgrade run start\n", "[y/N]").await;
    for line in ["2 hosts, in this order: h01, h03", "1 skipped: h02 (deferred by", "Start it? It ends at "] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let shown = terminal.types("n\n", Terminal::PROMPT).await;
    assert!(shown.contains("nothing was done"), "{shown}");
    assert_eq!(site.rest().runs().await, [Value::Null; 0]);

    terminal.types("os-upgrade run start h03 --watch\n", "[y/N]").await;
    let shown = terminal.types("y\n", "completed").await;
    assert!(shown.contains("started: "), "{shown}");
    assert_eq!(site.rest().runs().await.len(), 1);
}
