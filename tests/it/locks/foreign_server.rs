//! A FleetLock server in the path: what it says shows as the reason, and slots are given back whatever happens.

use std::collections::BTreeMap;

use harness::host::Host;
use harness::lock_server::{LockServer, Say};
use harness::rest::Rest;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_adapters::fleetlock::{FleetLockClient, Timeouts};
use os_upgrade_kernel::LockOutcome;
use os_upgrade_protocol::{GroupName, HostName};
use serde_json::Value;

/// A site whose hosts take their slots from a server that says `say`.
async fn site(say: Say, hosts: usize) -> (LockServer, Site, Rest, Vec<Host>) {
    let locks = LockServer::start(say).await;
    let site = Site::start_with(&locks.config()).await;
    let hosts = site.hosts(hosts).await;
    let rest = site.rest();
    (locks, site, rest, hosts)
}

#[tokio::test]
async fn each_host_is_locked_before_its_upgrade_and_unlocked_after_it() {
    let (locks, site, rest, hosts) = site(Say::Granted, 2).await;
    hosts[0].hold("upgrade");
    let id = rest.started().await;
    hosts[0].await_said("upgrade-begins").await;
    assert_eq!(locks.calls(), ["lock default/h01"]);
    hosts[0].let_go("upgrade");
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
    eventually("the last slot to be given back", async || (locks.calls().len() == 4).then_some(())).await;
    let calls = ["lock default/h01", "unlock default/h01", "lock default/h02", "unlock default/h02"];
    assert_eq!(locks.calls(), calls);
    drop(site);
}

