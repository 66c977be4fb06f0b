//! Why the journal cannot be followed.

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
    /// A header is missing or invalid.
    #[error("journal message {sequence} has no valid header {header}")]
    Header {
        /// The message's sequence.
        sequence: u64,
        /// The header.
        header: &'static str,
    },
    /// Another version of this program wrote the message.
    #[error("journal message {sequence} has format {found}; this version reads format {known}")]
    OtherFormat {
        /// The message's sequence.
        sequence: u64,
        /// Its format.
        found: u32,
        /// The format that this version reads.
        known: u32,
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
    /// Inflating failed.
    #[error("the payload does not inflate")]
    Inflate(#[source] std::io::Error),
    /// It inflates to more than [`INFLATED_BYTES_MAX`].
    #[error("the payload inflates to more than {INFLATED_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not a valid record or state.
    #[error("the payload is not valid")]
    Json(#[source] serde_json::Error),
}
