//! Why an instance accepts no requests for changes.

use crate::storage::StorageLimit;

/// Why an instance can neither accept nor forward a write. The text is for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// It has halted, for this reason.
    #[error("{0}")]
    Halted(String),
    #[error("{0}")]
    Stopping(String),
    /// The streams have not been inspected since the last connect, for this reason.
    #[error("{0}")]
    NotInspected(String),
    /// The inventory is incomplete.
    #[error("the hosts that have announced themselves are still being read")]
    HostsUnread,
    /// The journal has not been read to its end.
    #[error("the journal is still being read")]
    JournalUnread,
    /// NATS refuses to store the lease or the journal's next message.
    #[error(transparent)]
    StorageFull(#[from] StorageLimit),
    /// An append has no answer. A nats-server whose disk is full does not answer at all until it is restarted.
    #[error("the journal does not answer: NATS is overloaded, or its disk is full; its log says which")]
    NoAnswer,
    /// The lease is a restoration's.
    #[error("the streams are being restored")]
    Restoring,
    /// There is no known leader.
    #[error("no instance leads yet, as far as this one knows")]
    NoLeader,
}
