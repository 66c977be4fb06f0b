//! The handlers, their arguments and their results.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::RunId;

/// A handler that the rules can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Get ready.
    Prepare,
    /// Change the system.
    Upgrade,
    /// Check whether the host is healthy after a reboot.
    Health,
}

impl Call {
    /// The name in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Upgrade => "upgrade",
            Self::Health => "health",
        }
    }
}

/// A handler to run, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerCall {
    /// Stream sequence of the command that it serves.
    pub sequence: u64,
    /// Which handler.
    pub call: Call,
    /// The run, if the command named one.
    pub run: Option<RunId>,
    /// The end of the run, if there is one.
    pub not_after: Option<DateTime<Utc>>,
    /// The same work may have been begun before and cut off.
    pub resume: bool,
    /// The host has rebooted since the work was begun.
    pub rebooted: bool,
}

/// The result of a successful upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upgraded {
    /// Nothing is left to do.
    Done,
    /// The host must reboot for the upgrade to take effect.
    RebootRequired,
}

/// The result of a handler; errors are messages for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerResult {
    /// What `prepare` returned.
    Prepare(Result<(), String>),
    /// What `upgrade` returned.
    Upgrade(Result<Upgraded, String>),
    /// What `health` returned.
    Health(Result<(), String>),
}

impl HandlerResult {
    /// The handler that returned it.
    pub const fn call(&self) -> Call {
        match self {
            Self::Prepare(_) => Call::Prepare,
            Self::Upgrade(_) => Call::Upgrade,
            Self::Health(_) => Call::Health,
        }
    }

    /// Whether the handler failed.
    pub const fn is_err(&self) -> bool {
        match self {
            Self::Prepare(result) | Self::Health(result) => result.is_err(),
            Self::Upgrade(result) => result.is_err(),
        }
    }
}
