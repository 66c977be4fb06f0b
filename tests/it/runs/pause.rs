//! An operator's pause: nothing further begins, and what is under way is finished.

use std::collections::BTreeMap;

use harness::site::Site;
use harness::wait::eventually;
use serde_json::json;

#[tokio::test]
async fn pause_outlasts_a_crash_and_finishes_what_is_under_way() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    let (code, _, stderr) =
        site.orchestrator.ask(&["pause", "--reason", "a fair", "--until", "soon"], "").await;
    assert_eq!((code, stderr.contains("\"soon\" is no time to come: write 2h")), (Some(2), true), "{stderr}");
    let said = site.orchestrator.done(&["pause", "--reason", "a fair"]).await;
    assert_eq!(
        said,
        "paused until `os-upgrade resume`: nothing further begins; what is under way is finished"
    );
    site.orchestrator.kill_and_start().await;
    hosts[0].release("upgrade");
    rest.await_status("h01", "upgraded").await;
    assert_eq!(rest.await_reason("h02", "paused").await, "the site is paused by api 127.0.0.1: a fair");
    assert_eq!(hosts[1].script_log(), ["prepare"]);
    let status = site.orchestrator.done(&["status"]).await;
    assert!(status.starts_with("PAUSED by api 127.0.0.1 since "), "{status}");

    let said = site.orchestrator.done(&["resume", "--reason", "it is over"]).await;
    assert_eq!(said, "resumed");
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "upgraded")]));
    assert_eq!(site.orchestrator.done(&["resume"]).await, "the site was not paused");
    let told = site.orchestrator.done(&["events", "--kinds", "site-paused,site-resumed", "-o", "json"]).await;
    assert!(told.contains("a fair") && told.contains("it is over"), "{told}");
}

#[tokio::test]
async fn pause_ends_when_its_end_has_come() {
    let site = Site::start().await;
    let _hosts = site.hosts(1).await;
    site.orchestrator.done(&["pause", "--reason", "a moment", "--until", "2s"]).await;
    assert_eq!(site.rest().trigger("").await.1["errors"][0]["error-info"]["kind"], "paused");
    eventually("the pause to be over", async || {
        site.rest().state().await.get("paused").is_none().then_some(())
    })
    .await;
    let id = site.rest().start_run().await;
    assert_eq!(site.rest().await_end(&id).await.result(), Some("completed"));
    let metrics = site.rest().get_as("/metrics", "*/*").await;
    assert!(metrics.contains("os_upgrade_paused 0"), "{metrics}");
    assert_eq!(site.rest().state().await["status"], json!("idle"));
}
