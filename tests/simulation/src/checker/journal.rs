//! The journal, and what instances make of it.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::State;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::journal::follow::Follower;

use super::violation::Violation;

#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    follower: Follower,
    /// The sequences of records that hold facts.
    records: Vec<u64>,
    /// Records that an instance has logged as its own decision.
    logged: BTreeSet<u64>,
    /// The sequence that each instance's store has reached.
    stores: BTreeMap<usize, u64>,
}

impl Journal {
    /// The state that the journal folds to.
    pub(crate) fn state(&self) -> &State {
        &self.follower.state
    }

    /// The sequence of the newest record that holds facts; 0 if there is none.
    pub(super) fn last_record(&self) -> u64 {
        self.records.last().copied().unwrap_or(0)
    }

    /// A message was appended; returns the record that it completes, if any.
    pub(super) fn appended(
        &mut self,
        sequence: u64,
        message: &Message,
    ) -> Result<Option<Committed>, Violation> {
        let committed = self
            .follower
            .read(sequence, message)
            .map_err(|error| Violation::new("journal", format!("it cannot be followed: {error}")))?;
        if committed.as_ref().is_some_and(|committed| !committed.record.facts.is_empty()) {
            self.records.push(sequence);
        }
        Ok(committed)
    }

    /// An instance shows the state of sequence `shown`, after passing records up to `given` to its store.
    pub(super) fn check_shown(&self, instance: usize, shown: u64, given: u64) -> Result<(), Violation> {
        let records = &self.records[..self.records.partition_point(|record| *record <= shown)];
        if let Some(newest) = records.last().filter(|newest| **newest > given) {
            let text =
                format!("i{instance} shows the state of {newest}, and gave its store records up to {given}");
            return Err(Violation::new("shown", text));
        }
        Ok(())
    }

    /// An instance logs the record at `sequence` as its own decision.
    pub(super) fn logged(&mut self, instance: usize, sequence: u64) -> Result<(), Violation> {
        if !self.logged.insert(sequence) {
            let text = format!("i{instance} logs {sequence}, which was logged before");
            return Err(Violation::new("log", text));
        }
        Ok(())
    }

    /// The store of an instance ingests a record.
    pub(super) fn projected(&mut self, instance: usize, committed: &Committed) -> Result<(), Violation> {
        let reached = self.stores.insert(instance, committed.sequence).unwrap_or(0);
        let next = self.records.partition_point(|record| *record <= reached);
        if self.records.get(next).is_some_and(|next| *next < committed.sequence) {
            let text = format!("i{instance} goes on from {reached} with {}", committed.sequence);
            return Err(Violation::new("store", text));
        }
        Ok(())
    }

    /// The store of an instance was lost or replaced by an older one, which has reached `reached`.
    pub(super) fn store_replaced(&mut self, instance: usize, reached: Option<u64>) {
        self.stores.insert(instance, reached.unwrap_or(0));
    }
}
