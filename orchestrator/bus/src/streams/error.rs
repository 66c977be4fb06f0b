//! Why a stream cannot be had as it is needed.

use os_upgrade_shell::journal::JournalError;

/// A stream cannot be had as it is needed.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// The server has none to give.
    #[error("NATS gives no JetStream: enable it in the configuration of the server, and for this account")]
    NoJetStream,
    /// The server has none for whoever this is, who does not seem to be an orchestrator.
    #[error(
        "NATS gives no JetStream to {user}, whose [nats] credentials these are: give those that `os-upgrade nats-config \
         init` made for orchestrators, or enable it for this account"
    )]
    NotForThis {
        /// The name in the credentials.
        user: String,
    },
    /// The server does not give it.
    #[error("cannot use the stream {stream}: {source}")]
    Unusable {
        /// Its name.
        stream: String,
        /// Why not.
        source: async_nats::Error,
    },
    /// It is there, but made differently.
    #[error(
        "the stream {stream} has {setting} = {found}; {wanted} is needed. It is left as it is: change it, or use another NATS account"
    )]
    Incompatible {
        /// Its name.
        stream: String,
        /// What differs.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it would have to be.
        wanted: String,
    },
    /// It is another site's.
    #[error(
        "the stream {stream} is of site {found:?}, not of {expected:?}: check [site] name and [nats] url"
    )]
    OtherSite {
        /// Its name.
        stream: String,
        /// The site it is of.
        found: String,
        /// The site that was to be served.
        expected: String,
    },
    /// It is half a journal.
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
