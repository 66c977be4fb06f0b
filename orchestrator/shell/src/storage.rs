//! Storage limits of NATS.

/// The limit because of which NATS stores nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StorageLimit {
    /// The account's.
    #[error(
        "NATS stores nothing more: the storage limit of its account is reached; raise it, or delete other streams"
    )]
    Account,
    /// The server's.
    #[error(
        "NATS stores nothing more: the server's storage limit, max_file_store, is reached; raise it, or delete other \
         streams"
    )]
    Server,
    /// The stream's own, or that of the disk.
    #[error(
        "NATS stores nothing more: the stream's max-bytes is reached, or the disk is full; `os-upgrade doctor` and the log \
         of NATS say which"
    )]
    Stream,
}
