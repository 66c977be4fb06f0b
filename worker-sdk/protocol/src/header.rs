//! Message headers.

use crate::{ApplicationName, HostName};

/// Who produced a message: [`CONTROLLER`] on commands, `<application>/<host>` on replies.
pub const PRODUCER_NAME: &str = "Producer-Name";
/// On a command, the id of its run; on a reply and on output, that of the run of the command that they are about.
pub const RUN: &str = "Os-Upgrade-Run";
/// On a reply, the stream sequence of the command it answers.
pub const IN_REPLY_TO: &str = "Os-Upgrade-In-Reply-To";
/// A command's id, on the command and on its output. JetStream's `Nats-Msg-Id` is not used: a host that guesses the id of a command to another host could
/// publish a message with that id first, and the server would drop the command as a duplicate.
pub const COMMAND_ID: &str = "Os-Upgrade-Command-Id";
/// The header in which earlier versions of the orchestrator wrote a command's id. Their commands are accepted.
pub const LEGACY_COMMAND_ID: &str = "Nats-Msg-Id";
/// The last sequence that the publisher expects the stream to have.
pub const EXPECTED_LAST_SEQUENCE: &str = "Nats-Expected-Last-Sequence";
/// The last sequence that the publisher expects a subject to have.
pub const EXPECTED_LAST_SUBJECT_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
/// The subject that [`EXPECTED_LAST_SUBJECT_SEQUENCE`] refers to; nats-server 2.11 and later.
pub const EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// The orchestrator's [`PRODUCER_NAME`].
pub const CONTROLLER: &str = "os-upgrade-controller";

/// A worker's [`PRODUCER_NAME`].
pub fn worker_producer(application: &ApplicationName, host: &HostName) -> String {
    format!("{application}/{host}")
}
