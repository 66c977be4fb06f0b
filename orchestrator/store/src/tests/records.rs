//! Records in, rows out.

use chrono::TimeDelta;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_protocol::{Action, Outcome};
use os_upgrade_shell::journal::Committed;
use os_upgrade_test_site::{TestSite, cancel, put_config, run_id, trigger};

use super::*;

/// Configuration, fence and a completed run on three hosts.
pub(super) fn completed_run() -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    (site, records)
}

/// A run whose only `upgrade` fails, so that its slot stays held.
fn failed_run() -> Vec<Committed> {
    let mut site = TestSite::new(["h01", "h02"]);
    let mut records =
        vec![site.decide_record(&[put_config()]), site.fence(), site.decide_record(&[trigger("r1")])];
    records.push(site.send());
    records.push(site.reply(["h01", "h02"], Action::Prepare, &Outcome::Done));
    records.push(site.send());
    records.push(site.reply(["h01"], Action::Upgrade, &Outcome::error("disk full")));
    records
}

#[tokio::test]
async fn ends_of_runs_and_hosts_are_counted_once() {
    let mut store = TestStore::new().await;
    // One record each time: a host of a run that has ended may still change its row.
    let records = failed_run();
    let mut follows = None;
    for record in &records {
        store.projector.apply(&streams(), follows, std::slice::from_ref(record)).await.unwrap();
        follows = Some(record.sequence);
    }
    let totals = store.projector.history().await.unwrap().totals().await.unwrap();
    let run = RunTotal {
        result: "failed".to_owned(),
        trigger_kind: "operator".to_owned(),
        total: 1,
        last_ended_at: "2026-11-21T05:00:07Z".parse().unwrap(),
    };
    assert_eq!(totals, Totals { runs: vec![run], hosts: vec![("failed".to_owned(), 1)] });
    store.projector.reset().await.unwrap();
    let totals = store.projector.history().await.unwrap().totals().await.unwrap();
    assert_eq!(totals, Totals::default());
}

