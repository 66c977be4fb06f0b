//! The SQLite projection of the journal: history and audit, for the API to list.
//!
//! [`Projector`] is its only writer and follows the journal; [`History`] reads. The journal is the truth: nothing is
//! decided from the store, and a lost or damaged file can be rebuilt from the journal. An unusable file is reported in
//! one line and never silently repaired or replaced.
//!
//! The effects of facts on runs are not implemented again here: the kernel folds facts into a copy of the state before
//! them, and rows are read from the result (`changes`). The SQL is in `write` and `history`, the schema in
//! `migrations/` at the top of the repository.

mod changes;
mod error;
mod extent;
mod fold;
mod follow;
mod history;
mod open;
mod position;
mod projector;
mod prune;
mod row;
mod time;
mod totals;
mod write;

pub use self::changes::TARGETED;
pub use self::error::{ApplyError, OpenError, StoreError};
pub use self::extent::Extent;
pub use self::fold::{FoldError, Folded, copy, fold, integrity};
pub use self::follow::{End, Following, Portion, Resumption};
pub use self::history::{
    Audit, CommandRow, FactPage, FactRow, History, HostDetail, HostRow, RunDetail, RunFilter, RunPage, RunRow,
};
pub use self::position::{Position, Streams};
pub use self::projector::Projector;
pub use self::totals::{RunTotal, Totals};

#[cfg(test)]
mod tests;