#[tokio::test]
async fn why_no_slot_is_had_is_told_apart_and_the_run_goes_on_when_it_is() {
    let (mut locks, site, rest, hosts) = site(Say::Full, 1).await;
    let id = rest.started().await;
    let reason = rest.await_reason("h01", "slot-denied").await;
    let full = "semaphore currently full (failed_lock_semaphore_full)";
    assert_eq!(reason, format!("denied a slot of group default: {full}"));
    let entry = &rest.state().await["current-upgrade-info"]["hosts"][0];
    assert_eq!(entry["status"], "waiting");
    assert_eq!((&entry["reason"], &entry["reason-kind"]), (&reason.into(), &"slot-denied".into()));

    let protocol = "protocol error of the lock server, no slot of group default: ";
    locks.say(Say::Accepted);
    let reason = rest.await_reason("h01", "slot-protocol").await;
    assert_eq!(reason, format!("{protocol}status 202: only 200 grants"));
    locks.stop().await;
    let reason = rest.await_reason("h01", "slot-unreachable").await;
    assert!(reason.starts_with("unreachable lock server, no slot of group default: "), "{reason}");
    locks.say(Say::Redirect);
    locks.start_again().await;
    let reason = rest.await_reason("h01", "slot-protocol").await;
    assert_eq!(reason, format!("{protocol}status 307: redirect to /granted not followed"));
    locks.say(Say::Full);
    rest.await_reason("h01", "slot-denied").await;
    locks.say(Say::Page);
    let reason = rest.await_reason("h01", "slot-protocol").await;
    assert_eq!(reason, format!("{protocol}status 500: not a FleetLock error: <h1>Oops</h1>"));
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
    assert_eq!(hosts[0].said(), ["prepare"]);

    locks.say(Say::Granted);
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
    eventually("the slot to be given back", async || {
        (locks.calls().last()? == "unlock default/h01").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_slot_whose_server_died_is_given_back_later_also_by_a_restarted_orchestrator() {
    let (mut locks, mut site, rest, hosts) = site(Say::Granted, 1).await;
    hosts[0].hold("upgrade");
    let id = rest.started().await;
    hosts[0].await_said("upgrade-begins").await;
    locks.stop().await;
    hosts[0].let_go("upgrade");
    // The run is over though the slot is not yet given back.
    let run = rest.ended(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert!(run.facts().contains(&"h01 slot-release-due".to_owned()), "{:?}", run.facts());
    assert!(!run.facts().contains(&"h01 slot-released".to_owned()), "{:?}", run.facts());
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    assert_eq!(locks.calls(), ["lock default/h01"]);
    locks.start_again().await;
    eventually("the slot to be given back", async || {
        let run = rest.run(&id).await;
        run.facts().contains(&"h01 slot-released".to_owned()).then_some(())
    })
    .await;
    assert_eq!(locks.calls(), ["lock default/h01", "unlock default/h01"]);
}

#[tokio::test]
async fn a_cancel_while_a_host_waits_for_its_slot_gives_it_back_should_it_have_been_granted() {
    let (locks, site, rest, _hosts) = site(Say::Full, 1).await;
    let id = rest.started().await;
    rest.await_reason("h01", "slot-denied").await;
    assert_eq!(rest.cancel().await, (204, Value::Null));
    let run = rest.ended(&id).await;
    assert_eq!(run.result(), Some("cancelled"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "cancelled")]));
    locks.say(Say::Granted);
    eventually("the slot to be given back", async || {
        (locks.calls().last()? == "unlock default/h01").then_some(())
    })
    .await;
    assert!(!locks.calls().contains(&"lock default/h01".to_owned()), "{:?}", locks.calls());
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
}

#[tokio::test]
async fn a_failed_host_keeps_its_slot_at_the_server_until_it_succeeds() {
    let (locks, site, rest, hosts) = site(Say::Granted, 2).await;
    hosts[0].fail("upgrade", "half configured");
    let id = rest.started().await;
    assert_eq!(rest.ended(&id).await.result(), Some("failed"));
    assert_eq!(locks.calls(), ["lock default/h01"]);
    hosts[0].mend();
    let id = rest.started().await;
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
    eventually("all slots to be given back", async || {
        (locks.calls().last()? == "unlock default/h02").then_some(())
    })
    .await;
    let unlocked: Vec<_> = locks.calls().into_iter().filter(|call| call.starts_with("unlock")).collect();
    assert_eq!(unlocked, ["unlock default/h01", "unlock default/h02"]);
    assert_eq!(site.commands_to("upgrade").await, ["h01", "h01", "h02"]);
}

#[tokio::test]
async fn a_full_embedded_group_makes_its_hosts_wait_with_the_reason() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = 0").await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    let id = rest.started().await;
    let reason = rest.await_reason("h01", "slot-denied").await;
    assert!(reason.starts_with("denied a slot of group default: "), "{reason}");
    assert_eq!(rest.cancel().await, (204, Value::Null));
    assert_eq!(rest.ended(&id).await.result(), Some("cancelled"));
    assert_eq!(hosts[0].said(), ["prepare"]);
}

#[tokio::test]
async fn a_slot_that_is_granted_after_the_run_is_over_is_given_back_and_not_used() {
    let (locks, site, rest, hosts) = site(Say::Nothing, 1).await;
    assert_eq!(rest.trigger(r#"{"timeout":"2s"}"#).await, (204, Value::Null));
    let id = rest.newest_run().await;
    eventually("the lock server to be asked", async || (locks.asked() == 1).then_some(())).await;
    rest.await_reason("h01", "asking-for-slot").await;
    let run = rest.ended(&id).await;
    assert_eq!(run.result(), Some("timed-out"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "cancelled")]));
    locks.say(Say::OneSlot);
    eventually("the slot to be given back", async || {
        (locks.calls() == ["lock default/h01", "unlock default/h01"]).then_some(())
    })
    .await;
    assert_eq!(locks.holder(), None);
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
    assert_eq!(hosts[0].said(), ["prepare"]);
}

/// The orchestrator's own FleetLock endpoint, asked as other sites and programs would ask it.
#[tokio::test]
async fn clients_from_outside_share_the_embedded_slots_also_across_a_kill() {
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
    // It does not wait any longer: the host would leave it the slot, as it came first.
    assert_eq!(client.unlock(&group, &node("node-8")).await, LockOutcome::Granted);
    hosts[0].hold("upgrade");
    let id = rest.started().await;
    let reason = rest.await_reason("h01", "slot-denied").await;
    assert_eq!(reason, format!("denied a slot of group default: {value} ({lock_kind})"));

    assert_eq!(client.unlock(&group, &node("node-7")).await, LockOutcome::Granted);
    hosts[0].await_said("upgrade-begins").await;
    assert!(matches!(client.lock(&group, &node("node-7")).await, LockOutcome::Denied { .. }));
    // An agent on the host asks for this whenever it starts.
    assert_eq!(client.unlock(&group, &node("h01")).await, LockOutcome::Granted);
    assert!(matches!(client.lock(&group, &node("node-7")).await, LockOutcome::Denied { .. }));
    hosts[0].let_go("upgrade");
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
    assert_eq!(client.lock(&group, &node("node-7")).await, LockOutcome::Granted);
}
