//! Runs that maintenance windows start.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, SubsecRound as _, TimeDelta, Timelike as _, Utc};
use harness::events::Events;
use harness::host::APPLICATION;
use harness::raw_worker::RawWorker;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

const CONFIG: &str = "/v1/config/os-upgrade";

/// A window that is always open. Its occurrences begin at midnight in a zone where it is now about noon, so that none
/// begins during a test.
fn always_open_window() -> Value {
    let days = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday";
    // The sign in these names is inverted: Etc/GMT+5 is five hours behind.
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
async fn window_starts_one_run_despite_restart() {
    let mut site = Site::start().await;
    let rest = site.rest();
    // There is no host when the window opens, and the orchestrator is killed in it.
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[always_open_window()], &[])).await.0, 204);
    site.orchestrator.kill().await;
    let mut host = site.host("h01");
    host.hold("upgrade");
    host.start();
    site.orchestrator.start_ready().await;
    let id = eventually("a run", async || rest.newest_run_or_none().await).await;
    host.await_script("upgrade-begins").await;

    // Neither another configuration nor its removal alters the run.
    let run = rest.get(&format!("/v1/state/os-upgrade/runs/{id}")).await.1;
    assert_eq!(run["trigger"], "window", "{run}");
    let now = rest.get("/v1/state/os-upgrade").await.1;
    assert_eq!(now["current-upgrade-info"]["not-after"], run["not-after"]);
    assert!(run["not-after"].as_str().unwrap().ends_with(":00:00Z"), "{run}");
    let denied = configuration(&[always_open_window()], &[always_open_window()]);
    assert_eq!(rest.call(Method::PUT, CONFIG, &denied).await.0, 204);
    assert_eq!(rest.call(Method::DELETE, CONFIG, "").await.0, 204);
    assert_eq!(rest.get("/v1/state/os-upgrade").await.1["status"], "upgrading");
    host.release("upgrade");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));

    // The occurrence has had its run, whichever instance leads: the state shows the next one.
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[always_open_window()], &[])).await.0, 201);
    site.orchestrator.kill_and_start().await;
    rest.await_scheduled(&["h01"]).await;
    // Once its heartbeat has come.
    let is_next = async || (rest.try_host("h01").await?["why"]["until"] == run["not-after"]).then_some(());
    eventually("the next run to be awaited", is_next).await;
    assert_eq!(rest.runs().await.len(), 1);
}

/// The window opens and closes while no orchestrator runs. The next one says so wherever operators look.
#[tokio::test]
async fn run_missed_while_nobody_led_is_shown() {
    let mut site = Site::start().await;
    let rest = site.rest();
    // Long enough from now that the orchestrator is certainly down when it opens.
    let (opens, lasts) = (Utc::now().trunc_subsecs(0) + TimeDelta::seconds(15), TimeDelta::seconds(2));
    let window =
        json!({ "cron": opens.format("%-S %-M %-H * * *").to_string(), "duration": "2s", "timezone": "UTC" });
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[window], &[])).await.0, 204);
    let position = Events::follow(&rest, "", "").await.id;
    site.orchestrator.kill().await;
    assert!(Utc::now() < opens, "the machine is too slow for this test");
    eventually("the window to close", async || (opens + lasts < Utc::now()).then_some(())).await;
    site.orchestrator.start_ready().await;

    let mut events = Events::follow(&rest, "?kinds=run-missed", &position).await;
    assert!(events.until("run-missed").await);
    let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let missed = json!({
        "window-start": time(opens),
        "latest-start": time(opens + lasts),
        "window-end": time(opens + lasts),
        "why": { "kind": "no-leader", "text": "no orchestrator led" },
    });
    let mut event = events.read[0].clone();
    for name in ["id", "time", "kind"] {
        event.as_object_mut().unwrap().remove(name);
    }
    assert_eq!((events.read.len(), &event), (1, &missed));

    let (status, mut listed) = rest.get("/v1/state/os-upgrade/missed-runs").await;
    let recorded = listed["items"][0].as_object_mut().unwrap().remove("recorded-at").unwrap();
    assert_eq!(recorded.as_str().unwrap()[..19], events.read[0]["time"].as_str().unwrap()[..19]);
    assert_eq!((status, &listed), (200, &json!({ "items": [missed] })));
    assert_eq!(rest.get("/v1/state/os-upgrade/runs").await.1, json!({ "items": [] }), "it is no run");

    let metrics = rest.get_as("/metrics", "*/*").await;
    for line in
        ["os_upgrade_missed_runs_total 1\n", "os_upgrade_last_missed_run_seconds{reason=\"no-leader\"} "]
    {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let (code, shown, _) = site.orchestrator.ask(&["run", "list", "--missed", "--utc"], "").await;
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let expected = format!("{}  no orchestrator led", time(opens));
    assert_eq!((code, &lines[1..]), (Some(0), &[expected.as_str()][..]), "{shown}");
    let (_, printed, _) = site.orchestrator.ask(&["run", "list", "--missed", "-o", "json"], "").await;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["items"][0]["why"]["kind"], "no-leader", "{printed}");
    let (_, status, _) = site.orchestrator.ask(&["status", "--utc"], "").await;
    let line = format!("missed: the run of {}: no orchestrator led", time(opens));
    assert!(status.lines().any(|shown| shown == line), "{status}");

    let _host = site.hosts(1).await;
    let id = rest.start_run().await;
    rest.await_end(&id).await;
    let (_, status, _) = site.orchestrator.ask(&["status"], "").await;
    assert!(!status.contains("missed:"), "a run has started since: {status}");
}

/// The host was off before the orchestrator started, which knows it only from the streams.
#[tokio::test]
async fn absent_host_does_not_delay_scheduled_run() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let off = RawWorker::start(site.nats.client().await, "h01").await;
    off.announce(&json!({ "host": "h01", "application": APPLICATION, "heartbeats": true }).to_string()).await;
    let mut host = site.host("h02");
    host.start();
    rest.await_scheduled(&["h01", "h02"]).await;
    site.orchestrator.kill().await;
    site.orchestrator.start_ready().await;
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration(&[always_open_window()], &[])).await.0, 204);
    eventually("hosts to be awaited", async || {
        let (_, state) = rest.try_call(Method::GET, "/v1/state/os-upgrade", "").await?;
        (state["next-upgrade-why"]["kind"] == "hosts-awaited").then_some(())
    })
    .await;
    let id = eventually("a run", async || rest.newest_run_or_none().await).await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "skipped"), ("h02", "upgraded")]));
    // The log reports it to operators who were not watching.
    let log = site.orchestrator.log();
    for line in ["run started", "host upgraded", "run completed"] {
        assert!(log.lines().any(|message| message.contains(line) && message.contains(&id)), "{line}: {log}");
    }
}
