//! Power cuts: everything is killed at a random moment of a run, and disks hold their content of that moment, or of an
//! earlier one as far as it was not synced.
//!
//! `POWER_LOSS_ROUNDS` sets how many cuts each test makes, `OS_UPGRADE_TEST_SEED` the first seed.

use std::time::Duration;

use harness::host::Host;
use harness::random::{self, Random};
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

const HOSTS: usize = 3;
const CONFIG: &str = "/v1/config/os-upgrade";
/// About how long a run of these hosts takes.
const RUN_MILLIS: u64 = 400;

fn rounds() -> u64 {
    random::from_variable("POWER_LOSS_ROUNDS").unwrap_or(1)
}

/// Calls `round` with a seed for each cut.
async fn each_round(name: &str, mut round: impl AsyncFnMut(Random)) {
    let first = random::seed();
    for seed in first..first + rounds() {
        #[expect(clippy::print_stdout, reason = "shown when the test fails")]
        {
            println!("{name}: OS_UPGRADE_TEST_SEED={seed} POWER_LOSS_ROUNDS=1");
        }
        round(Random::new(seed)).await;
    }
}

async fn random_pause(random: &mut Random) {
    tokio::time::sleep(Duration::from_millis(random.below(RUN_MILLIS))).await;
}

/// A site with running hosts and one completed run.
async fn site() -> (Site, Vec<Host>) {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = 1\nclients = 10000").await;
    let hosts = site.hosts(HOSTS).await;
    let id = site.rest().start_run().await;
    site.rest().await_end(&id).await;
    (site, hosts)
}

/// Writes configurations until the site is down. Returns the number of the last one that was answered 2xx.
fn write_until_the_cut(site: &Site) -> tokio::task::JoinHandle<usize> {
    let rest = site.rest();
    tokio::spawn(async move {
        let mut answered = 0;
        loop {
            let name = format!("a{}", answered + 1);
            let config = json!({ "worker-applications": [{ "name": "os-upgrade-test" }, { "name": name }] });
            match rest.try_call(Method::PUT, CONFIG, &config.to_string()).await {
                Some((204, _)) => answered += 1,
                _ => return answered,
            }
        }
    })
}

/// Takes slots as external clients until the site is down. Returns how many were granted.
fn lock_until_the_cut(site: &Site) -> tokio::task::JoinHandle<usize> {
    let rest = site.rest();
    tokio::spawn(async move {
        for granted in 0.. {
            let id = format!("n{}", granted + 1);
            if rest.try_fleet_lock("/v1/pre-reboot", "clients", &id).await != Some(200) {
                return granted;
            }
        }
        usize::MAX
    })
}

/// Every granted slot is held, and at most one more, whose request was pending.
async fn assert_no_slot_is_missing(site: &Site, granted: usize) {
    let state = site.rest().get("/v1/state/fleet-lock").await.1;
    let clients =
        state["groups"].as_array().unwrap().iter().find(|group| group["group"] == "clients").unwrap();
    let held: Vec<&str> =
        clients["holders"].as_array().unwrap().iter().map(|holder| holder["id"].as_str().unwrap()).collect();
    for number in 1..=granted {
        assert!(held.contains(&format!("n{number}").as_str()), "n{number} of {granted} is missing: {held:?}");
    }
    assert!(held.len() <= granted + 1, "{granted} were granted, {held:?} are held");
}

/// The number of the configuration in force.
async fn current_configuration(site: &Site) -> usize {
    let config = site.rest().get(CONFIG).await.1;
    let name = config["worker-applications"][1]["name"].as_str().map_or("a0", |name| name);
    name[1..].parse().unwrap()
}

/// Every acknowledged write exists, and at most one more, which was pending.
async fn assert_nothing_answered_is_missing(site: &Site, answered: usize) {
    let found = current_configuration(site).await;
    assert!(found == answered || found == answered + 1, "{answered} were answered, {found} is in force");
}

