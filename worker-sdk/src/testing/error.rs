//! Why a check cannot be made. What is wrong with the worker is in the report instead.

use os_upgrade_protocol::NameError;
use os_upgrade_protocol::error::with_causes;

/// Why a worker cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The host's name is none.
    #[error("the name of the host cannot be used")]
    Name(#[from] NameError),
    /// The server cannot be reached, or refuses what the check needs.
    #[error("NATS: {0}")]
    Nats(String),
    /// A site is run here, whose hosts would take the check's commands for their own.
    #[error("an orchestrator uses this NATS; check the worker on a nats-server of its own")]
    InUse,
    /// The user may not hear everything.
    #[error("the NATS user hears nothing on `>`; the check needs one that may do everything")]
    Deaf,
    /// The worker could not be restarted, or its host rebooted.
    #[error("{0}")]
    Act(String),
}

/// What NATS has refused, or not answered.
pub(super) fn nats(error: impl std::error::Error) -> CheckError {
    CheckError::Nats(with_causes(&error))
}
