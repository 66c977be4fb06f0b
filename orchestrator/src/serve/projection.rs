//! The task that applies committed records to the store, in batches.

use std::time::Duration;

use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::journal::Committed;
use os_upgrade_store::{ApplyError, Position, Projector, StoreError, Streams};
use tokio::sync::{mpsc, oneshot, watch};

/// The most records that are applied at once.
const BATCH_MAX: usize = 256;
/// How long the first of a batch waits for others. A transaction for each record would cost more than the record,
/// and every write to the disk delays what the bus has to sync.
const LINGER: Duration = Duration::from_millis(20);
/// How often it is checked that the store's file is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// What is wrong with a store whose file is not there any more.
const GONE: &str =
    "the store was deleted or replaced while it was in use: restart, so that it is rebuilt from the journal";
/// How long to wait before the store is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Applies `committed` records until the channel is closed. `streams` resolves to the streams they are from, before the
/// first record. `problem` is set to what is wrong with the store; `None` while nothing is.
pub(super) async fn run(
    mut projector: Projector,
    position: Option<Position>,
    streams: oneshot::Receiver<Option<Streams>>,
    mut committed: mpsc::Receiver<Committed>,
    problem: watch::Sender<Option<String>>,
) {
    let mut reached = position.map(|position| position.sequence);
    // Without streams there are no records.
    let streams = streams.await.ok().flatten();
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    loop {
        let received = tokio::select! {
            received = committed.recv_many(&mut batch, BATCH_MAX) => received,
            _ = look.tick() => {
                if !projector.is_in_place() {
                    report(&problem, GONE.to_owned());
                }
                continue;
            }
        };
        if received == 0 {
            break;
        }
        linger(&mut committed, &mut batch).await;
        // The journal is followed from a snapshot on, so the store may already have the first records.
        batch.retain(|record| reached.is_none_or(|sequence| record.sequence > sequence));
        let Some(streams) = streams else { break };
        if apply(&mut projector, &streams, reached, &batch, &committed, &problem).await.is_err() {
            break;
        }
        reached = batch.last().map(|record| record.sequence).or(reached);
        batch.clear();
    }
    // The store gets no more records, so its readers need not wait for them.
    if let Err(error) = projector.close().await {
        tracing::warn!(%error, "the store was not closed cleanly; the journal has what is missing");
    }
    // A failed store must not delay runs, so records are dropped: they are in the journal.
    while committed.recv_many(&mut batch, BATCH_MAX).await > 0 {
        batch.clear();
    }
}

/// Fills `batch` with the records that arrive within [`LINGER`]. Receiving them one by one would wake this task for each.
async fn linger(committed: &mut mpsc::Receiver<Committed>, batch: &mut Vec<Committed>) {
    if batch.len() < BATCH_MAX {
        tokio::time::sleep(LINGER).await;
    }
    while batch.len() < BATCH_MAX
        && let Ok(record) = committed.try_recv()
    {
        batch.push(record);
    }
}

/// Applies `batch`. While the store cannot be written, it is tried again; other errors would only repeat. Nothing is lost
/// either way, since the journal has the records.
async fn apply(
    projector: &mut Projector,
    streams: &Streams,
    reached: Option<u64>,
    batch: &[Committed],
    committed: &mpsc::Receiver<Committed>,
    problem: &watch::Sender<Option<String>>,
) -> Result<(), ()> {
    while let Err(error) = projector.apply(streams, reached, batch).await {
        match &error {
            ApplyError::Store(StoreError::Sqlite(_) | StoreError::Busy) => {
                report(problem, format!("the store cannot be written: {}", with_causes(&error)));
                if committed.is_closed() {
                    return Err(());
                }
                tokio::time::sleep(RETRY).await;
                if let Err(error) = projector.reopen().await {
                    report(problem, format!("the store cannot be written: {}", with_causes(&error)));
                }
            }
            ApplyError::Store(_)
            | ApplyError::OtherStreams { .. }
            | ApplyError::Gap { .. }
            | ApplyError::Fact { .. } => {
                report(problem, format!("the history has stopped: {}", with_causes(&error)));
                return Err(());
            }
        }
    }
    if projector.is_in_place() {
        problem.send_if_modified(|problem| problem.take().is_some());
    } else {
        report(problem, GONE.to_owned());
    }
    Ok(())
}

fn report(problem: &watch::Sender<Option<String>>, text: String) {
    if problem.borrow().as_ref() != Some(&text) {
        tracing::error!("{text}");
        problem.send_replace(Some(text));
    }
}