fn upgrades(host: &Host) -> usize {
    host.script_log().iter().filter(|line| *line == "upgrade-begins").count()
}

/// All acknowledged writes are synced: a cut at any moment loses none of them.
#[tokio::test]
async fn synced_writes_survive_power_loss() {
    each_round("synced", async |mut random| {
        let (mut site, hosts) = site().await;
        let id = site.rest().start_run().await;
        let (writer, locker) = (write_until_the_cut(&site), lock_until_the_cut(&site));
        random_pause(&mut random).await;
        site.orchestrator.kill().await;
        site.nats.kill();
        let (answered, granted) = (writer.await.unwrap(), locker.await.unwrap());
        site.nats.start_again().await;
        site.orchestrator.start_ready().await;
        site.orchestrator.await_leading().await;
        assert_nothing_answered_is_missing(&site, answered).await;
        assert_no_slot_is_missing(&site, granted).await;
        let run = site.rest().await_end(&id).await;
        assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
        assert_eq!(hosts.iter().map(upgrades).collect::<Vec<_>>(), [2; HOSTS]);
    })
    .await;
}

/// The streams are older than the store: the loss is noticed and named exactly, nothing is sent, and the site continues
/// from the store.
#[tokio::test]
async fn rolled_back_streams_restore_from_store() {
    each_round("older streams", async |mut random| {
        let (mut site, hosts) = site().await;
        site.rest().start_run().await;
        let first_writer = write_until_the_cut(&site);
        random_pause(&mut random).await;
        site.nats.kill();
        let synced = site.nats.save();
        let before = first_writer.await.unwrap();
        site.nats.start_again().await;
        // The part that will be lost: the rest of the run, and more configurations.
        site.orchestrator.ready().await;
        let writer = write_until_the_cut(&site);
        tokio::time::sleep(Duration::from_millis(50)).await;
        random_pause(&mut random).await;
        let journal = site.last_sequence(subject::JOURNAL_STREAM).await;
        eventually("the store to have what is about to be lost", async || {
            (stored(&site).await?.0 >= journal).then_some(())
        })
        .await;
        site.orchestrator.kill().await;
        site.nats.kill();
        let answered = writer.await.unwrap();
        let (known, _) = stored(&site).await.unwrap();
        site.nats.restore_streams(&synced);
        site.nats.start_again().await;
        // Read while nothing is appended.
        let kept = site.last_sequence(subject::JOURNAL_STREAM).await;
        assert!(known > kept, "{known} {kept} {before}");

        site.orchestrator.start();
        let reason = eventually("it to say what is lost", async || {
            site.orchestrator.readiness().await.filter(|reason| reason.contains(" lost, "))
        })
        .await;
        let missing = format!("the journal ends at {kept}: ");
        assert!(reason.contains(&missing), "{reason}");
        let lost = if known == kept + 1 {
            format!("journal message {known} is lost")
        } else {
            format!("journal messages {} to {known} are lost", kept + 1)
        };
        assert!(reason.contains(&lost), "{reason}");
        let commands = site.commands().await;
        assert_eq!(site.rest().trigger("").await.0, 503);
        site.orchestrator.terminate().await;
        assert_eq!(site.commands().await, commands, "nothing is sent");
        assert_eq!(site.last_sequence(subject::JOURNAL_STREAM).await, kept, "nothing is appended");

        let dry = ["restore", "--from-store", "--dry-run", "--output", "json"];
        let (code, planned, stderr) = site.orchestrator.command(&dry).await;
        assert_eq!(code, Some(0), "{stderr}");
        let plan: Value = serde_json::from_str(&planned).unwrap();
        assert_eq!(plan["plan"]["known-to"], known);
        let begun = hosts.iter().map(upgrades).collect::<Vec<_>>();
        restore_with_a_cut(&site, &mut random).await;
        site.orchestrator.start_ready().await;
        site.orchestrator.await_leading().await;
        // The store had everything except the last facts, which had not reached it yet.
        let found = current_configuration(&site).await;
        assert!(found <= answered.max(before) + 1, "{found}, {answered} were answered");
        site.rest().await_scheduled(&["h01", "h02", "h03"]).await;
        let run = site.rest().run(&site.rest().newest_run().await).await;
        assert!(run.result().is_some(), "the active run is over");
        site.orchestrator.done(&["resume"]).await;
        // A new run completes once the hosts that were upgrading have answered `done`.
        let again = site.rest().start_run().await;
        let run = site.rest().await_end(&again).await;
        assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
        let now = hosts.iter().map(upgrades).collect::<Vec<_>>();
        for (now, begun) in now.iter().zip(begun) {
            assert!(*now > begun && *now <= begun + 2, "{now} {begun}");
        }
    })
    .await;
}

