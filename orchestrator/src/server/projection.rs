//! The task that brings committed records into the store, in batches, behind the journal.

use std::time::Duration;

use os_upgrade_shell::committed::Committed;
use tokio::sync::{mpsc, watch};

use crate::store::{ApplyError, Position, Projector, Streams};

/// Records that are taken in at once.
const BATCH_MAX: usize = 256;
/// How long to wait before the store is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Takes in what comes, until nothing more can come. While the store cannot be written, `problem` says why and it is
/// tried again: nothing is lost, for the journal has it.
pub(super) async fn run(
    mut projector: Projector,
    position: Option<Position>,
    streams: Streams,
    mut committed: mpsc::Receiver<Committed>,
    problem: watch::Sender<Option<String>>,
) {
    let mut reached = position.map(|position| position.sequence);
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while committed.recv_many(&mut batch, BATCH_MAX).await > 0 {
        // Following begins at a snapshot, which may lie before what the store has.
        batch.retain(|record| reached.is_none_or(|sequence| record.sequence > sequence));
        while let Err(error) = projector.apply(&streams, reached, &batch).await {
            say(&problem, &error);
            if committed.is_closed() {
                return;
            }
            tokio::time::sleep(RETRY).await;
        }
        problem.send_if_modified(|problem| problem.take().is_some());
        reached = batch.last().map(|record| record.sequence).or(reached);
        batch.clear();
    }
    if let Err(error) = projector.close().await {
        tracing::warn!(%error, "the store was not closed in order; the journal has what is missing");
    }
}

fn say(problem: &watch::Sender<Option<String>>, error: &ApplyError) {
    let text = format!("the store cannot be written: {}", Chain(error));
    if problem.borrow().as_ref() != Some(&text) {
        tracing::error!("{text}");
        problem.send_replace(Some(text));
    }
}

/// An error with its causes, in one line.
struct Chain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
