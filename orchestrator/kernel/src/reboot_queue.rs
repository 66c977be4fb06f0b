//! The reboot queue: hosts that are to reboot, one entry for each request, in the order of the requests.
//!
//! [`choose`](RebootQueue::choose) says which entry starts next, or what keeps every entry from starting.

mod api_server_order;
mod attempt;
mod backoff;
mod blocker;
mod cancel;
mod choose;
mod entry;
mod explain;
mod fact;
mod fold;
mod job;
mod next;
mod rebooter;
pub(crate) mod request;
mod rules;
mod settings;
mod state;
mod steps;

pub use self::api_server_order::ApiServerOrder;
pub use self::attempt::{Attempt, AttemptStage};
pub use self::backoff::Backoff;
pub use self::blocker::EntryBlocker;
pub(crate) use self::cancel::cancel_queued;
pub use self::choose::{Nodes, NotReady, QueueBlocker};
pub use self::entry::{Entry, EntryEvent, EntryStatus, EntryStep, IllegalEntryEvent};
pub use self::explain::{explain_entry, needs_operator};
pub use self::fact::QueueFact;
pub use self::job::{CommandJob, CommandOrder, CommandOutcome};
pub(crate) use self::next::group;
pub use self::next::next_reboot;
pub(crate) use self::rebooter::drained;
pub use self::request::{RebootOperation, RebootRefusal};
pub use self::settings::{RebootCommandSettings, RebootSettings};
pub use self::state::{Asked, ENTRIES_MAX, QueueError, RebootQueue, Required};
pub(crate) use self::steps::{advance_attempts, begin, cancel_unneeded, queue_required, remove_cancelled};
