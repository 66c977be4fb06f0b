//! Hosts that take their slots from a FleetLock server: its answers are shown as reasons, and slots are always released.

use std::collections::BTreeMap;

use harness::host::Host;
use harness::lock_server::{LockServer, Mode};
use harness::rest::Rest;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_adapters::fleet_lock_client::{FleetLockClient, Timeouts};
use os_upgrade_kernel::LockOutcome;
use os_upgrade_protocol::{GroupName, HostName};
use serde_json::Value;

/// A site whose hosts take their slots from a server in this mode.
async fn site(mode: Mode, hosts: usize) -> (LockServer, Site, Rest, Vec<Host>) {
    let locks = LockServer::start(mode).await;
    let site = Site::start_with(&locks.config()).await;
    let hosts = site.hosts(hosts).await;
    let rest = site.rest();
    (locks, site, rest, hosts)
}

#[tokio::test]
async fn upgrades_happen_between_lock_and_unlock() {
    let (locks, site, rest, hosts) = site(Mode::Granted, 2).await;
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    assert_eq!(locks.calls(), ["lock default/h01"]);
    hosts[0].release("upgrade");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    eventually("the last slot to be released", async || (locks.calls().len() == 4).then_some(())).await;
    let calls = ["lock default/h01", "unlock default/h01", "lock default/h02", "unlock default/h02"];
    assert_eq!(locks.calls(), calls);
    drop(site);
}

#[tokio::test]
async fn lock_refusals_are_distinguished() {
    let (mut locks, site, rest, hosts) = site(Mode::Full, 1).await;
    let id = rest.start_run().await;
    let reason = rest.await_reason("h01", "slot-denied").await;
    let full = "semaphore currently full (failed_lock_semaphore_full)";
    assert_eq!(reason, format!("denied a slot of group default: {full}"));
    let entry = &rest.state().await["current-upgrade-info"]["hosts"][0];
    assert_eq!(entry["status"], "waiting");
    assert_eq!((&entry["why"]["text"], &entry["why"]["kind"]), (&reason.into(), &"slot-denied".into()));

    let protocol = "no slot of group default: the lock server violated the FleetLock protocol: ";
    locks.set_mode(Mode::Accepted);
    let reason = rest.await_reason("h01", "slot-protocol").await;
    assert_eq!(reason, format!("{protocol}status 202: only 200 grants"));
    locks.stop().await;
    let reason = rest.await_reason("h01", "slot-unreachable").await;
    assert!(reason.starts_with("no slot of group default: the lock server is unreachable: "), "{reason}");
    locks.set_mode(Mode::Redirect);
    locks.start_again().await;
    let reason = rest.await_reason("h01", "slot-protocol").await;
    assert_eq!(reason, format!("{protocol}status 307: redirect to /granted not followed"));
    locks.set_mode(Mode::Full);
    rest.await_reason("h01", "slot-denied").await;
    locks.set_mode(Mode::Page);
    let reason = rest.await_reason("h01", "slot-protocol").await;
    assert_eq!(reason, format!("{protocol}status 500: not a FleetLock error: <h1>Oops</h1>"));
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
    assert_eq!(hosts[0].script_log(), ["prepare"]);

    locks.set_mode(Mode::Granted);
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    eventually("the slot to be released", async || {
        (locks.calls().last()? == "unlock default/h01").then_some(())
    })
    .await;
}

#[tokio::test]
async fn slot_is_released_after_server_outage() {
    let (mut locks, mut site, rest, hosts) = site(Mode::Granted, 1).await;
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    locks.stop().await;
    hosts[0].release("upgrade");
    // The run has ended although the slot is not released yet.
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let journal = site.journal().await;
    assert!(journal.iter().any(|fact| fact["type"] == "slot-release-due"), "{journal:?}");
    assert!(!run.events().contains(&"h01 slot-released".to_owned()), "{:?}", run.events());
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    assert_eq!(locks.calls(), ["lock default/h01"]);
    locks.start_again().await;
    eventually("the slot to be released", async || {
        let run = rest.run(&id).await;
        run.events().contains(&"h01 slot-released".to_owned()).then_some(())
    })
    .await;
    // Once more, because requests of the killed process may have been under way.
    assert_eq!(locks.calls(), ["lock default/h01", "unlock default/h01", "unlock default/h01"]);
}

