//! The reboot queue: hosts that are to reboot, one entry for each request, in the order of the requests.
//!
//! [`choose`](RebootQueue::choose) says which entry starts next, or what keeps every entry from starting.

mod attempt;
mod choose;
mod entry;
mod queue;

pub use self::attempt::{Attempt, AttemptStage};
pub use self::choose::{Nodes, NotReady, QueueBlocker};
pub use self::entry::{Entry, EntryEvent, EntryStatus, IllegalEntryEvent};
pub use self::queue::{Asked, ENTRIES_MAX, QueueError, RebootQueue, Required};
