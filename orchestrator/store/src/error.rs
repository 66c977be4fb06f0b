//! What can be wrong with the file, by kind. Each error is one line for operators; its source has the details.

use std::path::{Path, PathBuf};

use os_upgrade_kernel::state;

use super::position::{Position, Streams};

/// The file cannot be used as this site's store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be created or written.
    #[error("store {path} cannot be written")]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: sqlx::Error,
    },
    /// Another process has it.
    #[error("store {path} is in use by another process")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is not an SQLite database, or a damaged one.
    #[error(
        "store {path} is damaged or not an SQLite database; it can be made again from the journal: \
         move it away and start again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: sqlx::Error,
    },
    /// It is a database of something else.
    #[error("store {path} is an SQLite database of another program (application id {application_id:#010x})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The application id in it; 0 when it has none.
        application_id: u32,
    },
    /// It was written by a newer version of this program.
    #[error("store {path} has schema {found}, newer than {known}, the newest that this program knows")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema in it.
        found: i64,
        /// The newest one known here.
        known: i64,
    },
    /// What stands in it is of a format that this program does not read any more.
    #[error(
        "store {path} has schema {found}, older than {first}, the oldest that this program reads; it can be made again from \
         the journal: move it away and start again"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The schema in it.
        found: i64,
        /// The oldest one that is read.
        first: i64,
    },
    /// It is another site's.
    #[error("store {path} is of site {found:?}, not of {expected:?}")]
    OtherSite {
        /// The file.
        path: PathBuf,
        /// The site in it.
        found: String,
        /// The site that was to be served.
        expected: String,
    },
    /// Its schema is not as this program would have made it.
    #[error("store {path}: its schema cannot be brought up to date")]
    Schema {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// Anything else.
    #[error("store {path} cannot be opened")]
    Other {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: sqlx::Error,
    },
}

/// The file could be opened and cannot be read or written now.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refuses: the disk is full, say.
    #[error("the store cannot be used")]
    Sqlite(#[source] sqlx::Error),
    /// The file is torn: what was read of it is not a database's.
    #[error("the store is damaged; it can be made again from the journal: move it away and start again")]
    Damaged(#[source] sqlx::Error),
    /// Readers or another process kept the store busy for too long.
    #[error("the store is busy")]
    Busy,
    /// A row holds what this program never writes.
    #[error("the store is damaged: {column} holds {value:?}")]
    BadValue {
        /// Which column.
        column: &'static str,
        /// What it holds.
        value: String,
    },
    /// A page was asked for that follows what is not there.
    #[error("there is no run {0:?}")]
    UnknownRun(String),
}

/// Records could not be taken in. Nothing of them was.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store has been filled from other streams, which have been deleted or lost since.
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
        /// What the store has.
        position: Option<Position>,
        /// What the records follow, as the caller knows.
        follows: Option<u64>,
        /// The first record that does not fit.
        first: u64,
    },
    /// A fact does not fit the state before it: the journal and this program disagree.
    #[error("journal record {sequence}, fact {place}")]
    Fact {
        /// The record.
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
    /// The kind of what SQLite says about the file at `path`.
    pub(super) fn of(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        match primary_code(&source) {
            Some(code::PERM | code::READONLY | code::IOERR | code::FULL | code::CANTOPEN) => {
                Self::NotWritable { path, source }
            }
            Some(code::BUSY) => Self::InUse { path },
            Some(code::CORRUPT | code::NOTADB) => Self::Damaged { path, source },
            Some(_) | None => Self::Other { path, source },
        }
    }
}
