//! What the executor tells the rules.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::Versions;

use crate::{BootId, HandlerResult, StateFile};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The process has started; always the first event.
    Started {
        /// What the state file held.
        loaded: Loaded,
        /// The present boot of the host.
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
    /// The state file is durably what was last asked for.
    StateSaved,
    /// The state file may be the previous one still.
    StateSaveFailed {
        /// Why, for the operator.
        error: String,
    },
    /// The stream has stored the reply.
    ReplyStored {
        /// Stream sequence of the command that it answers.
        sequence: u64,
    },
    /// The stream has not confirmed the reply; it may have stored it all the same.
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
        /// Why the reboot could not be started.
        result: Result<(), String>,
    },
    /// The boot id, read anew; needed while a reboot is awaited, harmless otherwise.
    BootIdRead(BootId),
    /// What the host runs, and what was last published about it.
    VersionsRead {
        /// From the handler.
        running: Result<Versions, String>,
        /// From the stream; `None` when nothing was ever published.
        published: Result<Option<Versions>, String>,
    },
    /// The stream has stored the versions.
    VersionsPublished,
    /// The stream has not confirmed the versions.
    VersionsPublishFailed {
        /// Why, for the operator.
        error: String,
    },
    /// The handler says that versions have changed.
    VersionsChanged,
    /// The connection to NATS is back: what waits for a retry need not wait longer.
    Reconnected,
    /// Time has passed.
    Tick,
}

/// What was found where the state file should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    /// No file: a new host, or one whose worker keeps its state only until the next boot.
    Nothing,
    /// A good file.
    File(Box<StateFile>),
    /// Something that cannot be read as the state of this host; the executor has kept a copy of it aside.
    Corrupt {
        /// What is wrong with it.
        error: String,
    },
}

/// A command as delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its stream sequence.
    pub sequence: u64,
    /// When the stream stored it.
    pub published: DateTime<Utc>,
    /// How often it has been delivered, this time included.
    pub delivered: u64,
    /// Up to where the stream had come when this process opened its consumer. What stood there then may have been given to
    /// another process, and begun by it, whatever `delivered` says: a consumer that is made anew counts anew.
    pub opened_at: u64,
    /// The subject it was published on.
    pub subject: String,
    /// Where its acknowledgement goes.
    pub ack_subject: String,
    /// Its `Os-Upgrade-Run` header, as it stands there.
    pub run_header: Option<String>,
    /// Its payload.
    pub payload: Vec<u8>,
}
