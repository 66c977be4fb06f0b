//! Why a worker cannot run at all. What goes wrong with a command is answered or logged instead.

use std::io;
use std::path::PathBuf;

use os_upgrade_protocol::{HostName, NameError};

/// Why a worker cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name is none.
    #[error("the name of the {of} cannot be used")]
    Name {
        /// What it was to be the name of.
        of: &'static str,
        /// Why it is none.
        source: NameError,
    },
    /// The state directory cannot be used.
    #[error("cannot use the state directory {path}")]
    StateDir {
        /// The directory or the file in it.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Another process serves this host from the same state directory.
    #[error("another worker holds {path}; one host has one worker")]
    StateDirLocked {
        /// The lock.
        path: PathBuf,
    },
    /// The boot id cannot be read.
    #[error("cannot read the boot id from {path}")]
    BootId {
        /// Where it should stand.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Neither a NATS URL nor a client was given.
    #[error("neither a NATS URL nor a client was given")]
    NoNats,
    /// The NATS URL is none.
    #[error("the NATS URL cannot be used: {0}")]
    NatsUrl(String),
    /// The credentials are an orchestrator's or the system account's, which no worker may have.
    #[error(
        "the NATS credentials are those of {user}, not of {host}: give those that `os-upgrade nats-config host {host}` \
         makes"
    )]
    OthersCredentials {
        /// Whose they are.
        user: String,
        /// Whose they should be.
        host: HostName,
    },
    /// What is given for NATS, credentials or certificates, cannot be used.
    #[error(transparent)]
    Access(#[from] os_upgrade_credentials::Error),
    /// The client could not be set up; an unreachable server is not an error but waited for.
    #[error("cannot set up the NATS client")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether what the worker was given is wrong, so that it fails again until somebody has changed that.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Name { .. } | Self::NoNats | Self::NatsUrl(_) | Self::OthersCredentials { .. } => true,
            Self::Access(error) => error.is_usage(),
            Self::StateDir { .. } | Self::StateDirLocked { .. } | Self::BootId { .. } | Self::Connect(_) => {
                false
            }
        }
    }
}
