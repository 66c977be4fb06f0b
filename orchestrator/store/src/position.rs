//! How far the journal has been taken in, and of which streams.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_shell::journal::AppendId;
use os_upgrade_shell::node::StoreKnowledge;

use super::time;

/// Which journal and which control stream: a stream that was deleted and made again has another time.
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

/// How far the journal has been taken in. At takeover the leader compares it with the streams it finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The sequence of the last record in the journal.
    pub sequence: u64,
    /// The id of that record's append.
    pub append_id: AppendId,
    /// How far the control stream had been taken into account by that record.
    pub control: u64,
    /// The streams these sequences are of.
    pub streams: Streams,
}

/// How far the projector is, for readers that wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TakenIn {
    /// The last record, 0 before the first.
    pub(crate) sequence: u64,
    /// The store could not be written the last time: it may be long until it can.
    pub(crate) failed: bool,
}

impl Position {
    /// What the node is told of the store.
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