/// An instance with an empty store begins with a snapshot, in which the last run may have ended.
#[tokio::test]
async fn ends_before_the_first_record_are_counted() {
    let mut site = TestSite::new(["h01", "h02"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    let half = records.len() - 2;
    records.push(site.decide_record(&[trigger("r2")]));
    let totals = async |store: &TestStore| store.projector.history().await.unwrap().totals().await.unwrap();
    let mut whole = TestStore::new().await;
    whole.projector.apply(&streams(), None, &records).await.unwrap();
    let expected = totals(&whole).await;
    assert_eq!((expected.runs[0].total, expected.hosts.as_slice()), (1, &[("upgraded".to_owned(), 2)][..]));
    for first in 0..records.len() {
        let mut store = TestStore::new().await;
        store.projector.apply(&streams(), None, &records[first..]).await.unwrap();
        assert_eq!(totals(&store).await, expected, "from record {first} on");
    }
    // What is missing after a gap is counted then, and nothing twice.
    for next in 1..records.len() {
        let mut store = TestStore::new().await;
        store.projector.apply(&streams(), None, &records[..half.min(next)]).await.unwrap();
        store.projector.apply_after_gap(&streams(), &records[next..]).await.unwrap();
        assert_eq!(totals(&store).await, expected, "a gap before record {next}");
    }
}

#[tokio::test]
async fn rows_of_a_failed_run() {
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &failed_run()).await.unwrap();
    let rollout = serde_json::to_string(&Rollout::default()).unwrap();
    let run = [
        "1 | r1 | operator | api | 2026-11-21T05:00:03.000000000Z | 2026-11-21T09:00:03.000000000Z | upgrading",
        rollout.as_str(),
        r#"{"kind":"failed","host":"h01"} | 2026-11-21T05:00:07.000000000Z | failed | {"failed":1,"not-reached":1} | - | 0"#,
    ];
    assert_eq!(rows(&store.path(), "SELECT * FROM runs").await, [run.join(" | ")]);
    assert_eq!(
        rows(&store.path(), "SELECT * FROM run_hosts ORDER BY host").await,
        [
            concat!(
                r#"r1 | h01 | os-upgrade-debian | default | failed | 2026-11-21T05:00:07.000000000Z | "#,
                r#"upgrade failed: disk full | worker-error | "#,
                r#"{"kind":"worker-error","action":"upgrade","message":"disk full"} | upgrade | 6 | "#,
                r#"2026-11-21T05:00:05.000000000Z | 2026-11-21T05:00:07.000000000Z"#,
            ),
            concat!(
                r#"r1 | h02 | os-upgrade-debian | default | not-reached | 2026-11-21T05:00:07.000000000Z | "#,
                r#"the run was ended by the failure of h01 | run-failed | "#,
                r#"{"kind":"run-failed","host":"h01"} | prepare | 3 | - | 2026-11-21T05:00:07.000000000Z"#,
            ),
        ]
    );
    let facts = "SELECT sequence, place, substr(at, 12, 8), type, event, actor, run, host FROM facts";
    assert_eq!(
        rows(&store.path(), facts).await,
        [
            "1 | 0 | 05:00:01 | config-replaced | - | api | - | -",
            "2 | 0 | 05:00:02 | fenced | - | - | - | -",
            "2 | 1 | 05:00:02 | fence-passed | - | - | - | -",
            "3 | 0 | 05:00:03 | run-started | - | api | r1 | -",
            "4 | 0 | 05:00:04 | host | command-sent | - | r1 | h01",
            "4 | 1 | 05:00:04 | host | command-sent | - | r1 | h02",
            "5 | 0 | 05:00:05 | host | prepared | - | r1 | h01",
            "5 | 1 | 05:00:05 | host | prepared | - | r1 | h02",
            "5 | 2 | 05:00:05 | upgrades-began | - | - | r1 | -",
            "5 | 3 | 05:00:05 | host | slot-granted | - | r1 | h01",
            "6 | 0 | 05:00:06 | host | command-sent | - | r1 | h01",
            "7 | 0 | 05:00:07 | host | failed | - | r1 | h01",
            "7 | 1 | 05:00:07 | run-stopping | - | - | r1 | -",
            "7 | 2 | 05:00:07 | host | not-reached | - | r1 | h02",
            "7 | 3 | 05:00:07 | run-ended | - | - | r1 | -",
        ]
    );
    assert_eq!(
        rows(&store.path(), "SELECT fact FROM facts WHERE event = 'failed'").await,
        [concat!(
            r#"{"type":"host","run":"r1","host":"h01","event":{"type":"failed","#,
            r#""reason":{"kind":"worker-error","action":"upgrade","message":"disk full"}}}"#
        )]
    );
}

#[tokio::test]
async fn position_is_that_of_the_last_record() {
    let mut store = TestStore::new().await;
    let (_, records) = completed_run();
    store.projector.apply(&streams(), None, &records).await.unwrap();
    let last = records.last().unwrap();
    let expected = Position {
        sequence: last.sequence,
        append_id: last.append_id.clone(),
        control: last.record.control,
        streams: streams(),
    };
    assert_eq!(store.projector.position().await.unwrap(), Some(expected));
}

/// Records before an operator's start of a run do not count: it says that the clock is right.
#[tokio::test]
async fn newest_record_is_since_the_last_start() {
    let mut store = TestStore::new().await;
    let history = store.projector.history().await.unwrap();
    assert_eq!(history.newest_record().await.unwrap(), None);
    let (mut site, mut records) = completed_run();
    // Recorded while all clocks were years ahead.
    let mut ahead = site.fence();
    ahead.record.at += TimeDelta::days(1_000);
    let newest = ahead.record.at;
    records.push(ahead);
    store.projector.apply(&streams(), None, &records).await.unwrap();
    assert_eq!(history.newest_record().await.unwrap(), Some(newest));
    let started = site.whole_run("r2");
    let last = started.last().unwrap().record.at;
    store.projector.apply(&streams(), Some(records.last().unwrap().sequence), &started).await.unwrap();
    assert_eq!(history.newest_record().await.unwrap(), Some(last));
}

/// The rows do not depend on the size of batches, nor on reopening in between.
#[tokio::test]
async fn batches_restarts_and_rebuilds_agree() {
    let (mut site, mut records) = completed_run();
    // A second and a third run in one record, of which the second ends at once.
    records.push(site.decide_record(&[trigger("r2"), cancel(), trigger("r3")]));
    records.push(site.send());
    let mut whole = TestStore::new().await;
    whole.projector.apply(&streams(), None, &records).await.unwrap();
    let expected = dump(&whole.path()).await;
    for size in 1..records.len() {
        let store = TestStore::new().await;
        let (path, mut follows) = (store.path(), None);
        for batch in records.chunks(size) {
            let mut opened = Projector::open(&path, "site").await.unwrap();
            assert_eq!(opened.position().await.unwrap().map(|position| position.sequence), follows);
            opened.apply(&streams(), follows, batch).await.unwrap();
            follows = batch.last().map(|committed| committed.sequence);
        }
        assert_eq!(dump(&path).await, expected, "batches of {size}");
    }
    whole.projector.reset().await.unwrap();
    assert_eq!(dump(&whole.path()).await, ["1 | site"]);
    whole.projector.apply(&streams(), None, &records).await.unwrap();
    assert_eq!(dump(&whole.path()).await, expected);
}

#[tokio::test]
async fn batches_that_do_not_follow_are_refused() {
    let (_, records) = completed_run();
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records[..3]).await.unwrap();
    let before = dump(&store.path()).await;
    let swapped = [records[4].clone(), records[3].clone()];
    let hole = [records[3].clone(), records[5].clone()];
    let cases: [(&str, Option<u64>, &[Committed]); 6] = [
        ("again", None, &records[..3]),
        ("again from the middle", Some(2), &records[2..4]),
        ("a gap", Some(4), &records[4..]),
        ("a gap that is not admitted", Some(3), &records[4..]),
        ("out of order", Some(3), &swapped),
        ("a hole", Some(3), &hole),
    ];
    for (name, follows, batch) in cases {
        let error = store.projector.apply(&streams(), follows, batch).await.unwrap_err();
        assert!(matches!(error, ApplyError::Gap { .. }), "{name}: {error:?}");
        assert_eq!(dump(&store.path()).await, before, "{name}");
    }
    let error = store.projector.apply(&streams(), Some(4), &records[4..]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store has the journal up to record 3; it cannot go on with record 5, which follows record 4"
    );
    store.projector.apply(&streams(), Some(3), &records[3..]).await.unwrap();
}

