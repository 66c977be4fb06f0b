//! Why the journal cannot be followed.

use os_upgrade_kernel::format::{NEWEST, OLDEST, ReadError};
use os_upgrade_protocol::subject::JOURNAL_STREAM;

/// The largest payload before deflating and splitting, in bytes: the state of some hundred thousand hosts. A payload
/// that is read is never inflated beyond this size.
pub(super) const INFLATED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why the journal cannot be followed. Retrying does not help.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A message names another predecessor than the message before it.
    #[error("journal message {sequence} follows {found}, but the one before it is {expected}")]
    BrokenChain {
        /// The message's sequence.
        sequence: u64,
        /// The append id of the message before it.
        expected: String,
        /// The append id of the predecessor that it names.
        found: String,
    },
    /// Messages are missing.
    #[error("journal message {sequence} comes after {last}: what was between them is lost")]
    Gap {
        /// The message's sequence.
        sequence: u64,
        /// The last one read.
        last: u64,
    },
    /// A header is missing or invalid: no orchestrator has written the message.
    #[error("journal message {sequence} is not of an orchestrator: it has no valid header {header}")]
    Header {
        /// The message's sequence.
        sequence: u64,
        header: &'static str,
    },
    /// The payload cannot be read.
    #[error("journal message {sequence} cannot be read")]
    Undecodable {
        /// The message's sequence.
        sequence: u64,
        /// The cause.
        #[source]
        source: DecodeError,
    },
    /// A fact does not fit the state.
    #[error("journal message {sequence} does not fit what came before")]
    Unfit {
        /// The message's sequence.
        sequence: u64,
        /// The cause.
        #[source]
        source: os_upgrade_kernel::ApplyError,
    },
}

/// Why a payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It may have something that this version does not know.
    #[error("its format, {0}, is newer than those that this version reads, up to {NEWEST}")]
    NewFormat(u32),
    /// It has a format that is not read any more.
    #[error("its format, {0}, is older than those that this version reads, from {OLDEST} on")]
    OldFormat(u32),
    /// Inflating failed.
    #[error("the payload does not inflate")]
    Inflate(#[source] std::io::Error),
    /// It inflates to more than [`INFLATED_BYTES_MAX`].
    #[error("the payload inflates to more than {INFLATED_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not a record or state as this version knows them.
    #[error("the payload cannot be used")]
    Content(#[source] ReadError),
}

impl JournalError {
    /// Its kind, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Header { .. } => "stray-message",
            _ if self.is_of_another_version() => "other-version",
            Self::BrokenChain { .. } | Self::Gap { .. } | Self::Undecodable { .. } | Self::Unfit { .. } => {
                "journal"
            }
        }
    }

    /// What an operator can do.
    pub fn advice(&self) -> String {
        match self {
            Self::Header { sequence, .. } => format!(
                "find out who publishes there, delete the message with `nats stream rmm {JOURNAL_STREAM} {sequence}`, and \
                 restart the instances that have halted"
            ),
            _ if self.is_of_another_version() => {
                "upgrade this instance to the version that wrote it, or a newer one".to_owned()
            }
            Self::BrokenChain { .. } | Self::Gap { .. } | Self::Undecodable { .. } | Self::Unfit { .. } => {
                "go on from the store or a backup with `os-upgrade restore`".to_owned()
            }
        }
    }

    /// Whether nothing is wrong with the message, but a program of another version has written it.
    pub fn is_of_another_version(&self) -> bool {
        match self {
            Self::Undecodable { source, .. } => match source {
                DecodeError::NewFormat(_)
                | DecodeError::OldFormat(_)
                | DecodeError::Content(ReadError::Unknown(_)) => true,
                // JSON with other content than expected.
                DecodeError::Content(ReadError::Invalid(error)) => error.is_data(),
                DecodeError::Inflate(_) | DecodeError::TooLarge => false,
            },
            Self::BrokenChain { .. } | Self::Gap { .. } | Self::Header { .. } | Self::Unfit { .. } => false,
        }
    }
}
