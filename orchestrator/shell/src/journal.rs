//! The journal: records as messages, chained, appended and read back.
//!
//! - [`codec`] turns records and snapshots into messages with headers;
//! - [`follow`] folds messages as they are read, and refuses a broken chain;
//! - [`append`] stores a record in the stream exactly once, or detects that another instance leads.

pub mod append;
mod append_id;
pub mod codec;
mod committed;
mod error;
pub mod follow;

pub use self::append_id::{AppendId, Tip};
pub use self::committed::Committed;
pub use self::error::{DecodeError, JournalError};
