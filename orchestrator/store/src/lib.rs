//! The SQLite projection of the journal: history and audit, for the API to list.
//!
//! [`Projector`] is its one writer, behind the journal; [`History`] reads. The journal is the truth: nothing is
//! decided from what stands here, and a file that is lost or damaged is made again from the journal. A file that is
//! not what it should be is reported with one clear line and never repaired or replaced in silence.
//!
//! What a fact does to a run is not written here a second time: facts are folded by the kernel into a copy of the
//! state before them, and rows are read off the result (`changes`). The SQL is in `write` and `history`, the schema in
//! `migrations/` at the top of the repository.

mod changes;
mod error;
mod fold;
mod history;
mod open;
mod position;
mod projector;
mod row;
mod time;
mod write;

pub use self::error::{ApplyError, OpenError, StoreError};
pub use self::fold::{FoldError, Folded, copy, fold, integrity};
pub use self::history::{Audit, CommandRow, FactPage, FactRow, History, HostRow, RunDetail, RunPage, RunRow};
pub use self::position::{Position, Streams};
pub use self::projector::Projector;

#[cfg(test)]
mod tests;
