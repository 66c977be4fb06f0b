//! Folding a store's facts gives the state that the kernel had.

use os_upgrade_shell::journal::Committed;
use os_upgrade_test_site::{TestSite, put_config, trigger};

use super::*;

/// A site with one ended run and one under way.
fn busy() -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    records.extend([site.decide_record(&[trigger("r2")]), site.send()]);
    (site, records)
}

#[tokio::test]
async fn every_prefix_folds_to_its_state() {
    let (site, records) = busy();
    let mut store = TestStore::new().await;
    let mut follows = None;
    for (index, record) in records.iter().enumerate() {
        store.projector.apply(&streams(), follows, std::slice::from_ref(record)).await.unwrap();
        follows = Some(record.sequence);
        let folded = fold(&store.path(), "site").await.unwrap().unwrap();
        let expected = records.get(index + 1).map_or(&site.state, |next| &next.before);
        assert_eq!(folded.state, *expected, "after record {}", record.sequence);
        assert_eq!(folded.position.sequence, record.sequence);
    }
}

/// A restored journal begins with a snapshot: the store keeps the state before its first fact.
#[tokio::test]
async fn store_from_a_snapshot_folds_to_its_state() {
    let (site, records) = busy();
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records[4..]).await.unwrap();
    let folded = fold(&store.path(), "site").await.unwrap().unwrap();
    assert_eq!(folded.state, site.state);
    assert_eq!(rows(&store.path(), "SELECT sequence FROM base").await, [records[4].sequence.to_string()]);
    store.projector.reset().await.unwrap();
    assert_eq!(fold(&store.path(), "site").await.unwrap(), None);
}

#[tokio::test]
async fn copy_is_the_same_store() {
    let (site, records) = busy();
    let mut store = TestStore::new().await;
    store.projector.apply(&streams(), None, &records).await.unwrap();
    let path = store.directory.path().join("copy.sqlite");
    assert!(copy(&store.path(), "site", &path).await.unwrap());
    assert_eq!(dump(&path).await, dump(&store.path()).await);
    assert_eq!(fold(&path, "site").await.unwrap().unwrap().state, site.state);
    assert_eq!(integrity(&path, "site").await.unwrap(), None);
}

#[tokio::test]
async fn reading_creates_no_files() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.sqlite");
    assert_eq!(fold(&path, "site").await.unwrap(), None);
    assert_eq!(integrity(&path, "site").await.unwrap(), None);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    let store = TestStore::new().await;
    let path = store.path();
    store.projector.close().await.unwrap();
    assert_eq!(fold(&path, "site").await.unwrap(), None);
    assert_eq!(std::fs::read_dir(&store.directory).unwrap().count(), 1);
    let error = fold(&path, "lund").await.unwrap_err();
    assert!(matches!(error, FoldError::Open(OpenError::OtherSite { .. })), "{error:?}");
}

#[tokio::test]
async fn unknown_or_missing_facts_are_named() {
    let (_, records) = busy();
    for (sql, expected) in [
        (
            "UPDATE facts SET fact = '{\"type\":\"moon-landed\"}' WHERE sequence = 3 AND place = 0",
            "fact 0 of record 3 was written by another version, or is damaged",
        ),
        (
            "UPDATE facts SET fact = json_set(fact, '$.moon', 1) WHERE sequence = 3 AND place = 0",
            "fact 0 of record 3 was written by another version, or is damaged",
        ),
        ("DELETE FROM facts WHERE type = 'run-started'", "does not fit what comes before it"),
    ] {
        let mut store = TestStore::new().await;
        store.projector.apply(&streams(), None, &records).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connect(&store.path()).await).await.unwrap();
        let error = fold(&store.path(), "site").await.unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}