#[tokio::test]
async fn other_streams_are_refused() {
    let (_, records) = completed_run();
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records[..3]).await.unwrap();
    let given = Streams { journal_created_at: "2026-11-20T00:00:00Z".parse().unwrap(), ..streams() };
    let error = store.projector.apply(&given, Some(3), &records[3..]).await.unwrap_err();
    assert!(matches!(error, ApplyError::OtherStreams { .. }), "{error:?}");
}

#[tokio::test]
async fn record_that_does_not_fit_is_refused() {
    let (_, mut records) = completed_run();
    let last = records.len() - 1;
    records[last].before = records[0].before.clone();
    records[last].before.control = records[last - 1].record.control;
    let mut store = TestStore::new().await;
    let error = store.projector.apply(&streams(), None, &records).await.unwrap_err();
    assert!(matches!(error, ApplyError::Fact { place: 0, .. }), "{error:?}");
    assert_eq!(dump(&store.path()).await, ["1 | site"]);
}

/// The journal was trimmed below a snapshot: the snapshot's runs are stored, earlier facts are not.
#[tokio::test]
async fn empty_store_begins_with_the_journal() {
    let (_, records) = completed_run();
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records[6..]).await.unwrap();
    let history = store.projector.history().await.unwrap();
    let detail = history.run(&run_id("r1"), 1_000, None).await.unwrap().unwrap();
    let statuses: Vec<_> =
        detail.hosts.iter().map(|host| (host.host.as_str(), host.status.as_str())).collect();
    assert_eq!(statuses, [("h01", "upgraded"), ("h02", "upgraded"), ("h03", "upgraded")]);
    assert_eq!(detail.run.counts.get(), r#"{"upgraded":3}"#);
    assert_eq!(detail.facts.items[0].sequence, 7);
}

