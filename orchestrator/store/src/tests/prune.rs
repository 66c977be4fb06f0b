//! What the store does not have any more, or never had, and what it gives back.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_shell::journal::Committed;
use os_upgrade_test_site::{TestSite, put_config};

use super::*;
use crate::Resumption;
use crate::prune::RUNS_KEPT_MIN;

/// A site after `runs` runs over one host, and their records.
fn after_runs(runs: usize) -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    for number in 0..runs {
        records.extend(site.whole_run(&format!("r{number}")));
    }
    (site, records)
}

/// A store that has all `records`, and begins folding with the last one.
async fn store_of(records: &[Committed]) -> TestStore {
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, records).await.unwrap();
    store.projector.advance_base(records.last().unwrap()).await.unwrap();
    store
}

async fn prune_all(store: &mut TestStore, before: DateTime<Utc>) {
    while store.projector.prune(Some(before)).await.unwrap() {}
}

async fn count(store: &TestStore, select: &'static str) -> u64 {
    rows(&store.path(), select).await[0].parse().unwrap()
}

#[tokio::test]
async fn old_runs_are_deleted_and_the_newest_stay() {
    let runs = RUNS_KEPT_MIN as usize + 25;
    let (site, records) = after_runs(runs);
    let mut store = store_of(&records).await;
    let facts = count(&store, "SELECT count(*) FROM facts").await;

    prune_all(&mut store, "2026-11-20T00:00:00Z".parse().unwrap()).await;
    assert_eq!(count(&store, "SELECT count(*) FROM facts").await, facts, "nothing is old yet");

    prune_all(&mut store, site.now + TimeDelta::days(1)).await;
    let kept = "SELECT count(*) || ' ' || min(number) FROM runs";
    assert_eq!(rows(&store.path(), kept).await, ["200 26"]);
    assert_eq!(rows(&store.path(), "SELECT total FROM run_totals").await, ["225"], "counters never fall");
    assert_eq!(rows(&store.path(), "SELECT * FROM host_totals").await, ["upgraded | 225"]);
    for select in [
        "SELECT count(*) FROM run_hosts WHERE run NOT IN (SELECT id FROM runs)",
        "SELECT count(*) FROM facts WHERE run IS NOT NULL AND run NOT IN (SELECT id FROM runs)",
    ] {
        assert_eq!(count(&store, select).await, 0, "{select}");
    }
    let before_base =
        "SELECT count(*) FROM facts WHERE run IS NULL AND sequence < (SELECT sequence FROM base)";
    assert_eq!(count(&store, before_base).await, 0);
    let folded = fold(&store.path(), "site").await.unwrap().unwrap();
    assert_eq!(folded.state, site.state, "it can still be restored from");
}

/// However old the last fact is: nothing after it can have been pruned.
#[tokio::test]
async fn reader_of_the_last_fact_goes_on_after_pruning() {
    let (site, records) = after_runs(RUNS_KEPT_MIN as usize + 25);
    let mut store = store_of(&records).await;
    let history = store.projector.history().await.unwrap();
    let first = history.earliest().await.unwrap().unwrap();
    let last = history.end().await.unwrap().unwrap().last;
    assert_eq!(history.resumption(first).await.unwrap(), Resumption::Possible);
    prune_all(&mut store, site.now + TimeDelta::days(10_000)).await;
    assert_eq!(history.resumption(last).await.unwrap(), Resumption::Possible);

    let earliest = history.earliest().await.unwrap().unwrap();
    assert!(earliest > first, "{earliest}");
    assert_eq!(history.resumption(earliest.before()).await.unwrap(), Resumption::Possible);
    assert_eq!(history.resumption(first).await.unwrap(), Resumption::Incomplete);
}

#[tokio::test]
async fn nothing_that_folding_needs_is_deleted() {
    let (site, records) = after_runs(RUNS_KEPT_MIN as usize + 25);
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records).await.unwrap();
    let long_after = site.now + TimeDelta::days(10_000);
    prune_all(&mut store, long_after).await;
    assert_eq!(count(&store, "SELECT count(*) FROM runs").await, 225, "without a base");

    // In the middle of the fifth run.
    store.projector.advance_base(&records[2 + 4 * 5 + 3]).await.unwrap();
    prune_all(&mut store, long_after).await;
    assert_eq!(count(&store, "SELECT min(number) FROM runs").await, 5);
    assert_eq!(fold(&store.path(), "site").await.unwrap().unwrap().state, site.state);
}

#[tokio::test]
async fn space_is_given_back() {
    let (site, records) = after_runs(RUNS_KEPT_MIN as usize * 4);
    let mut store = store_of(&records).await;
    store.projector.sync().await.unwrap();
    let pages = |store: &TestStore| {
        let path = store.path();
        async move { rows(&path, "PRAGMA page_count").await[0].parse::<u64>().unwrap() }
    };
    let before = pages(&store).await;
    prune_all(&mut store, site.now + TimeDelta::days(1)).await;
    // What a step frees is given back by the same one, or the next.
    store.projector.prune(Some(site.now)).await.unwrap();
    let after = pages(&store).await;
    assert!(after * 2 < before, "{before} pages, then {after}");
    assert_eq!(count(&store, "PRAGMA freelist_count").await, 0);
}

/// Nobody waits for a run that was under way before a gap, and is over after it.
#[tokio::test]
async fn run_that_ended_in_a_gap_has_an_unknown_result() {
    let (_, records) = after_runs(4);
    let began = records.iter().position(|committed| committed.before.run.is_some()).unwrap();
    let is_last =
        |committed: &Committed| committed.before.last_run.as_ref().is_some_and(|run| run.id.as_str() == "r0");
    let ended = records.iter().rposition(is_last).unwrap();
    for (after, result) in [(ended, "completed"), (records.len() - 1, "unknown")] {
        let mut store = TestStore::new().await;
        store.projector.apply(&streams(), None, &records[..=began]).await.unwrap();
        let path = store.path();
        let result_now = async || rows(&path, "SELECT result FROM runs WHERE id = 'r0'").await;
        assert_eq!(result_now().await, ["-"]);
        store.projector.apply_after_gap(&streams(), &records[after..]).await.unwrap();
        assert_eq!(result_now().await, [result], "after record {after}");
    }
}

/// The journal was trimmed beyond what the store had.
#[tokio::test]
async fn store_goes_on_after_a_gap() {
    let (site, records) = after_runs(6);
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records[..7]).await.unwrap();
    store.projector.apply_after_gap(&streams(), &records[19..21]).await.unwrap();
    store.projector.apply(&streams(), Some(records[20].sequence), &records[21..]).await.unwrap();

    let gaps = rows(&store.path(), "SELECT last, next FROM gaps").await;
    assert_eq!(gaps, [format!("{} | {}", records[6].sequence, records[19].sequence)]);
    let folded = fold(&store.path(), "site").await.unwrap().unwrap();
    assert_eq!(folded.state, site.state);
    assert_eq!(folded.position.sequence, records.last().unwrap().sequence);
    // What it had stays, and a run that began in the gap is there.
    assert_eq!(rows(&store.path(), "SELECT id FROM runs ORDER BY id").await, ["r0", "r2", "r3", "r4", "r5"]);
    let other = Streams { journal_created_at: "2026-11-20T00:00:00Z".parse().unwrap(), ..streams() };
    let error = store.projector.apply_after_gap(&other, &records[25..]).await.unwrap_err();
    assert!(matches!(error, ApplyError::OtherStreams { .. }), "{error:?}");
}