/// Restores from the store; the first attempt is killed at a random moment.
async fn restore_with_a_cut(site: &Site, random: &mut Random) {
    let arguments = ["restore", "--from-store", "--yes", "--output", "json"];
    let cut = Duration::from_millis(random.below(150));
    // Dropping the future kills the process.
    let _ = tokio::time::timeout(cut, site.orchestrator.command(&arguments)).await;
    eventually("the restoration to be finished", async || {
        let (code, printed, stderr) = site.orchestrator.command(&arguments).await;
        // A process killed a moment ago may still hold the directory.
        assert!(code == Some(0) || stderr.contains("in use"), "{stderr}");
        (code == Some(0)).then(|| assert!(!printed.is_empty()))
    })
    .await;
}

/// The journal sequence that the store has reached, and its number of facts.
async fn stored(site: &Site) -> Option<(u64, u64)> {
    let folded = os_upgrade_store::fold(&site.orchestrator.store_file(), "site").await;
    folded.unwrap().map(|folded| (folded.position.sequence, folded.facts))
}

/// The store is older than the streams: nothing is lost, and the store catches up.
#[tokio::test]
async fn rolled_back_store_catches_up() {
    each_round("older store", async |mut random| {
        let (mut site, _hosts) = site().await;
        let id = site.rest().start_run().await;
        random_pause(&mut random).await;
        site.orchestrator.kill().await;
        let synced = copy_of_store(&site);
        site.orchestrator.start_ready().await;
        site.orchestrator.await_leading().await;
        let (writer, locker) = (write_until_the_cut(&site), lock_until_the_cut(&site));
        random_pause(&mut random).await;
        site.orchestrator.kill().await;
        site.nats.kill();
        let (answered, granted) = (writer.await.unwrap(), locker.await.unwrap());
        restore_store(&site, &synced);
        site.nats.start_again().await;
        site.orchestrator.start_ready().await;
        site.orchestrator.await_leading().await;
        assert_nothing_answered_is_missing(&site, answered).await;
        assert_no_slot_is_missing(&site, granted).await;
        assert_eq!(site.rest().await_end(&id).await.result(), Some("completed"));
        let facts = site.journal().await.len() as u64;
        eventually("the history to have every fact", async || {
            (stored(&site).await?.1 >= facts).then_some(())
        })
        .await;
    })
    .await;
}

const STORE_FILES: [&str; 3] = ["os-upgrade.db", "os-upgrade.db-wal", "os-upgrade.db-shm"];

/// Copies the store's files.
fn copy_of_store(site: &Site) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in STORE_FILES {
        let _ = std::fs::copy(site.orchestrator.store_file().with_file_name(name), copy.path().join(name));
    }
    copy
}

fn restore_store(site: &Site, copy: &TempDir) {
    for name in STORE_FILES {
        let place = site.orchestrator.store_file().with_file_name(name);
        let _ = std::fs::remove_file(&place);
        let _ = std::fs::copy(copy.path().join(name), place);
    }
}
