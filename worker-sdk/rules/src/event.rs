//! Events that the executor reports to the rules, and the time at which it does.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::Versions;

use crate::{BootId, HandlerResult, StateFile};

/// One reading of two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time, for `not-after`. It may jump forwards or backwards.
    pub wall: DateTime<Utc>,
    /// Time since a fixed moment, for waits and retries. It never goes backwards.
    pub monotonic: TimeDelta,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The process has started; always the first event.
    Started {
        /// The contents of the state file.
        loaded: Loaded,
        /// The current boot of the host.
        boot_id: BootId,
    },
    /// The stream has delivered a command.
    CommandReceived(Received),
    /// A handler has returned.
    HandlerFinished {
        /// Stream sequence of the command that it served.
        sequence: u64,
        /// What it returned.
        result: HandlerResult,
    },
    /// The last requested state is durably saved.
    StateSaved,
    /// The state file could not be saved; the previous one may still be in place.
    StateSaveFailed {
        /// Why, for the operator.
        error: String,
    },
    /// The stream has stored the reply.
    ReplyStored {
        /// Stream sequence of the command that it answers.
        sequence: u64,
    },
    /// The stream has not confirmed the reply, but may have stored it.
    ReplyFailed {
        /// Stream sequence of the command that it answers.
        sequence: u64,
        /// Why, for the operator.
        error: String,
    },
    /// The server has confirmed an acknowledgement.
    Acked {
        /// Stream sequence of the command.
        sequence: u64,
    },
    /// The server has not confirmed an acknowledgement.
    AckFailed {
        /// Stream sequence of the command.
        sequence: u64,
        /// Why, for the operator.
        error: String,
    },
    /// The reboot handler has returned: the reboot is under way, or could not be started.
    RebootReturned {
        /// Stream sequence of the command.
        sequence: u64,
        /// `Ok` when the reboot is under way, or why it could not be started.
        result: Result<(), String>,
    },
    /// The current boot id; needed while a reboot is awaited, harmless otherwise.
    BootIdRead(BootId),
    /// The versions that the host runs, and those last published.
    VersionsRead {
        /// From the handler.
        running: Result<Versions, String>,
        /// From the stream; `None` when none were ever published.
        published: Result<Option<Versions>, String>,
    },
    /// The stream has stored the versions.
    VersionsPublished,
    /// The stream has not confirmed the versions.
    VersionsPublishFailed {
        /// Why, for the operator.
        error: String,
    },
    /// The handler reports that versions have changed.
    VersionsChanged,
    /// There is a new connection to NATS, over which nothing has happened yet: pending retries need not wait any longer, and a command
    /// that is not acknowledged is delivered again.
    Reconnected,
    /// Time has passed; see [`crate::limits::TICK_EVERY`].
    Tick,
}

/// The state file at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded<F = StateFile> {
    /// No file: a new host, or one whose worker keeps its state only until the next boot.
    Nothing,
    /// A valid file.
    File(Box<F>),
    /// A file that cannot be read as the state of this host; the executor has kept a copy of it.
    Corrupt {
        /// What is wrong with it.
        error: String,
    },
}

/// A delivered command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its stream sequence.
    pub sequence: u64,
    /// When the stream stored it.
    pub published: DateTime<Utc>,
    /// How often this consumer has delivered it, including this time.
    pub delivered: u64,
    /// The stream's last sequence when this process opened its consumer. Commands up to there may have been delivered to
    /// another process and begun by it, even if `delivered` is 1: a new consumer counts from 1.
    pub last_sequence_at_open: u64,
    /// Which of this process's connections to NATS it came over: the first one is 1, and a later one has a larger number. A stream can have been
    /// rolled back to an earlier moment between two connections, and not during one.
    pub connection: u64,
    /// The subject it was published on.
    pub subject: String,
    /// Where its acknowledgement goes.
    pub ack_subject: String,
    /// Its `Os-Upgrade-Run` header, unparsed.
    pub run_header: Option<String>,
    /// Its `Os-Upgrade-Command-Id` header, unparsed.
    pub id_header: Option<String>,
    pub payload: Vec<u8>,
}
