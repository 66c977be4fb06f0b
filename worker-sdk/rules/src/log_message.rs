//! Typed log messages of the rules: every decision, and every reason for doing nothing.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName, RunId};

use crate::Call;

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For debugging the worker itself.
    Debug,
    /// The course of an upgrade.
    Info,
    /// Something went wrong and has been handled.
    Warn,
    /// An operator should investigate.
    Error,
}

/// Why a command is acknowledged without being executed or answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropReason {
    /// It was received on another host's subject.
    OtherSubject(String),
    /// It is not a command of the protocol.
    Malformed(String),
    /// It does not name this host.
    OtherHost(HostName),
    /// Its `not-after` has passed.
    Expired(DateTime<Utc>),
    /// No `prepare` has been executed since the last `upgrade`.
    NotPrepared,
    /// The last `prepare` belongs to another run.
    PreparedForOtherRun(RunId),
    /// The `not-after` of the `prepare` it builds on has passed.
    PrepareExpired(DateTime<Utc>),
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherSubject(subject) => write!(f, "it was received on {subject:?}"),
            Self::Malformed(error) => write!(f, "it is not a command: {error}"),
            Self::OtherHost(host) => write!(f, "it does not name {host}"),
            Self::Expired(at) => write!(f, "its not-after, {at}, has passed"),
            Self::NotPrepared => f.write_str("no prepare was executed since the last upgrade"),
            Self::PreparedForOtherRun(run) => write!(f, "the last prepare belongs to run {run}"),
            Self::PrepareExpired(at) => write!(f, "the not-after of its prepare, {at}, has passed"),
        }
    }
}

/// Why an event changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// Events before `Started` are ignored.
    NotStarted,
    /// A second `Started`.
    AlreadyStarted,
    /// The event answers no pending action.
    Unexpected(&'static str),
    /// The event refers to a command that is not under way.
    OtherCommand(u64),
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("the worker has not started"),
            Self::AlreadyStarted => f.write_str("the worker has already started"),
            Self::Unexpected(event) => write!(f, "{event} answers no pending action"),
            Self::OtherCommand(sequence) => write!(f, "command {sequence} is not under way"),
        }
    }
}

/// One message to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogMessage {
    /// An event changed nothing.
    Ignored(Ignored),
    /// A command was acknowledged without being executed or answered.
    Dropped { sequence: u64, reason: DropReason },
    /// The run header is not a valid id, so the command is treated as one without a run.
    RunHeaderIgnored { sequence: u64 },
    /// A command is begun.
    Begun { sequence: u64, action: Action },
    /// A command that a crash or a restart cut off is resumed.
    Resumed { sequence: u64, action: Action, attempt: u32 },
    /// A command was delivered again after its answer was stored.
    AlreadySettled { sequence: u64 },
    /// A command was delivered again over a later connection, whose stream may have lost the answer.
    AnsweredAgain { sequence: u64, action: Action, result: String },
    /// The command under way was delivered again.
    Redelivered { sequence: u64, delivered: u64 },
    /// A command was delivered while another is under way; it waits.
    Held { sequence: u64, behind: u64 },
    /// A handler failed.
    HandlerFailed { call: Call, error: String },
    /// The outcome is known and will be answered.
    Answered { sequence: u64, action: Action, result: String },
    /// This run's upgrade required no reboot, so the reboot counts as done.
    RebootNotDue { sequence: u64 },
    /// The boot id has changed.
    Rebooted { sequence: u64 },
    /// The boot id has not changed.
    NotRebooted { sequence: u64, attempt: u32 },
    /// The state file could not be read.
    StateFileCorrupt { error: String },
    /// The state file could not be saved.
    SaveFailed { attempt: u32, error: String, giving_up: bool },
    /// The reply was not confirmed and is published again later.
    ReplyFailed { sequence: u64, attempt: u32, error: String },
    /// The acknowledgement was not confirmed.
    AckFailed { sequence: u64, attempt: u32, error: String, giving_up: bool },
    /// Versions are unchanged since they were last published.
    VersionsUnchanged,
    /// Versions could not be read or published; tried again later.
    VersionsFailed { error: String, attempt: u32 },
}

