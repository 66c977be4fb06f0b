//! Committed records on their way to the store, which must not hold up the runs.

use os_upgrade_shell::journal::Committed;
use tokio::sync::{mpsc, watch};

/// The way to the store. When that is too far behind, the history stops here, and goes on from the journal at the next
/// start.
#[derive(Debug)]
pub(super) struct Projection {
    store: mpsc::Sender<Committed>,
    problem: watch::Receiver<Option<String>>,
    left_behind: bool,
    recorded: u64,
}

impl Projection {
    pub(super) fn new(store: mpsc::Sender<Committed>, problem: watch::Receiver<Option<String>>) -> Self {
        Self { store, problem, left_behind: false, recorded: 0 }
    }

    /// Hands a record over.
    pub(super) fn hand_over(&mut self, committed: Committed) {
        if self.left_behind {
            return;
        }
        let sequence = committed.sequence;
        if self.store.try_send(committed).is_ok() {
            self.recorded = sequence;
        } else {
            self.left_behind = true;
            tracing::error!("the store is too far behind: the history stops until the next start");
        }
    }

    /// The sequence of the last record that was handed over, 0 when there was none.
    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// What is wrong with the store, if something is.
    pub(super) fn problem(&self) -> Option<String> {
        let left_behind = || "the store is too far behind: start again to go on with the history".to_owned();
        self.problem.borrow().clone().or_else(|| self.left_behind.then(left_behind))
    }
}
