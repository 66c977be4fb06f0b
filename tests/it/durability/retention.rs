//! The streams are trimmed, and nothing is missing: neither the state, nor the history, nor what a new instance needs.

use async_nats::jetstream::{self, stream};
use futures::future::join_all;
use harness::orchestrator::Orchestrator;
use harness::rest::Rest;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;

/// So many FleetLock clients take and give back slots at once: snapshots are soon due.
const CLIENTS: usize = 32;
/// A server that syncs every message: a snapshot need not stand before the streams are trimmed to it.
const SYNCED: &str = "sync-interval = \"0s\"\n[fleet-lock.groups]\ndefault = 32";

async fn state_of(jetstream: &jetstream::Context, name: &str) -> stream::State {
    jetstream.get_stream(name).await.unwrap().cached_info().state.clone()
}

/// Each client takes its slot and gives it back.
async fn lock_and_unlock(rest: &Rest) {
    let clients = (0..CLIENTS).map(async |client| {
        let id = format!("node-{client}");
        for path in ["/v1/pre-reboot", "/v1/steady-state"] {
            assert_eq!(rest.try_fleet_lock(path, "default", &id).await, Some(200), "{path} {id}");
        }
    });
    join_all(clients).await;
}

/// Slots change hands until the journal begins after `sequence`.
async fn until_trimmed_beyond(sequence: u64, rest: &Rest, jetstream: &jetstream::Context) -> stream::State {
    loop {
        for _ in 0..50 {
            lock_and_unlock(rest).await;
        }
        let journal = state_of(jetstream, subject::JOURNAL_STREAM).await;
        if journal.first_sequence > sequence {
            return journal;
        }
    }
}

async fn completed_run(rest: &Rest) -> String {
    let run = rest.start_run().await;
    assert_eq!(rest.await_end(&run).await.result(), Some("completed"));
    run
}

#[tokio::test]
async fn streams_are_trimmed_and_nothing_is_missing() {
    let mut site = Site::start_with(SYNCED).await;
    let rest = site.rest();
    let jetstream = jetstream::new(site.nats.client().await);
    let mut follower = Orchestrator::new(&site.nats.url(), SYNCED);
    follower.start_ready().await;
    let _hosts = site.hosts(2).await;
    let run = rest.start_run().await;
    let run_before = rest.await_end(&run).await;
    assert_eq!(run_before.result(), Some("completed"));

    let journal = until_trimmed_beyond(1, &rest, &jetstream).await;
    let control = eventually("the control stream to be purged", async || {
        let control = state_of(&jetstream, subject::CONTROL_STREAM).await;
        (control.messages < 8).then_some(control)
    })
    .await;
    assert_eq!(control.first_sequence, 1, "fences stay");
    assert_eq!(follower.rest.await_end(&run).await, run_before);

    // What is trimmed while an instance is away is missing in its history, and it says so. The trim does not wait for it for
    // ten minutes, because a leader that has just started has not heard of it.
    follower.terminate().await;
    let [missed, last] = [completed_run(&rest).await, completed_run(&rest).await];
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    let away_until = state_of(&jetstream, subject::JOURNAL_STREAM).await.last_sequence;
    let later = until_trimmed_beyond(away_until, &rest, &jetstream).await;
    assert!(later.messages < 3 * journal.last_sequence, "{journal:?}, then {later:?}");
    follower.start_ready().await;
    eventually("the gap to be seen", async || {
        let metrics = follower.rest.get_as("/metrics", "*/*").await;
        metrics.contains("\nos_upgrade_history_gaps 1\n").then_some(())
    })
    .await;
    assert_eq!(follower.rest.run(&missed).await.result(), None);
    let known = follower.rest.run(&last).await;
    assert_eq!(known.statuses(), rest.run(&last).await.statuses(), "it is in the snapshot");
    assert_eq!(follower.rest.run(&run).await, run_before);

    // Whoever restarts knows everything, and its history as well.
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    assert_eq!(rest.run(&run).await, run_before);
    follower.ready().await;

    // A store that is lost begins with the snapshot, in which the last run is.
    follower.terminate().await;
    std::fs::remove_file(follower.store_file()).unwrap();
    follower.start_ready().await;
    let known = eventually("the history to be filled", async || {
        let known = follower.rest.run(&last).await;
        known.result().is_some().then_some(known)
    })
    .await;
    assert_eq!(known.statuses(), rest.run(&last).await.statuses());
    assert_eq!(known.events(), Vec::<String>::new(), "from before the snapshot");
    let shown = rest.state().await;
    assert_eq!(follower.rest.state().await["last-upgrade-info"], shown["last-upgrade-info"]);

    let next = rest.start_run().await;
    assert_eq!(rest.await_end(&next).await.result(), Some("completed"));
    assert_eq!(follower.rest.await_end(&next).await, rest.run(&next).await);
    for orchestrator in [&site.orchestrator, &follower] {
        let log = orchestrator.log();
        assert!(!log.contains("halted"), "{log}");
    }
}
