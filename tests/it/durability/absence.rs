//! NATS is away in the middle of upgrades, for longer than anything waits for it: what was begun comes to its end without
//! it and is answered when it is back, and the next run finds every host well.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_worker_rules::limits;
use serde_json::json;
use tokio::time::Instant;

/// Longer than a command waits for a sign of life, and a host is taken for reachable without one, 30 s both. A lease, a
/// request and a stream that is silent are given up after seconds. `make absence` has it for an hour.
fn absence() -> Duration {
    match std::env::var("ABSENCE_SECONDS") {
        Ok(seconds) => Duration::from_secs(seconds.parse().unwrap()),
        Err(_) => limits::ACK_WAIT.to_std().unwrap() + Duration::from_secs(5),
    }
}

/// Too slow for `make test`: `make test-at-length` runs these, and so does `make soak`.
mod at_length {
    use super::*;

    #[tokio::test]
    async fn upgrades_end_while_nats_is_away() {
        let mut site = Site::start_with("[fleet-lock.groups]\ndefault = 3").await;
        let rest = site.rest();
        let rollout = json!({ "rollout": { "max-concurrent": 3 } });
        assert_eq!(rest.change_configuration(&rest.configuration_tag().await, &rollout).await, 204);
        let hosts = site.hosts(3).await;
        for host in &hosts {
            host.hold("upgrade");
        }
        let id = rest.started().await;
        for host in &hosts {
            host.await_said("upgrade-begins").await;
        }
        site.nats.kill();
        let back = Instant::now() + absence();
        // One ends meanwhile; one is killed, taken up by its next worker and ends; one goes on for longer.
        hosts[0].let_go("upgrade");
        hosts[0].await_said("upgrade-ends").await;
        hosts[1].kill_worker();
        hosts[1].await_said("upgrade-resumed").await;
        hosts[1].let_go("upgrade");
        hosts[1].await_said("upgrade-ends").await;
        tokio::time::sleep_until(back).await;
        site.nats.start_again().await;
        rest.await_status("h01", "upgraded").await;
        rest.await_status("h02", "upgraded").await;
        rest.await_status("h03", "upgrading").await;
        hosts[2].let_go("upgrade");
        let run = rest.ended(&id).await;
        let upgraded = BTreeMap::from(["h01", "h02", "h03"].map(|host| (host, "upgraded")));
        assert_eq!((run.result(), run.statuses()), (Some("completed"), upgraded.clone()));
        let whole = ["prepare", "upgrade-begins", "upgrade-ends"];
        assert_eq!(hosts[0].said(), whole);
        assert_eq!(hosts[1].said(), ["prepare", "upgrade-begins", "upgrade-resumed", "upgrade-ends"]);
        assert_eq!(hosts[2].said(), whole);

        let run = rest.ended(&rest.started().await).await;
        assert_eq!((run.result(), run.statuses()), (Some("completed"), upgraded));
    }

    #[tokio::test]
    async fn host_can_be_retried_after_a_run_timed_out() {
        let mut site = Site::start().await;
        let rest = site.rest();
        let hosts = site.hosts(1).await;
        hosts[0].hold("upgrade");
        let id = rest.started_to_time_out(&hosts[0]).await;
        site.nats.kill();
        let back = Instant::now() + absence();
        hosts[0].let_go("upgrade");
        hosts[0].await_said("upgrade-ends").await;
        tokio::time::sleep_until(back).await;
        site.nats.start_again().await;
        // Which comes first is open: the end of the run, or the answer that was given within its time.
        let run = rest.ended(&id).await;
        assert!(matches!(run.result(), Some("completed" | "timed-out")), "{run:?}");
        eventually("the host's slot to be free", async || {
            let (_, state) = rest.get("/v1/state/fleet-lock").await;
            state["groups"][0]["holders"].as_array()?.is_empty().then_some(())
        })
        .await;
        let run = rest.ended(&rest.started().await).await;
        assert_eq!(
            (run.result(), run.statuses()),
            (Some("completed"), BTreeMap::from([("h01", "upgraded")]))
        );
        let begins = hosts[0].said().into_iter().filter(|said| said == "upgrade-begins").count();
        assert_eq!(begins, 2);
    }
}
