//! Why a stream cannot be used.

use os_upgrade_shell::journal::JournalError;

/// Why a stream cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// The server, or the account, has no JetStream.
    #[error("JetStream is not enabled: enable it in the configuration of the server, and for this account")]
    NoJetStream,
    /// The account has no JetStream, and the credentials are not an orchestrator's.
    #[error(
        "JetStream is not enabled for {user}, whose [nats] credentials these are: give those that `os-upgrade nats-config \
         init` made for orchestrators, or enable it for this account"
    )]
    NotAnOrchestrator {
        /// The name in the credentials.
        user: String,
    },
    /// The stream cannot be read or changed.
    #[error("cannot use the stream {stream}: {source}")]
    Unusable {
        /// Its name.
        stream: String,
        /// The bus's error.
        source: async_nats::Error,
    },
    /// The stream exists with other settings.
    #[error(
        "the stream {stream} has {setting} = {found}; {wanted} is needed. It is left as it is: change it, or use another NATS account"
    )]
    Incompatible {
        /// Its name.
        stream: String,
        /// The setting that differs.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The required value.
        wanted: String,
    },
    /// The stream belongs to another site.
    #[error(
        "the stream {stream} belongs to site {found:?}, not {expected:?}: check [site] name and [nats] url"
    )]
    OtherSite {
        /// Its name.
        stream: String,
        /// The site in its metadata.
        found: String,
        /// This site.
        expected: String,
    },
    /// A restoration of the journal is not finished.
    #[error(
        "the stream {stream} has not been restored to its end: run `os-upgrade restore` again, as before"
    )]
    Restoring {
        /// Its name.
        stream: String,
    },
    /// The last snapshot cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
