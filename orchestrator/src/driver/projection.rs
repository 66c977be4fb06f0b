//! The queue of committed records for the store, which must not delay runs.

use os_upgrade_shell::journal::Committed;
use tokio::sync::{mpsc, watch};

/// The queue to the store, and what it says of itself.
#[derive(Debug)]
pub(crate) struct Projection {
    /// Records for the store.
    pub(crate) store: mpsc::Sender<Committed>,
    /// The last record that found no room in the queue. The store reads it from the journal.
    pub(crate) missed: watch::Sender<u64>,
    /// What is wrong with the store; `None` if nothing is.
    pub(crate) problem: watch::Receiver<Option<String>>,
    /// The last record that a power cut does not take from the store; 0 before the first.
    pub(crate) synced: watch::Receiver<u64>,
    /// The last record that was passed on; 0 before the first.
    pub(crate) recorded: u64,
}

impl Projection {
    /// Passes a record on.
    pub(super) fn send(&mut self, committed: Committed) {
        self.recorded = committed.sequence;
        if let Err(unsent) = self.store.try_send(committed) {
            self.missed.send_replace(unsent.into_inner().sequence);
        }
    }

    /// What is wrong with the store; `None` if nothing is.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
    }

    /// The last record that a power cut does not take from the store; 0 before the first.
    pub(super) fn synced(&self) -> u64 {
        *self.synced.borrow()
    }
}