#[tokio::test]
async fn cancel_releases_possibly_granted_slot() {
    let (locks, site, rest, _hosts) = site(Mode::Full, 1).await;
    let id = rest.start_run().await;
    rest.await_reason("h01", "slot-denied").await;
    assert_eq!(rest.cancel().await, (204, Value::Null));
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("cancelled"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "cancelled")]));
    locks.set_mode(Mode::Granted);
    eventually("the slot to be released", async || {
        (locks.calls().last()? == "unlock default/h01").then_some(())
    })
    .await;
    assert!(!locks.calls().contains(&"lock default/h01".to_owned()), "{:?}", locks.calls());
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
}

#[tokio::test]
async fn failed_host_keeps_slot_until_success() {
    let (locks, site, rest, hosts) = site(Mode::Granted, 2).await;
    hosts[0].fail("upgrade", "half configured");
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    assert_eq!(locks.calls(), ["lock default/h01"]);
    hosts[0].repair();
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    eventually("all slots to be released", async || {
        (locks.calls().last()? == "unlock default/h01").then_some(())
    })
    .await;
    let unlocked: Vec<_> = locks.calls().into_iter().filter(|call| call.starts_with("unlock")).collect();
    assert_eq!(unlocked, ["unlock default/h02", "unlock default/h01"]);
    // The host that has had its turn comes after the other.
    assert_eq!(site.commands_to("upgrade").await, ["h01", "h02", "h01"]);
}

#[tokio::test]
async fn full_group_is_shown_as_reason() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = 0").await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    let id = rest.start_run().await;
    let reason = rest.await_reason("h01", "slot-denied").await;
    assert!(reason.starts_with("denied a slot of group default: "), "{reason}");
    assert_eq!(rest.cancel().await, (204, Value::Null));
    assert_eq!(rest.await_end(&id).await.result(), Some("cancelled"));
    assert_eq!(hosts[0].script_log(), ["prepare"]);
}

#[tokio::test]
async fn grant_after_run_end_is_released() {
    let (locks, site, rest, hosts) = site(Mode::Nothing, 1).await;
    assert_eq!(rest.trigger(r#"{"timeout":"2s"}"#).await, (204, Value::Null));
    let id = rest.newest_run().await;
    eventually("a request to the lock server", async || (locks.request_count() == 1).then_some(())).await;
    rest.await_reason("h01", "asking-for-slot").await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("timed-out"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "not-reached")]));
    locks.set_mode(Mode::OneSlot);
    eventually("the slot to be released", async || {
        (locks.calls() == ["lock default/h01", "unlock default/h01"]).then_some(())
    })
    .await;
    assert_eq!(locks.holder(), None);
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
    assert_eq!(hosts[0].script_log(), ["prepare"]);
}

/// The orchestrator's own FleetLock endpoint, used as by other sites and programs.
#[tokio::test]
async fn external_clients_share_slots_across_kill() {
    let mut site = Site::start().await;
    let url = format!("http://{}/fleetlock/", site.orchestrator.address());
    let client = FleetLockClient::new(&url.parse().unwrap(), Timeouts::default(), None).unwrap();
    let (group, node) = (GroupName::new("default").unwrap(), |id| HostName::new(id).unwrap());
    let rest = site.rest();
    let hosts = site.hosts(1).await;

    assert_eq!(client.lock(&group, &node("node-7")).await, LockOutcome::Granted);
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    rest.await_scheduled(&["h01"]).await;
    let denied = client.lock(&group, &node("node-8")).await;
    let LockOutcome::Denied { lock_kind, value } = &denied else { panic!("{denied:?}") };
    assert_eq!(lock_kind, "failed_lock_semaphore_full");
    assert!(value.starts_with("the only slot is held by node-7 since "), "{value}");
    // It stops waiting: it came first, so the host would leave the slot to it.
    assert_eq!(client.unlock(&group, &node("node-8")).await, LockOutcome::Granted);
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    let reason = rest.await_reason("h01", "slot-denied").await;
    assert_eq!(reason, format!("denied a slot of group default: {value} ({lock_kind})"));

    assert_eq!(client.unlock(&group, &node("node-7")).await, LockOutcome::Granted);
    hosts[0].await_script("upgrade-begins").await;
    assert!(matches!(client.lock(&group, &node("node-7")).await, LockOutcome::Denied { .. }));
    // A FleetLock agent on the host does this at every start.
    assert_eq!(client.unlock(&group, &node("h01")).await, LockOutcome::Granted);
    assert!(matches!(client.lock(&group, &node("node-7")).await, LockOutcome::Denied { .. }));
    hosts[0].release("upgrade");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    assert_eq!(client.lock(&group, &node("node-7")).await, LockOutcome::Granted);
}
