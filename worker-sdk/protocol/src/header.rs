//! Message headers.

use crate::{ApplicationName, HostName};

/// Who produced a message: [`CONTROLLER`] on commands, `<application>/<host>` on replies.
pub const PRODUCER_NAME: &str = "Producer-Name";
/// The id of the run that a command belongs to.
pub const RUN: &str = "Os-Upgrade-Run";
/// On a reply, the stream sequence of the command it answers.
pub const IN_REPLY_TO: &str = "Os-Upgrade-In-Reply-To";
/// A command's id. It is not JetStream's `Nats-Msg-Id`: a host that guesses the id of a command to another host could make
/// the server drop that command as a repetition, by publishing anything under the same id before.
pub const COMMAND_ID: &str = "Os-Upgrade-Command-Id";
/// Where orchestrators of earlier versions wrote it: a command of theirs is one of ours.
pub const EARLIER_COMMAND_ID: &str = "Nats-Msg-Id";
/// The last sequence that the publisher believes the stream to have.
pub const EXPECTED_LAST_SEQUENCE: &str = "Nats-Expected-Last-Sequence";
/// The last sequence that the publisher believes a subject to have.
pub const EXPECTED_LAST_SUBJECT_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
/// The subject that [`EXPECTED_LAST_SUBJECT_SEQUENCE`] speaks of; nats-server 2.11 and later.
pub const EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// The orchestrator's [`PRODUCER_NAME`].
pub const CONTROLLER: &str = "os-upgrade-controller";

/// A worker's [`PRODUCER_NAME`].
pub fn worker_producer(application: &ApplicationName, host: &HostName) -> String {
    format!("{application}/{host}")
}
