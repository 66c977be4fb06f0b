//! A record that stands in the journal, as it is handed to whoever follows.

use os_upgrade_kernel::{Record, State};

use super::append_id::AppendId;

/// A record that stands in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The stream sequence of its (last) message in the journal.
    pub sequence: u64,
    /// The id of that append.
    pub append_id: AppendId,
    /// The state before it, so that its facts can be followed one by one.
    pub before: State,
    /// What was decided.
    pub record: Record,
}
