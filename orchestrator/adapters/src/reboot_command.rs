//! An operator's commands: one reboots a node, the other one says whether the node has booted since.
//!
//! Each attempt has a limit, and nothing that it has started outlives it, unless it has left the process group: a command ends
//! when its time is up, and when whoever waits for it does not lead any more and drops the future. What follows from an
//! outcome is up to the caller.

mod attempt;

use std::time::Duration;

use chrono::{DateTime, Utc};

pub use self::attempt::Failure;
use self::attempt::{End, Output};

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    arguments: Vec<String>,
}

impl CommandLine {
    /// The program is the first of `words`; none if there is no word.
    pub fn new(words: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut words = words.into_iter();
        let program = words.next()?;
        Some(Self { program, arguments: words.collect() })
    }

    /// Runs it once, with more arguments.
    async fn run(&self, more: &[&str], limit: Duration) -> End {
        let arguments = self.arguments.iter().map(String::as_str).chain(more.iter().copied());
        attempt::run(&self.program, arguments, limit).await
    }
}

/// How often a command is tried, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// The limit of one attempt.
    pub timeout: Duration,
    /// The most attempts after the first one.
    pub retries: u32,
    /// The pause before each of these.
    pub interval: Duration,
}

/// What came of a request to reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Reboot {
    /// The reboot has begun, says the command.
    Started,
    /// The last attempt failed. Unless the failure leaves that open, nothing has begun.
    Failed(Failure),
    /// This instance does not lead any more, and has run nothing.
    NotBegun,
}

/// Whether a node has booted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Boot {
    /// It has, says the command.
    Booted,
    /// It has not, as far as is known.
    NotYet(NotYet),
}

/// Why a node does not count as booted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotYet {
    /// The command has succeeded and printed something else than `true`.
    #[error("the command says {said:?}")]
    Said {
        /// The end of what it printed.
        said: String,
    },
    /// The last attempt failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The command that reboots a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootCommand {
    /// What is run. The node is appended as the last argument.
    pub command: CommandLine,
    /// How often.
    pub attempts: Attempts,
}

impl RebootCommand {
    /// Runs the command for a node until it succeeds. An attempt that may have succeeded is not repeated here.
    ///
    /// `may_write` is called right before each attempt. It returns whether this instance still leads.
    pub async fn run(&self, node: &str, may_write: impl Fn() -> bool) -> Reboot {
        let mut outcome = Reboot::NotBegun;
        for attempt in 0..=self.attempts.retries {
            if attempt > 0 {
                tokio::time::sleep(self.attempts.interval).await;
            }
            if !may_write() {
                return outcome;
            }
            let failure = match self.command.run(&[node], self.attempts.timeout).await {
                End::Success(_) => return Reboot::Started,
                End::Failure(failure) => failure,
            };
            tracing::warn!(node, attempt, %failure, "the reboot command fails");
            let is_last = failure.leaves_outcome_unknown();
            outcome = Reboot::Failed(failure);
            if is_last {
                return outcome;
            }
        }
        outcome
    }
}

/// The command that says whether a node has booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootCheckCommand {
    /// What is run. The node and a Unix time in seconds are appended as the last arguments.
    pub command: CommandLine,
    /// How often. An attempt with an answer is not repeated here.
    pub attempts: Attempts,
}

impl BootCheckCommand {
    /// Asks whether a node has booted after this time.
    pub async fn run(&self, node: &str, since: DateTime<Utc>) -> Boot {
        let since = since.timestamp().to_string();
        let mut attempt = 0;
        loop {
            let failure = match self.command.run(&[node, &since], self.attempts.timeout).await {
                End::Success(output) => return answer(&output),
                End::Failure(failure) => failure,
            };
            if attempt == self.attempts.retries {
                return Boot::NotYet(failure.into());
            }
            attempt += 1;
            tokio::time::sleep(self.attempts.interval).await;
        }
    }
}

fn answer(stdout: &Output) -> Boot {
    if stdout.is_complete && stdout.text == "true" {
        Boot::Booted
    } else {
        Boot::NotYet(NotYet::Said { said: stdout.text.clone() })
    }
}

#[cfg(test)]
mod tests;
