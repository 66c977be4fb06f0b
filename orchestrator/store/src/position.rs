//! The store's position in the journal, and the streams that it refers to.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_shell::instance::StoreKnowledge;
use os_upgrade_shell::journal::AppendId;

use super::time;

/// Identifies the journal and the control stream by their creation times: a stream that was deleted and created again
/// has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    /// When the journal was created.
    pub journal_created_at: DateTime<Utc>,
    /// When the control stream was created.
    pub control_created_at: DateTime<Utc>,
}

impl fmt::Display for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (journal, control) =
            (time::to_text(self.journal_created_at), time::to_text(self.control_created_at));
        write!(f, "{journal} (journal) and {control} (control)")
    }
}

/// The store's position in the journal. Before an instance leads, it is compared with the streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The journal sequence of the last record that was applied.
    pub sequence: u64,
    /// The append id of that record.
    pub append_id: AppendId,
    /// The position in the control stream as of that record.
    pub control: u64,
    /// The streams of these sequences.
    pub streams: Streams,
}

/// The progress of the projector, for readers that wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProjectorStatus {
    /// The sequence of the last record that was applied, 0 before the first.
    pub(crate) sequence: u64,
    /// Whether the last write failed. It may take long until the next one succeeds.
    pub(crate) failed: bool,
    /// Whether the store is being filled, which may take long.
    pub(crate) behind: bool,
}

impl Position {
    /// The position in the instance's terms.
    pub fn knowledge(&self) -> StoreKnowledge {
        StoreKnowledge {
            sequence: self.sequence,
            append_id: self.append_id.clone(),
            control: self.control,
            journal_created: self.streams.journal_created_at,
            control_created: self.streams.control_created_at,
        }
    }
}
