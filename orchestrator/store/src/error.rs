//! Errors of the store. Each is one line for operators; its source has the details.

use std::path::{Path, PathBuf};

use os_upgrade_kernel::state;

use super::position::{Position, Streams};

/// Why a file cannot be used as this site's store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be created or written.
    #[error("store {path} cannot be written")]
    NotWritable {
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: sqlx::Error,
    },
    /// There is no room on its disk.
    #[error("store {path} cannot be written: its disk is full: make room, and start again")]
    DiskFull {
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: sqlx::Error,
    },
    /// Another process uses it.
    #[error("store {path} is in use by another process")]
    InUse { path: PathBuf },
    /// It is not an SQLite database, or is a damaged one.
    #[error(
        "store {path} is damaged or not an SQLite database; it can be rebuilt from the journal: \
         move it away and start again"
    )]
    Damaged {
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: sqlx::Error,
    },
    /// It is the database of another program.
    #[error("store {path} is an SQLite database of another program (application id {application_id:#010x})")]
    Foreign {
        path: PathBuf,
        /// Its application id; 0 if it has none.
        application_id: u32,
    },
    /// It was written by a newer version of this program.
    #[error("store {path} has schema {found}, newer than {known}, the newest that this program knows")]
    Newer {
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// It was written by an older version, whose format is no longer read.
    #[error(
        "store {path} has schema {found}, older than {first}, the oldest that this program reads; it can be rebuilt from \
         the journal: move it away and start again"
    )]
    Older {
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The oldest version that is read.
        first: i64,
    },
    /// It belongs to another site.
    #[error("store {path} belongs to site {found:?}, not {expected:?}")]
    OtherSite {
        path: PathBuf,
        /// Its site.
        found: String,
        /// This site.
        expected: String,
    },
    /// Its schema differs from what this program's migrations give.
    #[error("store {path}: its schema cannot be brought up to date")]
    Schema {
        path: PathBuf,
        /// The migration's error.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// Any other error of SQLite.
    #[error("store {path} cannot be opened")]
    Other {
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: sqlx::Error,
    },
}

/// Why an open store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite fails.
    #[error("the store cannot be used")]
    Sqlite(#[source] sqlx::Error),
    /// There is no room on its disk.
    #[error("its disk is full")]
    DiskFull(#[source] sqlx::Error),
    /// The file is damaged.
    #[error("the store is damaged; it can be rebuilt from the journal: move it away and start again")]
    Damaged(#[source] sqlx::Error),
    /// It was there when it was opened first, and cannot be opened again.
    #[error("the store cannot be opened any more")]
    CannotOpen(#[source] sqlx::Error),
    /// Readers or another process kept the store busy for too long.
    #[error("the store is busy")]
    Busy,
    /// A row has a value that this program never writes.
    #[error("the store is damaged: {column} holds {value:?}")]
    BadValue {
        column: &'static str,
        /// Its value, or the parser's error.
        value: String,
    },
    /// The run after which a page was requested does not exist.
    #[error("there is no run {0:?}")]
    UnknownRun(String),
}

/// Why a batch of records could not be applied. Nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store was filled from other streams, which have since been deleted or lost.
    #[error("the store is of streams created {stored}, not {given}")]
    OtherStreams {
        /// The streams it was filled from.
        stored: Streams,
        /// The streams the records are from.
        given: Streams,
    },
    /// The records do not follow what the store has.
    #[error(
        "the store has the journal up to {}; it cannot go on with record {first}, which follows {}",
        or_nothing(position.as_ref().map(|position| position.sequence)),
        or_nothing(*follows)
    )]
    Gap {
        /// The store's position; `None` if it is empty.
        position: Option<Position>,
        /// The record before the batch, according to the caller; `None` for the journal's first.
        follows: Option<u64>,
        /// The first record that does not follow.
        first: u64,
    },
    /// A fact does not fit the state before it.
    #[error("journal record {sequence}, fact {place}")]
    Fact {
        /// The record's sequence.
        sequence: u64,
        /// The fact's place in it, from 0.
        place: u32,
        /// Why it does not fit.
        #[source]
        source: state::ApplyError,
    },
}

impl From<sqlx::Error> for StoreError {
    fn from(source: sqlx::Error) -> Self {
        match primary_code(&source) {
            Some(code::CORRUPT | code::NOTADB) => Self::Damaged(source),
            Some(code::BUSY) => Self::Busy,
            Some(code::CANTOPEN) => Self::CannotOpen(source),
            Some(code::FULL) => Self::DiskFull(source),
            Some(_) | None => Self::Sqlite(source),
        }
    }
}

impl From<sqlx::Error> for ApplyError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

fn or_nothing(sequence: Option<u64>) -> String {
    sequence.map_or_else(|| "nothing".to_owned(), |sequence| format!("record {sequence}"))
}

/// Primary result codes of SQLite (<https://www.sqlite.org/rescode.html>).
mod code {
    pub(super) const PERM: u32 = 3;
    pub(super) const BUSY: u32 = 5;
    pub(super) const READONLY: u32 = 8;
    pub(super) const IOERR: u32 = 10;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const FULL: u32 = 13;
    pub(super) const CANTOPEN: u32 = 14;
    pub(super) const NOTADB: u32 = 26;
}

/// The primary result code; extended ones have it in their low byte.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let extended: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

impl OpenError {
    /// Classifies SQLite's error about the file at `path`.
    pub(super) fn of(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        match primary_code(&source) {
            Some(code::PERM | code::READONLY | code::IOERR | code::CANTOPEN) => {
                Self::NotWritable { path, source }
            }
            Some(code::FULL) => Self::DiskFull { path, source },
            Some(code::BUSY) => Self::InUse { path },
            Some(code::CORRUPT | code::NOTADB) => Self::Damaged { path, source },
            Some(_) | None => Self::Other { path, source },
        }
    }
}
