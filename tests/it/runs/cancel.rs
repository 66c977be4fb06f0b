//! An operator's cancel: no further host is started, and those under way finish.

use std::collections::BTreeMap;

use harness::site::Site;
use serde_json::{Value, json};

#[tokio::test]
async fn cancel_without_run_is_refused() {
    let site = Site::start().await;
    let (status, body) = site.rest().cancel().await;
    assert_eq!(status, 409);
    assert_eq!(body["errors"][0]["error-message"], "no run is active", "{body}");
    let _hosts = site.hosts(1).await;
    let id = site.rest().start_run().await;
    assert_eq!(site.rest().await_end(&id).await.result(), Some("completed"));
    assert_eq!(site.rest().cancel().await.0, 409);
}

#[tokio::test]
async fn early_cancel_upgrades_nothing() {
    let site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(2).await;
    for host in &hosts {
        host.hold("prepare");
    }
    let id = rest.start_run().await;
    hosts[0].await_script("prepare").await;
    assert_eq!(rest.cancel().await, (204, Value::Null));
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("cancelled"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "cancelled"), ("h02", "cancelled")]));
    assert!(run.reasons()["h01"].starts_with("the run was cancelled by api"), "{:?}", run.reasons());
    // Another cancel finds no run; the late answers to `prepare` change nothing.
    assert_eq!(rest.cancel().await.0, 409);
    for host in &hosts {
        host.release("prepare");
    }
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    for host in &hosts {
        let lines = host.script_log();
        assert_eq!(lines.iter().filter(|line| *line == "upgrade-begins").count(), 1, "{lines:?}");
    }
}

#[tokio::test]
async fn cancel_lets_started_host_finish() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    assert_eq!(rest.cancel().await, (204, Value::Null));
    let state = rest.state().await;
    let info = &state["current-upgrade-info"];
    assert_eq!(info["stopping"]["kind"], "cancelled", "{state}");
    assert_eq!(info["counts"], json!({ "upgrading": 1, "cancelled": 1 }), "{state}");
    // A second cancel changes nothing, a trigger has to wait, and a crash forgets neither.
    assert_eq!(rest.cancel().await, (204, Value::Null));
    let again = site.orchestrator.done(&["run", "cancel"]).await;
    assert!(again.starts_with("already being cancelled by api"), "{again}");
    let listed = site.orchestrator.done(&["run", "list"]).await;
    assert!(listed.contains("being cancelled"), "{listed}");
    assert_eq!(rest.trigger("").await.0, 409);
    site.orchestrator.kill_and_start().await;
    hosts[0].release("upgrade");
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("cancelled"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "cancelled")]));
    assert_eq!(hosts[0].script_log(), ["prepare", "upgrade-begins", "upgrade-ends", "reboot"]);
    assert_eq!(hosts[1].script_log(), ["prepare"]);
    assert!(run.events().contains(&"h01 slot-released".to_owned()), "{:?}", run.events());
}
