//! From where a reader may go on, and what comes next.

use os_upgrade_kernel::FactCursor;
use os_upgrade_test_site::{TestSite, put_config};

use super::*;
use crate::{Following, Portion, Resumption};

const fn at(sequence: u64) -> FactCursor {
    FactCursor { sequence, place: 0 }
}

/// The sequences of the facts after `after`, of at most `limit`; or that of the record after a gap.
async fn after(history: &History, after: FactCursor, limit: u32) -> Result<Vec<u64>, u64> {
    match history.following(after, Portion { facts: limit, bytes: usize::MAX }).await.unwrap() {
        Following::Facts(facts) => Ok(facts.iter().map(|fact| fact.sequence).collect()),
        Following::Gap { next } => Err(next),
    }
}

#[tokio::test]
async fn readers_go_on_where_nothing_is_missing() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r0"));
    let mut store = TestStore::new().await;
    let history = store.projector.history().await.unwrap();
    assert_eq!(history.end().await.unwrap(), None);
    assert_eq!(history.resumption(at(1)).await.unwrap(), Resumption::Ahead);

    store.projector.apply(&streams(), None, &records[..3]).await.unwrap();
    let sequence = |index: usize| records[index].sequence;
    let end = history.end().await.unwrap().unwrap();
    assert_eq!(end.journal_created_at, streams().journal_created_at);
    assert_eq!(end.last.sequence, sequence(2));
    assert_eq!(history.advanced(sequence(1)).await, sequence(2));
    // Records 3 and 4 are missing.
    store.projector.apply_after_gap(&streams(), &records[5..]).await.unwrap();
    let resumption = async |cursor| history.resumption(cursor).await.unwrap();
    assert_eq!(resumption(at(sequence(0)).before().before()).await, Resumption::Incomplete);
    assert_eq!(resumption(at(sequence(2))).await, Resumption::Incomplete, "a gap follows");
    assert_eq!(resumption(at(sequence(5))).await, Resumption::Possible);
    assert_eq!(resumption(at(records.last().unwrap().sequence + 1)).await, Resumption::Ahead);
    assert_eq!(history.earliest().await.unwrap(), Some(at(sequence(5))));

    let first = after(&history, at(0), 1).await.unwrap();
    assert_eq!(first, [sequence(0)], "no more than was asked for");
    let last = FactCursor { sequence: sequence(2), place: 100 };
    assert_eq!(after(&history, last, 9).await, Err(sequence(5)));
    assert_eq!(after(&history, at(sequence(5)).before(), 1).await, Ok(vec![sequence(5)]));
    assert_eq!(after(&history, FactCursor { sequence: u64::MAX >> 1, place: 0 }, 9).await, Ok(vec![]));
}

/// A fact may name ten thousand hosts.
#[tokio::test]
async fn what_is_read_at_once_is_bounded_in_bytes() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r0"));
    let mut store = TestStore::new().await;
    let history = store.projector.history().await.unwrap();
    store.projector.apply(&streams(), None, &records).await.unwrap();
    let read = async |bytes| {
        let Following::Facts(facts) = history.following(at(0), Portion { facts: 9, bytes }).await.unwrap()
        else {
            panic!("there is no gap")
        };
        facts.iter().map(|fact| fact.fact.get().len()).collect::<Vec<_>>()
    };
    let all = read(usize::MAX).await;
    assert_eq!(all.len(), 9);
    for (bytes, count) in [(1, 1), (all[0], 1), (all[0] + 1, 2), (all[0] + all[1] + 1, 3)] {
        assert_eq!(read(bytes).await, all[..count], "{bytes}");
    }
}
