//! Actions that the rules request from their executor.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{CommandId, RunId};

use crate::{HandlerCall, LogMessage, StateFile};

/// One action. The executor begins actions in the order in which they are returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Replace the state file, durably; answered by `StateSaved` or `StateSaveFailed`.
    SaveState(Box<StateFile>),
    /// Run a handler; answered by `HandlerFinished`.
    Run(HandlerCall),
    /// Start the reboot of the host; answered by `RebootReturned`, or by the end of this process.
    Reboot(RebootCall),
    /// Publish a reply and have the stream confirm it; answered by `ReplyStored` or `ReplyFailed`.
    Reply(OutgoingReply),
    /// Acknowledge a command and have the server confirm it; answered by `Acked` or `AckFailed`.
    Ack {
        /// Stream sequence of the command.
        sequence: u64,
        /// Where the acknowledgement goes.
        subject: String,
    },
    /// Report that a command is still under way; best effort, not answered.
    InProgress {
        /// Where the report goes.
        subject: String,
    },
    /// Ask the handler for the versions and the stream for the last published ones; answered by `VersionsRead`.
    ReadVersions,
    /// Publish versions and have the stream confirm it; answered by `VersionsPublished` or `VersionsPublishFailed`.
    PublishVersions {
        /// Where they go.
        subject: String,
        /// The flat JSON object.
        payload: Vec<u8>,
    },
    /// Log a message for the operator; not answered.
    Log(LogMessage),
}

/// A reboot to start, and the context for its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootCall {
    /// Stream sequence of the command that it serves.
    pub sequence: u64,
    /// The run, if the command named one.
    pub run: Option<RunId>,
    /// The end of the run, if there is one.
    pub not_after: Option<DateTime<Utc>>,
    /// The same reboot may have been attempted before.
    pub resume: bool,
}

/// A reply, ready to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingReply {
    /// Stream sequence of the command that it answers.
    pub sequence: u64,
    /// The id of that command, if it has one. Output can be sent with it.
    pub command: Option<CommandId>,
    /// Where it goes.
    pub subject: String,
    /// The JSON of the reply.
    pub payload: Vec<u8>,
    /// Header names and values.
    pub headers: Vec<(&'static str, String)>,
}
