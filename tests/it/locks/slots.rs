//! Slots of external clients and operators: they survive restarts, change with the settings, and are shown.

use std::fs;

use harness::host::APPLICATION;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use nix::sys::signal::Signal;
use os_upgrade_protocol::{ApplicationName, HostName, subject};
use reqwest::Method;
use serde_json::{Value, json};

const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/v1/steady-state";

async fn request(orchestrator: &Orchestrator, path: &str, id: &str) -> u16 {
    orchestrator.rest.try_fleet_lock(path, "default", id).await.unwrap()
}

/// The group `default`, as an instance shows it.
async fn group(orchestrator: &Orchestrator) -> Value {
    let (status, state) = orchestrator.rest.get("/v1/state/fleet-lock").await;
    assert_eq!(status, 200, "{state}");
    state["groups"].as_array().unwrap().iter().find(|group| group["group"] == "default").unwrap().clone()
}

fn ids(group: &Value, what: &str) -> Vec<String> {
    group[what].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
}

async fn operate(orchestrator: &Orchestrator, what: &str, id: &str, reason: &str) -> u16 {
    let body = json!({ "group": "default", "id": id, "reason": reason }).to_string();
    orchestrator.rest.call(Method::POST, &format!("/v1/state/fleet-lock/{what}"), &body).await.0
}

/// Changes the number of slots in an instance's settings, and makes it reload them.
fn set_slots(orchestrator: &Orchestrator, slots: u32) {
    let file = orchestrator.directory().join("os-upgrade.toml");
    let text = fs::read_to_string(&file).unwrap();
    let kept = text.lines().take_while(|line| !line.starts_with("[fleet-lock.groups]"));
    let kept: Vec<&str> = kept.collect();
    fs::write(&file, format!("{}\n[fleet-lock.groups]\ndefault = {slots}\n", kept.join("\n"))).unwrap();
    orchestrator.signal(Signal::SIGHUP);
}

async fn await_slots(orchestrator: &Orchestrator, slots: u32) {
    eventually("the slots to take effect", async || {
        (group(orchestrator).await["slots"] == slots).then_some(())
    })
    .await;
}

#[tokio::test]
async fn holders_and_waiters_survive_restart() {
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "[fleet-lock.groups]\ndefault = 2");
    orchestrator.start_ready().await;
    assert_eq!(request(&orchestrator, LOCK, "node-1").await, 200);
    assert_eq!(operate(&orchestrator, "hold", "rack-7", "a new disk").await, 204);
    assert_eq!(request(&orchestrator, LOCK, "node-2").await, 409);
    let before = group(&orchestrator).await;
    assert_eq!(
        (ids(&before, "holders"), ids(&before, "waiters")),
        (vec!["node-1".to_owned(), "rack-7".to_owned()], vec!["node-2".to_owned()])
    );
    orchestrator.kill_and_start().await;
    orchestrator.ready().await;
    assert_eq!(group(&orchestrator).await, before);
    assert_eq!(request(&orchestrator, LOCK, "node-2").await, 409);
    assert_eq!(request(&orchestrator, LOCK, "node-1").await, 200);
    assert_eq!(operate(&orchestrator, "release", "rack-7", "the disk is in").await, 204);
    assert_eq!(request(&orchestrator, LOCK, "node-2").await, 200);
    assert_eq!(ids(&group(&orchestrator).await, "waiters"), [""; 0]);
}

#[tokio::test]
async fn slot_counts_change_without_restart() {
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "[fleet-lock.groups]\ndefault = 1");
    orchestrator.start_ready().await;
    assert_eq!(request(&orchestrator, LOCK, "a").await, 200);
    assert_eq!(request(&orchestrator, LOCK, "b").await, 409);
    set_slots(&orchestrator, 3);
    await_slots(&orchestrator, 3).await;
    assert_eq!(request(&orchestrator, LOCK, "b").await, 200);
    assert_eq!(request(&orchestrator, LOCK, "c").await, 200);
    set_slots(&orchestrator, 1);
    await_slots(&orchestrator, 1).await;
    let lowered = group(&orchestrator).await;
    assert_eq!((&lowered["held"], &lowered["excess"]), (&json!(3), &json!(2)));
    let message = "more holders than slots: none is granted until there are fewer";
    assert!(orchestrator.log().contains(message), "{}", orchestrator.log());
    for id in ["a", "b"] {
        assert_eq!(request(&orchestrator, UNLOCK, id).await, 200);
        assert_eq!(request(&orchestrator, LOCK, "d").await, 409);
    }
    assert_eq!(request(&orchestrator, UNLOCK, "c").await, 200);
    assert_eq!(request(&orchestrator, LOCK, "d").await, 200);

    // An invalid file, and settings that need a restart, change nothing.
    let file = orchestrator.directory().join("os-upgrade.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("default = 1", "default = -1")).unwrap();
    orchestrator.signal(Signal::SIGHUP);
    let refused = "the configuration is not applied: os-upgrade.toml:";
    eventually("the problem to be logged", async || orchestrator.log().contains(refused).then_some(())).await;
    fs::write(
        &file,
        text.replace("default = 1", "default = 2").replace("[nats]", "[site]\nname = \"x\"\n[nats]"),
    )
    .unwrap();
    orchestrator.signal(Signal::SIGHUP);
    await_slots(&orchestrator, 2).await;
    let later = "changed settings need a restart to take effect section=\"site\"";
    assert!(orchestrator.log().contains(later), "{}", orchestrator.log());
}

