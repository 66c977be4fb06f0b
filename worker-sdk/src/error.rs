//! Errors because of which a worker cannot run. Errors of a command are answered or logged instead.

use std::io;
use std::path::PathBuf;

use os_upgrade_protocol::{HostName, NameError};

/// Why a worker cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name is invalid.
    #[error("the name of the {of} cannot be used")]
    Name {
        /// What has the name: `host` or `application`.
        of: &'static str,
        /// Why it is invalid.
        source: NameError,
    },
    /// The state directory cannot be used.
    #[error("cannot use the state directory {path}")]
    StateDir {
        /// The directory, or a file in it.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Others could change what the worker does next.
    #[error("the state directory's {path} {why}")]
    UnsafeStateDir {
        /// The directory, or a file in it.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Files cannot be put below a directory of [`WorkerBuilder::configuration_root`](crate::WorkerBuilder::configuration_root).
    #[error("{0}")]
    ConfigurationRoot(String),
    /// Another process serves this host from the same state directory.
    #[error("another worker holds {path}; one host has one worker")]
    StateDirLocked {
        /// The lock file.
        path: PathBuf,
    },
    /// The boot id cannot be read.
    #[error("cannot read the boot id from {path}")]
    BootId {
        /// The file with the boot id.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Neither a NATS URL nor a client was given.
    #[error("neither a NATS URL nor a client was given")]
    NoNats,
    /// The NATS URL is invalid.
    #[error("the NATS URL cannot be used: {0}")]
    NatsUrl(String),
    /// The credentials are those of an orchestrator or the system account, which no worker may have.
    #[error(
        "the NATS credentials are those of {user}, not of {host}: give those that `os-upgrade nats-config host {host}` \
         creates"
    )]
    ForeignCredentials {
        /// The user name in the credentials.
        user: String,
        /// The worker's host.
        host: HostName,
    },
    /// The NATS credentials or certificates cannot be used.
    #[error(transparent)]
    Access(#[from] os_upgrade_credentials::Error),
    /// The client cannot be set up. An unreachable server is not an error: the worker waits for it.
    #[error("cannot set up the NATS client")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether the worker's configuration is wrong, so that it fails again until the configuration is changed.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Name { .. }
            | Self::NoNats
            | Self::NatsUrl(_)
            | Self::ForeignCredentials { .. }
            | Self::ConfigurationRoot(_)
            | Self::UnsafeStateDir { .. } => true,
            Self::Access(error) => error.is_usage(),
            Self::StateDir { .. } | Self::StateDirLocked { .. } | Self::BootId { .. } | Self::Connect(_) => {
                false
            }
        }
    }
}