impl LogMessage {
    /// The severity of the message.
    pub const fn level(&self) -> Level {
        match self {
            Self::Ignored(_) | Self::VersionsUnchanged | Self::Redelivered { .. } => Level::Debug,
            Self::Begun { .. }
            | Self::AlreadySettled { .. }
            | Self::AnsweredAgain { .. }
            | Self::Answered { .. }
            | Self::RebootNotDue { .. }
            | Self::Rebooted { .. } => Level::Info,
            Self::Dropped { .. }
            | Self::RunHeaderIgnored { .. }
            | Self::Resumed { .. }
            | Self::Held { .. }
            | Self::HandlerFailed { .. }
            | Self::NotRebooted { .. }
            | Self::ReplyFailed { .. }
            | Self::AckFailed { .. }
            | Self::VersionsFailed { .. } => Level::Warn,
            Self::StateFileCorrupt { .. } => Level::Error,
            Self::SaveFailed { giving_up, .. } => {
                if *giving_up {
                    Level::Error
                } else {
                    Level::Warn
                }
            }
        }
    }
}

impl fmt::Display for LogMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored(reason) => write!(f, "nothing to do: {reason}"),
            Self::Dropped { sequence, reason } => {
                write!(f, "command {sequence} is acknowledged and not executed: {reason}")
            }
            Self::RunHeaderIgnored { sequence } => {
                write!(f, "the run header of command {sequence} is not a valid id and is ignored")
            }
            Self::Begun { sequence, action } => write!(f, "{action} (command {sequence}) begins"),
            Self::Resumed { sequence, action, attempt } => {
                write!(f, "{action} (command {sequence}) was cut off and is resumed, attempt {attempt}")
            }
            Self::AlreadySettled { sequence } => {
                write!(f, "command {sequence} is already settled and is acknowledged again")
            }
            Self::AnsweredAgain { sequence, action, result } => {
                write!(f, "{action} (command {sequence}) was answered before and is answered again: {result}")
            }
            Self::Redelivered { sequence, delivered } => {
                write!(f, "command {sequence} is under way and was delivered again, {delivered} times so far")
            }
            Self::Held { sequence, behind } => {
                write!(f, "command {sequence} waits until command {behind} is settled")
            }
            Self::HandlerFailed { call, error } => write!(f, "{} failed: {error}", call.as_str()),
            Self::Answered { sequence, action, result } => {
                write!(f, "{action} (command {sequence}) is answered: {result}")
            }
            Self::RebootNotDue { sequence } => write!(
                f,
                "reboot (command {sequence}): no reboot is due, so it counts as done if the host is healthy"
            ),
            Self::Rebooted { sequence } => {
                write!(f, "reboot (command {sequence}): the host has rebooted")
            }
            Self::NotRebooted { sequence, attempt } => {
                write!(f, "reboot (command {sequence}): the host has not rebooted, attempt {attempt}")
            }
            Self::StateFileCorrupt { error } => write!(
                f,
                "the state file cannot be used, a copy is kept ({error}); \
                 no upgrade or reboot before the next prepare"
            ),
            Self::SaveFailed { attempt, error, giving_up } => write!(
                f,
                "the state file cannot be saved, attempt {attempt}{}: {error}",
                if *giving_up { ", giving up" } else { "" }
            ),
            Self::ReplyFailed { sequence, attempt, error } => {
                write!(f, "the reply to command {sequence} is not stored yet, attempt {attempt}: {error}")
            }
            Self::AckFailed { sequence, attempt, error, giving_up } => write!(
                f,
                "command {sequence} is not acknowledged yet, attempt {attempt}{}: {error}",
                if *giving_up { ", left to redelivery" } else { "" }
            ),
            Self::VersionsUnchanged => f.write_str("versions are as last published"),
            Self::VersionsFailed { error, attempt } => {
                write!(f, "versions are not published yet, attempt {attempt}: {error}")
            }
        }
    }
}
