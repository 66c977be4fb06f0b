//! What stands in the journal, and what instances make of it.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::State;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::journal::follow::Follower;

use super::violation::Violation;

#[derive(Debug, Default)]
pub(super) struct Journal {
    follower: Follower,
    /// The sequences of records that hold facts.
    records: Vec<u64>,
    /// Records that whoever decided them has logged.
    logged: BTreeSet<u64>,
    /// What each instance's store has reached.
    stores: BTreeMap<usize, u64>,
}

impl Journal {
    /// What it says.
    pub(super) fn state(&self) -> &State {
        &self.follower.state
    }

    /// A message has been appended; the record that it completes, if it completes one.
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

    /// An instance shows the state of `shown`, and has given its store the records up to `given`.
    pub(super) fn check_shown(&self, instance: usize, shown: u64, given: u64) -> Result<(), Violation> {
        let records = &self.records[..self.records.partition_point(|record| *record <= shown)];
        if let Some(newest) = records.last().filter(|newest| **newest > given) {
            let text =
                format!("i{instance} shows the state of {newest}, and gave its store what is up to {given}");
            return Err(Violation::new("shown", text));
        }
        Ok(())
    }

    /// An instance logs what it has decided, which is the record at `sequence`.
    pub(super) fn logged(&mut self, instance: usize, sequence: u64) -> Result<(), Violation> {
        if !self.logged.insert(sequence) {
            let text = format!("i{instance} logs {sequence}, which another has decided");
            return Err(Violation::new("log", text));
        }
        Ok(())
    }

    /// The store of an instance takes in a record.
    pub(super) fn projected(&mut self, instance: usize, committed: &Committed) -> Result<(), Violation> {
        let reached = self.stores.insert(instance, committed.sequence).unwrap_or(0);
        let next = self.records.partition_point(|record| *record <= reached);
        if self.records.get(next).is_some_and(|next| *next < committed.sequence) {
            let text = format!("i{instance} goes on from {reached} with {}", committed.sequence);
            return Err(Violation::new("store", text));
        }
        Ok(())
    }

    /// The store of an instance is another one now.
    pub(super) fn store_replaced(&mut self, instance: usize, reached: Option<u64>) {
        self.stores.insert(instance, reached.unwrap_or(0));
    }
}
