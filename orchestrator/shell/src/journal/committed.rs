//! A committed record.

use os_upgrade_kernel::{Record, State};

use super::append_id::AppendId;

/// A record that is in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The stream sequence of its (last) message in the journal.
    pub sequence: u64,
    /// The append id of that message.
    pub append_id: AppendId,
    /// The sequence of the record before it, or of the end of the snapshot with which reading began; 0 if it is the first.
    pub follows: u64,
    /// The state before the record, so that its facts can be applied one by one.
    pub before: State,
    pub record: Record,
}
