//! More than one orchestrator for a site: one leads, the others follow, and take over when it is gone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use os_upgrade_tests::orchestrator::Orchestrator;
use os_upgrade_tests::site::{Site, assert_one_by_one};
use os_upgrade_tests::wait::eventually;
use reqwest::Method;
use serde_json::json;

/// How long a take-over may take: the lease has to run out, and to be found so.
const TAKE_OVER: Duration = Duration::from_secs(12);

/// A site with a leader, and a second instance that follows it.
async fn two() -> (Site, Orchestrator) {
    let site = Site::start().await;
    let mut second = Orchestrator::new(&site.nats.url(), "");
    second.start();
    let follows = format!("instance {} leads, this one follows", site.orchestrator.instance());
    eventually("the second to follow", async || (second.readiness().await? == follows).then_some(())).await;
    (site, second)
}

#[tokio::test]
async fn a_follower_serves_reads_and_refuses_writes_by_naming_the_leader() {
    let (site, second) = two().await;
    let hosts = site.hosts(2).await;
    let id = site.rest().started().await;
    let run = site.rest().ended(&id).await;
    let rest = &second.rest;
    assert_eq!(rest.ended(&id).await, run);
    let last = site.rest().state().await["last-upgrade-info"].clone();
    eventually("the same state", async || (rest.state().await["last-upgrade-info"] == last).then_some(()))
        .await;
    rest.await_scheduled(&["h01", "h02"]).await;

    let message = format!("instance {} leads, this one follows", site.orchestrator.instance());
    let refusal = (503, json!({ "errors": [{ "error-message": message }] }));
    assert_eq!(rest.trigger("").await, refusal);
    assert_eq!(rest.cancel().await, refusal);
    let config = json!({ "worker-applications": [] }).to_string();
    assert_eq!(rest.call(Method::PUT, "/v1/config/os-upgrade", &config).await, refusal);
    assert_eq!(site.rest().runs().await.len(), 1);
    assert_eq!(hosts[0].said(), ["prepare", "upgrade-begins", "upgrade-ends"]);
}

#[tokio::test]
async fn a_follower_takes_over_from_a_killed_leader_and_finishes_its_run() {
    let (mut site, second) = two().await;
    let mut hosts = vec![site.host("h01"), site.host("h02").reboots()];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    let id = site.rest().started().await;
    hosts[0].await_said("upgrade-begins").await;
    site.orchestrator.kill().await;
    let killed = Instant::now();
    second.ready().await;
    assert!(killed.elapsed() < TAKE_OVER, "{:?}", killed.elapsed());
    hosts[0].let_go("upgrade");
    let run = second.rest.ended(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "upgraded")]));
    assert_eq!(hosts[0].said(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    assert_eq!(hosts[1].said(), ["prepare", "upgrade-begins", "upgrade-ends", "reboot"]);
    // The first comes back as a follower, with the whole history.
    site.orchestrator.start();
    assert_eq!(site.rest().ended(&id).await, run);
    let follows = format!("instance {} leads, this one follows", second.instance());
    eventually("the first to follow", async || {
        (site.orchestrator.readiness().await? == follows).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_was_paused_does_no_harm_when_it_wakes_up() {
    let (site, second) = two().await;
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    let id = site.rest().started().await;
    hosts[0].await_said("upgrade-begins").await;
    site.orchestrator.signal(Signal::SIGSTOP);
    second.ready().await;
    hosts[1].hold("upgrade");
    hosts[0].let_go("upgrade");
    hosts[1].await_said("upgrade-begins").await;
    site.orchestrator.signal(Signal::SIGCONT);
    let follows = format!("instance {} leads, this one follows", second.instance());
    eventually("the first to follow", async || {
        (site.orchestrator.readiness().await? == follows).then_some(())
    })
    .await;
    hosts[1].let_go("upgrade");
    let run = second.rest.ended(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(site.rest().ended(&id).await, run);
    assert_eq!(site.commands_to("upgrade").await, ["h01", "h02", "h03"]);
    for host in &hosts {
        assert_eq!(host.said(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    }
    assert_one_by_one(&site.said());
}
