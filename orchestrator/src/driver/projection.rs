//! The queue of committed records for the store, which must not delay runs.

use os_upgrade_shell::journal::Committed;
use tokio::sync::{mpsc, watch};

/// The queue to the store. When it is full, the history stops, and continues from the journal at the next start.
#[derive(Debug)]
pub(super) struct Projection {
    store: mpsc::Sender<Committed>,
    problem: watch::Receiver<Option<String>>,
    overflowed: bool,
    recorded: u64,
}

impl Projection {
    pub(super) fn new(store: mpsc::Sender<Committed>, problem: watch::Receiver<Option<String>>) -> Self {
        Self { store, problem, overflowed: false, recorded: 0 }
    }

    /// Queues a record, unless the queue has been full before.
    pub(super) fn send(&mut self, committed: Committed) {
        if self.overflowed {
            return;
        }
        let sequence = committed.sequence;
        if self.store.try_send(committed).is_ok() {
            self.recorded = sequence;
        } else {
            self.overflowed = true;
            tracing::error!("the store is too far behind: the history stops until the next start");
        }
    }

    /// The sequence of the last queued record; 0 if there was none.
    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// What is wrong with the store; `None` if nothing is.
    pub(super) fn problem(&self) -> Option<String> {
        let overflow = || "the store is too far behind: restart to continue the history".to_owned();
        self.problem.borrow().clone().or_else(|| self.overflowed.then(overflow))
    }
}
