//! NATS is away during upgrades, for longer than any timeout: started upgrades finish without it and are answered when it
//! is back, and the next run succeeds on every host.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_worker_rules::limits;
use serde_json::json;
use tokio::time::Instant;

/// Longer than the acknowledgement timeout of a command and the time after which a silent host is unreachable, both 30 s.
/// Leases, requests and silent streams time out within seconds. `make absence` makes it an hour.
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
    async fn upgrades_finish_without_nats() {
        let mut site = Site::start_with("[fleet-lock.groups]\ndefault = 3").await;
        let rest = site.rest();
        let rollout = json!({ "rollout": { "max-concurrent": 3 } });
        assert_eq!(rest.change_configuration(&rest.configuration_tag().await, &rollout).await, 204);
        let hosts = site.hosts(3).await;
        for host in &hosts {
            host.hold("upgrade");
        }
        let id = rest.start_run().await;
        for host in &hosts {
            host.await_script("upgrade-begins").await;
        }
        site.nats.kill();
        let back = Instant::now() + absence();
        // One ends in the meantime; one is killed, resumed by the restarted worker, and ends; one takes longer.
        hosts[0].release("upgrade");
        hosts[0].await_script("upgrade-ends").await;
        hosts[1].kill_worker();
        hosts[1].await_script("upgrade-resumed").await;
        hosts[1].release("upgrade");
        hosts[1].await_script("upgrade-ends").await;
        tokio::time::sleep_until(back).await;
        site.nats.start_again().await;
        rest.await_status("h01", "upgraded").await;
        rest.await_status("h02", "upgraded").await;
        rest.await_status("h03", "upgrading").await;
        hosts[2].release("upgrade");
        let run = rest.await_end(&id).await;
        let upgraded = BTreeMap::from(["h01", "h02", "h03"].map(|host| (host, "upgraded")));
        assert_eq!((run.result(), run.statuses()), (Some("completed"), upgraded.clone()));
        let whole = ["prepare", "upgrade-begins", "upgrade-ends"];
        assert_eq!(hosts[0].script_log(), whole);
        assert_eq!(hosts[1].script_log(), ["prepare", "upgrade-begins", "upgrade-resumed", "upgrade-ends"]);
        assert_eq!(hosts[2].script_log(), whole);

        let run = rest.await_end(&rest.start_run().await).await;
        assert_eq!((run.result(), run.statuses()), (Some("completed"), upgraded));
    }

    #[tokio::test]
    async fn host_can_be_retried_after_timeout() {
        let mut site = Site::start().await;
        let rest = site.rest();
        let hosts = site.hosts(1).await;
        hosts[0].hold("upgrade");
        let id = rest.start_run_timing_out(&hosts[0]).await;
        site.nats.kill();
        let back = Instant::now() + absence();
        hosts[0].release("upgrade");
        hosts[0].await_script("upgrade-ends").await;
        tokio::time::sleep_until(back).await;
        site.nats.start_again().await;
        // Either may come first: the end of the run, or the answer that was given in time.
        let run = rest.await_end(&id).await;
        assert!(matches!(run.result(), Some("completed" | "timed-out")), "{run:?}");
        eventually("the host's slot to be free", async || {
            let (_, state) = rest.get("/v1/state/fleet-lock").await;
            state["groups"][0]["holders"].as_array()?.is_empty().then_some(())
        })
        .await;
        let run = rest.await_end(&rest.start_run().await).await;
        assert_eq!(
            (run.result(), run.statuses()),
            (Some("completed"), BTreeMap::from([("h01", "upgraded")]))
        );
        let begins = hosts[0].script_log().into_iter().filter(|line| line == "upgrade-begins").count();
        assert_eq!(begins, 2);
    }
}
