//! Why a backup or a restoration failed. Each error is one line for operators.

use std::io;
use std::path::PathBuf;

use os_upgrade_bus::scan::ScanError;
use os_upgrade_bus::streams::StreamsError;
use os_upgrade_shell::journal::JournalError;
use os_upgrade_store::{ApplyError, FoldError, OpenError, StoreError};

use super::archive::ArchiveError;

/// Why a backup or a restoration failed.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The data directory does not exist.
    #[error("there is no data directory {}: check [store] path", .0.display())]
    NoDirectory(PathBuf),
    /// A file cannot be used.
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The store has no state to restore.
    #[error("the store {} is empty or missing: there is nothing to restore from it; restore a backup instead", .0.display())]
    EmptyStore(PathBuf),
    /// An orchestrator of the site is running.
    #[error(
        "instance {0} holds the lease: stop every orchestrator of the site first (the lease of one that was killed \
         runs out within 6 s)"
    )]
    Led(String),
    /// The lease was lost during the restoration.
    #[error(
        "the lease could not be kept: another orchestrator has started, or NATS is unreachable; run it again"
    )]
    LeaseLost,
    /// The site has data that a restored backup would replace.
    #[error("the site is not empty ({0}): `--replace` saves that to a file, then replaces it")]
    NotEmpty(String),
    /// The bus has lost data, so a backup would be incomplete.
    #[error("{0}; see `os-upgrade restore --from-store`")]
    Lost(String),
    /// The journal cannot be read by this version.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// State and history of a backup differ.
    #[error("the state in the backup {} does not match its history: it is damaged", .0.display())]
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
    /// Records cannot be applied to the store.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A stream cannot be used.
    #[error(transparent)]
    Streams(#[from] StreamsError),
    /// A stream cannot be read to its end.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The new journal did not store a message.
    #[error("the new journal did not store message {0}; run it again")]
    NotAppended(u64),
    /// The data directory, the managed server, the connection or the lease is not available.
    #[error(transparent)]
    Site(#[from] anyhow::Error),
}
