//! Why the journal cannot be followed.

/// Largest payload of all parts together before deflating, in bytes: the state of some hundred thousand hosts. What is
/// read is never inflated beyond it.
pub(super) const INFLATED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The journal cannot be followed. None of these mends itself.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A message does not name the one before it as its predecessor.
    #[error("journal message {sequence} follows {found}, but the one before it is {expected}")]
    BrokenChain {
        /// The message's sequence.
        sequence: u64,
        /// The append id of the message before it.
        expected: String,
        /// The predecessor that it names.
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
    /// A message lacks a header, or has one that cannot be read.
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
        /// The format known here.
        known: u32,
    },
    /// The payload cannot be read.
    #[error("journal message {sequence} cannot be read")]
    Undecodable {
        /// The message's sequence.
        sequence: u64,
        /// What went wrong.
        #[source]
        source: DecodeError,
    },
    /// A fact does not fit the state.
    #[error("journal message {sequence} does not fit what came before")]
    Unfit {
        /// The message's sequence.
        sequence: u64,
        /// What went wrong.
        #[source]
        source: os_upgrade_kernel::ApplyError,
    },
}

/// A payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It does not inflate.
    #[error("the payload does not inflate")]
    Inflate(#[source] std::io::Error),
    /// It inflates to more than [`INFLATED_BYTES_MAX`].
    #[error("the payload inflates to more than {INFLATED_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not what it should be.
    #[error("the payload is not valid")]
    Json(#[source] serde_json::Error),
}
