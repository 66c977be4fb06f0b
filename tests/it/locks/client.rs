//! A lock server that has little time, or trouble: it is asked no more than it takes, and gets every slot back.

use std::time::Duration;

use harness::host::{APPLICATION, Host};
use harness::lock_server::{LockServer, Say};
use harness::rest::Rest;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::json;

/// Hosts of different groups, all of which may be upgraded at once.
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

async fn is_released(rest: &Rest, id: &str, hosts: &[Host]) {
    eventually("every slot to be given back", async || {
        let facts = rest.run(id).await.facts();
        let released = |host: &Host| facts.contains(&format!("{} slot-released", host.name()));
        hosts.iter().all(released).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_of_one_request_a_second_never_has_to_refuse_one_also_across_a_restart() {
    let locks = LockServer::start(Say::OneSlot).await;
    let mut site = Site::start_with(&locks.config_with_default_rate()).await;
    let rest = site.rest();
    let hosts = hosts(&site, &["a", "b", "c", "c"]).await;
    locks.limit_rate();
    hosts[0].hold("upgrade");
    let id = rest.started().await;
    // One holds the slot, and the others ask for it again and again.
    hosts[0].await_said("upgrade-begins").await;
    eventually("the others to have asked", async || (locks.asked() >= 5).then_some(())).await;
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    hosts[0].let_go("upgrade");
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
    is_released(&rest, &id, &hosts).await;
    assert_eq!(locks.limited(), 0, "of {} requests", locks.asked());
    assert_eq!(locks.holder(), None);

    // Nobody reads the password anywhere.
    let (_, state) = rest.get("/v1/state/os-upgrade").await;
    let journal = json!(site.journal().await);
    for shown in [site.orchestrator.log(), state.to_string(), journal.to_string()] {
        assert!(!shown.contains("ssword"), "{shown}");
    }
}

#[tokio::test]
async fn a_server_that_somebody_else_has_tripped_is_left_alone_as_long_as_it_says() {
    let locks = LockServer::start(Say::Granted).await;
    let site = Site::start_with(&locks.config()).await;
    let rest = site.rest();
    let hosts = hosts(&site, &["a", "b", "c"]).await;
    locks.trip(Duration::from_secs(5));
    let id = rest.started().await;
    let reason = rest.await_reason("h00", "slot-protocol").await;
    assert!(reason.ends_with("status 429: not a FleetLock error: later"), "{reason}");
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
    is_released(&rest, &id, &hosts).await;
    // Those that were on their way together, and nothing more: at this interval it would have been some hundred.
    assert!((1..=3).contains(&locks.limited()), "{}", locks.limited());
    assert!(!locks.is_tripped());
}

#[tokio::test]
async fn a_slot_that_is_not_taken_back_is_offered_until_it_is_after_the_run_and_by_another_process() {
    let locks = LockServer::start(Say::OneSlot).await;
    let mut site = Site::start_with(&locks.config()).await;
    let rest = site.rest();
    let hosts = hosts(&site, &["a"]).await;
    locks.fail_unlocks(12);
    let id = rest.started().await;
    let run = rest.ended(&id).await;
    assert_eq!(run.result(), Some("completed"));
    eventually("it to be offered", async || (locks.unlocks_to_fail() < 10).then_some(())).await;
    assert_eq!(locks.holder().as_deref(), Some("h00"));
    let left = locks.unlocks_to_fail();
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    is_released(&rest, &id, &hosts).await;
    assert_eq!((locks.holder(), locks.unlocks_to_fail()), (None, 0), "{left} were left");
    assert_eq!(locks.calls(), ["lock a/h00", "unlock a/h00: refused", "unlock a/h00"]);
}
