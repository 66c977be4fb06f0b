//! Why a backup or a restoration was not made. Each is one line for operators.

use std::io;
use std::path::PathBuf;

use os_upgrade_bus::scan::ScanError;
use os_upgrade_bus::streams::StreamsError;
use os_upgrade_shell::journal::JournalError;
use os_upgrade_store::{ApplyError, FoldError, OpenError, StoreError};

use super::archive::ArchiveError;

/// Why a backup or a restoration was not made.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The data directory is not there.
    #[error("there is no data directory {}: check [store] path", .0.display())]
    NoDirectory(PathBuf),
    /// A file cannot be used.
    #[error("cannot use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The store has nothing to go on from.
    #[error("the store {} is empty or missing: there is nothing to go on from; restore a backup instead", .0.display())]
    EmptyStore(PathBuf),
    /// An orchestrator is at work.
    #[error(
        "instance {0} holds the lease: stop every orchestrator of the site first (the lease of one that was killed \
         runs out within 6 s)"
    )]
    Led(String),
    /// The lease was lost while something was restored.
    #[error(
        "the lease could not be kept: another orchestrator has started, or the bus is away; run it again"
    )]
    LeaseLost,
    /// There is something where a backup was to be restored.
    #[error("the site is not empty ({0}): `--replace` saves that to a file, then replaces it")]
    NotEmpty(String),
    /// The bus has lost something, so that a backup would be of half a site.
    #[error("{0}; see `os-upgrade restore --from-store`")]
    Lost(String),
    /// The journal cannot be read by this version.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// State and history of a backup do not agree.
    #[error("the state in the backup {} is not the one that its history leads to: it is damaged", .0.display())]
    Inconsistent(PathBuf),
    /// The backup cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store cannot be used.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Records cannot be taken in.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The bus does not do as asked.
    #[error(transparent)]
    Streams(#[from] StreamsError),
    /// A stream cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The journal did not take a message.
    #[error("the new journal did not take message {0}; run it again")]
    NotAppended(u64),
    /// Anything about starting: the bus, the data directory.
    #[error(transparent)]
    Site(#[from] anyhow::Error),
}
