//! The task that brings committed records into the store, in batches, behind the journal.

use std::time::Duration;

use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::journal::Committed;
use os_upgrade_store::{ApplyError, Position, Projector, StoreError, Streams};
use tokio::sync::{mpsc, oneshot, watch};

/// Records that are taken in at once.
const BATCH_MAX: usize = 256;
/// How long the first of a batch waits for others. A transaction for each record would cost more than the record,
/// and every write to the disk delays what the bus has to sync.
const LINGER: Duration = Duration::from_millis(20);
/// How long to wait before the store is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Takes in what comes, until nothing more can come; `streams`, from which it comes, are said before the first of it.
/// `problem` says what is wrong with the store, while something is.
pub(super) async fn run(
    mut projector: Projector,
    position: Option<Position>,
    streams: oneshot::Receiver<Option<Streams>>,
    mut committed: mpsc::Receiver<Committed>,
    problem: watch::Sender<Option<String>>,
) {
    let mut reached = position.map(|position| position.sequence);
    // Nothing comes when nobody has said it.
    let streams = streams.await.ok().flatten();
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while committed.recv_many(&mut batch, BATCH_MAX).await > 0 {
        linger(&mut committed, &mut batch).await;
        // Following begins at a snapshot, which may lie before what the store has.
        batch.retain(|record| reached.is_none_or(|sequence| record.sequence > sequence));
        let Some(streams) = streams else { break };
        if take_in(&mut projector, &streams, reached, &batch, &committed, &problem).await.is_err() {
            break;
        }
        reached = batch.last().map(|record| record.sequence).or(reached);
        batch.clear();
    }
    // Readers wait for nothing more.
    if let Err(error) = projector.close().await {
        tracing::warn!(%error, "the store was not closed in order; the journal has what is missing");
    }
    // A store that cannot go on must not hold up the runs: the journal has what it misses.
    while committed.recv_many(&mut batch, BATCH_MAX).await > 0 {
        batch.clear();
    }
}

/// Fills `batch` with what comes within [`LINGER`]. Waiting for each record by itself would wake this task for each.
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

/// Takes in `batch`. A store that cannot be written is tried again: nothing is lost, for the journal has it. Anything
/// else would be the same the next time.
async fn take_in(
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
                say(problem, format!("the store cannot be written: {}", with_causes(&error)));
                if committed.is_closed() {
                    return Err(());
                }
                tokio::time::sleep(RETRY).await;
                if let Err(error) = projector.reopen().await {
                    say(problem, format!("the store cannot be written: {}", with_causes(&error)));
                }
            }
            ApplyError::Store(_)
            | ApplyError::OtherStreams { .. }
            | ApplyError::Gap { .. }
            | ApplyError::Fact { .. } => {
                say(problem, format!("the history has stopped: {}", with_causes(&error)));
                return Err(());
            }
        }
    }
    problem.send_if_modified(|problem| problem.take().is_some());
    Ok(())
}

fn say(problem: &watch::Sender<Option<String>>, text: String) {
    if problem.borrow().as_ref() != Some(&text) {
        tracing::error!("{text}");
        problem.send_replace(Some(text));
    }
}