#[tokio::test]
async fn runs_are_paged_newest_first() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    for run in ["r1", "r2", "r3", "r4", "r5"] {
        records.extend(site.whole_run(run));
    }
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records).await.unwrap();
    let history = store.projector.history().await.unwrap();
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = history.runs(&RunFilter::default(), 2, after.as_ref()).await.unwrap();
        pages.push(page.items.iter().map(|run| run.id.clone()).collect::<Vec<_>>());
        let Some(next) = page.next else { break };
        after = Some(run_id(&next));
    }
    assert_eq!(pages, [vec!["r5", "r4"], vec!["r3", "r2"], vec!["r1"]]);
    let unknown = history.runs(&RunFilter::default(), 2, Some(&run_id("r9"))).await.unwrap_err();
    assert!(matches!(unknown, StoreError::UnknownRun(id) if id == "r9"));
    assert!(history.run(&run_id("r9"), 1, None).await.unwrap().is_none());
}

#[tokio::test]
async fn facts_are_paged() {
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &failed_run()).await.unwrap();
    let history = store.projector.history().await.unwrap();
    let mut places = Vec::new();
    let mut after = None;
    loop {
        let detail = history.run(&run_id("r1"), 5, after).await.unwrap().unwrap();
        places.push(detail.facts.items.iter().map(|fact| (fact.sequence, fact.place)).collect::<Vec<_>>());
        let Some(next) = detail.facts.next else { break };
        assert_eq!(next.to_string().parse(), Ok(next));
        after = Some(next);
    }
    assert_eq!(
        places,
        [
            vec![(3, 0), (4, 0), (4, 1), (5, 0), (5, 1)],
            vec![(5, 2), (5, 3), (6, 0), (7, 0), (7, 1)],
            vec![(7, 2), (7, 3)],
        ]
    );
}

/// A page of a large table is damaged: opening does not read it, but using it reports the damage.
#[tokio::test]
async fn damaged_page_is_reported() {
    let (_, records) = completed_run();
    let mut store = TestStore::new().await;
    let path = store.path();
    store.projector.apply(&streams(), None, &records[..3]).await.unwrap();
    store.projector.close().await.unwrap();
    let page =
        rows(&path, "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = 'facts'").await;
    let start = (page[0].parse::<usize>().unwrap() - 1) * 4_096;
    let mut content = std::fs::read(&path).unwrap();
    content[start..start + 4_096].fill(0xA5);
    std::fs::write(&path, content).unwrap();
    let mut torn = Projector::open(&path, "site").await.unwrap();
    let error = torn.apply(&streams(), Some(3), &records[3..]).await.unwrap_err();
    assert!(matches!(error, ApplyError::Store(StoreError::Damaged(_))), "{error:?}");
    let history = torn.history().await.unwrap();
    let error = history.run(&run_id("r1"), 10, None).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
}

/// A file that was deleted can be read over connections that have it open, at most.
#[tokio::test]
async fn deleted_file_is_reported() {
    let (_, records) = completed_run();
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records).await.unwrap();
    let history = store.projector.history().await.unwrap();
    assert_eq!(history.count_runs(&RunFilter::default()).await.unwrap(), 1);
    std::fs::remove_file(store.path()).unwrap();
    // The second read opens a connection of its own.
    let all = RunFilter::default();
    let (_, second) = tokio::join!(history.count_runs(&all), history.count_runs(&all));
    assert!(matches!(second, Err(StoreError::CannotOpen(_))), "{second:?}");
}

#[tokio::test]
async fn sync_writes_back_into_the_file() {
    let (_, records) = completed_run();
    let mut store = TestStore::new().await;
    store.projector.sync().await.unwrap();
    store.projector.apply(&streams(), None, &records).await.unwrap();
    store.projector.sync().await.unwrap();
    // The file alone, without its write-ahead log, is complete.
    let copy = store.directory.path().join("copy.sqlite");
    std::fs::copy(store.path(), &copy).unwrap();
    assert_eq!(dump(&copy).await, dump(&store.path()).await);
}

/// A site has far more facts about runs than audited ones.
#[tokio::test]
async fn every_audit_has_an_index() {
    let store = TestStore::new().await;
    let mut connection = connect(&store.path()).await;
    for audit in Audit::ALL {
        for select in [audit.select(), audit.select_count()] {
            let plan = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {select}"));
            let plan = sqlx::query(plan).fetch_all(&mut connection).await.unwrap();
            let plan: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
            assert!(plan.len() == 1 && plan[0].contains("INDEX facts_of_"), "{audit:?}: {plan:?}");
        }
    }
}
