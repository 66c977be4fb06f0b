//! Errors of the check itself. Faults of the worker are in the report instead.

use os_upgrade_protocol::NameError;
use os_upgrade_protocol::error::with_causes;

/// Why a worker cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The host's name is invalid.
    #[error("the name of the host cannot be used")]
    Name(#[from] NameError),
    /// The server cannot be reached, or refuses what the check needs.
    #[error("NATS: {0}")]
    Nats(String),
    /// A site uses this NATS; its hosts would execute the check's commands.
    #[error("an orchestrator uses this NATS; check the worker on a separate nats-server")]
    InUse,
    /// The user may not subscribe to all subjects.
    #[error("the NATS user receives nothing on `>`; the check needs a user with all permissions")]
    CannotSubscribe,
    /// The worker could not be restarted, or its host could not be rebooted.
    #[error("{0}")]
    Act(String),
}

/// The error for a request that NATS has refused or not answered.
pub(super) fn nats(error: impl std::error::Error) -> CheckError {
    CheckError::Nats(with_causes(&error))
}
