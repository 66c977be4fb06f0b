//! Commands that were seen in the control stream, and what a reply says of the one that it answers.

use os_upgrade_protocol::{Action, RunId};
use serde::{Deserialize, Serialize};

/// A command that has been seen in the control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SentCommand {
    pub action: Action,
    /// Its sequence in the control stream.
    pub sequence: u64,
}

impl SentCommand {
    /// Whether a reply to `action` at `sequence` answers this command, which is of `run` if that is known. A reply that does
    /// not name the command it answers counts if it has the same action and comes later in the stream.
    pub fn answered_by(self, run: Option<&RunId>, action: Action, to: &InReplyTo, sequence: u64) -> bool {
        self.action == action
            && run.zip(to.run.as_ref()).is_none_or(|(run, named)| run == named)
            && match to.sequence {
                Some(command) => command == self.sequence,
                None => sequence > self.sequence,
            }
    }
}

/// What a reply says of the command that it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InReplyTo {
    /// Its sequence in the control stream.
    pub sequence: Option<u64>,
    /// Its run. A site that was rolled back to an earlier state stores another command at the same sequence.
    pub run: Option<RunId>,
}