#[tokio::test]
async fn leaders_slot_settings_apply() {
    let nats = NatsServer::start().await;
    let [mut leader, mut follower] =
        [(); 2].map(|()| Orchestrator::new(&nats.url(), "[fleet-lock.groups]\ndefault = 2"));
    leader.start_ready().await;
    follower.start();
    follower.await_following(&leader).await;
    assert_eq!(request(&follower, LOCK, "a").await, 200);
    assert_eq!(request(&follower, LOCK, "b").await, 200);
    set_slots(&follower, 1);
    let read = "the configuration was read again";
    eventually("the follower to have read it", async || follower.log().contains(read).then_some(())).await;
    assert_eq!(group(&follower).await["slots"], 2);
    leader.kill().await;
    follower.await_leading().await;
    await_slots(&follower, 1).await;
    let lowered = group(&follower).await;
    assert_eq!((&lowered["held"], &lowered["excess"]), (&json!(2), &json!(1)));
    assert!(
        follower.log().contains("changed settings are in effect slots=\"default=1\""),
        "{}",
        follower.log()
    );
}

/// The remedy for a host whose worker never answers again.
#[tokio::test]
async fn operator_releases_slot_of_lost_host() {
    let site = Site::start().await;
    let mut hosts = site.hosts(2).await;
    hosts[0].fail("upgrade", "no space left");
    hosts[0].hold("upgrade");
    let rest = site.rest();
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-fails").await;
    assert_eq!(operate(&site.orchestrator, "release", "h01", "too slow").await, 409);
    hosts[0].release("upgrade");
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    hosts[0].stop().await;
    let held = group(&site.orchestrator).await;
    let reason = format!("failed in run {id} (upgrade failed: no space left)");
    assert_eq!(
        (ids(&held, "holders"), &held["holders"][0]["reason"]),
        (vec!["h01".to_owned()], &json!(reason))
    );
    assert_eq!(operate(&site.orchestrator, "release", "h01", "it burnt").await, 204);
    assert_eq!(ids(&group(&site.orchestrator).await, "holders"), [""; 0]);
    let released = site.journal().await.into_iter().find(|fact| fact["type"] == "holder-released").unwrap();
    assert_eq!(released["reason"], "it burnt");
    assert!(released["actor"].as_str().unwrap().starts_with("api "), "{released}");
}

#[tokio::test]
async fn departed_hosts_slot_is_released() {
    let site = Site::start_with("[fleet-lock]\nreclaim = \"inventory\"").await;
    let mut hosts = site.hosts(1).await;
    hosts[0].fail("upgrade", "no space left");
    let rest = site.rest();
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    hosts[0].stop().await;
    let forget = async || rest.call(Method::DELETE, "/v1/state/fleet-lock/default/h01", "").await;
    let (status, refused) = forget().await;
    let told = format!("h01 is in the inventory: its workers have announced themselves on {APPLICATION}");
    assert_eq!((status, &refused["errors"][0]["error-message"]), (409, &json!(told)));
    let (application, host) = (ApplicationName::new(APPLICATION).unwrap(), HostName::new("h01").unwrap());
    let withdrawn = site.jetstream().publish(subject::worker(&application, &host), "".into()).await.unwrap();
    withdrawn.await.unwrap();
    rest.await_scheduled(&[]).await;
    assert_eq!(forget().await, (204, Value::Null));
    assert_eq!(ids(&group(&site.orchestrator).await, "holders"), [""; 0]);
    assert_eq!(forget().await.0, 404);
}

/// Clients that ask again and again do not fill the journal.
#[tokio::test]
async fn refused_clients_share_records() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 4;
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    assert_eq!(request(&orchestrator, LOCK, "holder").await, 200);
    let jetstream = async_nats::jetstream::new(nats.client().await);
    let journal = async || {
        let stream = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap();
        stream.cached_info().state.last_sequence
    };
    let before = journal().await;
    // They do not ask at the same moment, so that they would not share one by chance.
    let apart = std::time::Duration::from_millis(15);
    let clients = (0..CLIENTS).map(async |client| {
        tokio::time::sleep(apart * u32::try_from(client).unwrap()).await;
        for round in 0..ROUNDS {
            let id = format!("node-{client}-{round}");
            assert_eq!(request(&orchestrator, LOCK, &id).await, 409);
        }
    });
    futures::future::join_all(clients).await;
    let records = journal().await - before;
    assert!(records < (CLIENTS * ROUNDS / 2) as u64, "{records} records");
    assert_eq!(ids(&group(&orchestrator).await, "waiters").len(), CLIENTS * ROUNDS);
    // Nobody waits for others while there is a slot.
    assert_eq!(request(&orchestrator, UNLOCK, "holder").await, 200);
    assert_eq!(request(&orchestrator, LOCK, "node-0-0").await, 200);
}
