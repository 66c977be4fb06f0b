//! Lock servers that limit requests or fail: the rate limit is respected, and every slot is released.

use std::time::Duration;

use harness::host::{APPLICATION, Host};
use harness::lock_server::{LockServer, Mode};
use harness::rest::Rest;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::json;

/// Hosts of these groups, all of which may be upgraded at once.
async fn hosts(site: &Site, groups: &[&'static str]) -> Vec<Host> {
    let body = json!({
        "worker-applications": [{ "name": APPLICATION }],
        "rollout": { "max-concurrent": groups.len() },
    });
    let answer = site.rest().call(Method::PUT, "/v1/config/os-upgrade", &body.to_string()).await;
    assert_eq!(answer.0, 204, "{answer:?}");
    let host = |(number, group): (usize, &&'static str)| site.host(&format!("h{number:02}")).of_group(group);
    let mut hosts: Vec<Host> = groups.iter().enumerate().map(host).collect();
    site.run(&mut hosts).await;
    hosts
}

async fn await_released(rest: &Rest, id: &str, hosts: &[Host]) {
    eventually("every slot to be released", async || {
        let events = rest.run(id).await.events();
        let released = |host: &Host| events.contains(&format!("{} slot-released", host.name()));
        hosts.iter().all(released).then_some(())
    })
    .await;
}

#[tokio::test]
async fn request_rate_survives_restart() {
    let locks = LockServer::start(Mode::OneSlot).await;
    let mut site = Site::start_with(&locks.config_with_default_rate()).await;
    let rest = site.rest();
    let hosts = hosts(&site, &["a", "b", "c", "c"]).await;
    locks.limit_rate();
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    // One holds the slot, and the others request it repeatedly.
    hosts[0].await_script("upgrade-begins").await;
    eventually("the others to have requested it", async || (locks.request_count() >= 5).then_some(())).await;
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    hosts[0].release("upgrade");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    await_released(&rest, &id, &hosts).await;
    assert_eq!(locks.limited_count(), 0, "of {} requests", locks.request_count());
    assert_eq!(locks.holder(), None);

    // The password is not shown anywhere.
    let (_, state) = rest.get("/v1/state/os-upgrade").await;
    let journal = json!(site.journal().await);
    for shown in [site.orchestrator.log(), state.to_string(), journal.to_string()] {
        assert!(!shown.contains("ssword"), "{shown}");
    }
}

#[tokio::test]
async fn shared_rate_limit_is_respected() {
    let locks = LockServer::start(Mode::Granted).await;
    let site = Site::start_with(&locks.config()).await;
    let rest = site.rest();
    let hosts = hosts(&site, &["a", "b", "c"]).await;
    locks.trip(Duration::from_secs(5));
    let id = rest.start_run().await;
    let reason = rest.await_reason("h00", "slot-protocol").await;
    assert!(reason.ends_with("status 429: not a FleetLock error: later"), "{reason}");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    await_released(&rest, &id, &hosts).await;
    // Only the concurrent first requests: without the limit there would have been some hundred.
    assert!((1..=3).contains(&locks.limited_count()), "{}", locks.limited_count());
    assert!(!locks.is_tripped());
}

#[tokio::test]
async fn unlock_is_retried_across_runs_and_processes() {
    let locks = LockServer::start(Mode::OneSlot).await;
    let mut site = Site::start_with(&locks.config()).await;
    let rest = site.rest();
    let hosts = hosts(&site, &["a"]).await;
    locks.fail_unlocks(12);
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    eventually("the unlock to be retried", async || (locks.failing_unlocks() < 10).then_some(())).await;
    assert_eq!(locks.holder().as_deref(), Some("h00"));
    let left = locks.failing_unlocks();
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    await_released(&rest, &id, &hosts).await;
    assert_eq!((locks.holder(), locks.failing_unlocks()), (None, 0), "{left} were left");
    assert_eq!(locks.calls(), ["lock a/h00", "unlock a/h00: refused", "unlock a/h00", "unlock a/h00"]);
}
