//! The operator's commands: one reboots a host of the reboot queue, the other one says whether it has booted.
//!
//! To repeat the first one may reboot a host twice. So it is run only after a fact that says so, and once for it; what a leader
//! cannot know of the command of another one is never taken for a failure.

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use os_upgrade_protocol::{GroupName, HostName};

use super::attempt::{Attempt, AttemptStage};
use super::entry::{Entry, EntryEvent};
use crate::fact::Fact;
use crate::no_answer::NoAnswer;
use crate::reason::Reason;
use crate::slot::ReleaseCause;
use crate::state::State;
use crate::system_job::{Subject, SystemJob};
use crate::view::View;

/// One of the operator's commands to run for the entry of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandJob {
    /// Whether it reboots the host or asks whether it has booted.
    pub order: CommandOrder,
    pub host: HostName,
    /// The name of the host's Kubernetes node, or of the host if it is none.
    pub node: String,
    pub index: u64,
}

/// Which of the operator's commands to run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandOrder {
    /// Reboot the host.
    Reboot {
        /// The number of the attempt.
        attempt: u32,
    },
    /// Say whether the host has booted.
    CheckBoot {
        /// Since when, in whole seconds.
        since: DateTime<Utc>,
    },
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Of `Reboot`: the reboot has begun.
    Succeeded,
    /// Of `Reboot`: the reboot has not begun.
    Failed {
        /// How the command ended.
        detail: String,
        /// The end of what it printed.
        output: String,
    },
    /// Of `Reboot`: nothing was run.
    NotStarted {
        /// A description.
        detail: String,
    },
    /// Of `Reboot`: whether the reboot has begun is not known.
    Unknown {
        /// How the command ended, or why that is not known.
        detail: String,
        /// The end of what it printed; empty if its end is not known.
        output: String,
    },
    /// Of `CheckBoot`: it has booted.
    Booted,
    /// Of `CheckBoot`: it has not booted, as far as is known.
    NotBooted,
}

impl SystemJob for CommandJob {
    type Outcome = CommandOutcome;

    fn wanted(state: &State) -> impl Iterator<Item = Self> {
        state.attempts().filter_map(|(index, entry, attempt)| {
            let order = order(state, entry, attempt)?;
            Some(Self { order, host: entry.host.clone(), node: attempt.node.clone(), index })
        })
    }

    fn done(&self, state: &State, _: &View, outcome: &CommandOutcome, _: DateTime<Utc>) -> Vec<Fact> {
        let Some(entry) = state.reboot_queue.entries.get(&self.index) else { return Vec::new() };
        let is_wanted = entry.host == self.host
            && entry.attempt.as_ref().and_then(|attempt| order(state, entry, attempt)).as_ref()
                == Some(&self.order);
        if !is_wanted {
            return Vec::new();
        }
        let event = match (&self.order, outcome) {
            (CommandOrder::Reboot { .. }, CommandOutcome::Succeeded) => EntryEvent::AttemptSucceeded,
            (CommandOrder::Reboot { .. }, CommandOutcome::Failed { detail, output }) => {
                let (detail, output) = (detail.clone(), output.clone());
                EntryEvent::Failed { reason: Reason::RebootCommandFailed { detail, output } }
            }
            (CommandOrder::Reboot { .. }, CommandOutcome::NotStarted { detail }) => {
                EntryEvent::Failed { reason: Reason::RebootCommandNotStarted { detail: detail.clone() } }
            }
            (CommandOrder::Reboot { .. }, CommandOutcome::Unknown { detail, output }) => {
                unknown(detail, output)
            }
            (CommandOrder::CheckBoot { .. }, CommandOutcome::Booted) => {
                let owner = entry.owner(self.index);
                return state.host_is_back(&owner, &self.host, true, ReleaseCause::Rebooted);
            }
            // A check without an answer says nothing, and is made again.
            (CommandOrder::Reboot { .. }, CommandOutcome::Booted | CommandOutcome::NotBooted)
            | (
                CommandOrder::CheckBoot { .. },
                CommandOutcome::NotBooted
                | CommandOutcome::Unknown { .. }
                | CommandOutcome::Succeeded
                | CommandOutcome::NotStarted { .. }
                | CommandOutcome::Failed { .. },
            ) => return Vec::new(),
        };
        vec![Fact::of_entry(self.index, &self.host, event)]
    }

    /// What an earlier leader's command did is not known. It ended with that leadership.
    fn leadership_began(state: &State) -> impl Iterator<Item = Fact> + '_ {
        let running = state.attempts().filter(|(.., attempt)| attempt.stage == AttemptStage::Running);
        running.map(|(index, entry, _)| {
            let event = unknown("the leader that ran it does not lead any more", "");
            Fact::of_entry(index, &entry.host, event)
        })
    }

    fn unanswered(why: NoAnswer) -> CommandOutcome {
        CommandOutcome::Unknown { detail: detail(why), output: String::new() }
    }

    fn is_answer(outcome: &CommandOutcome) -> bool {
        match outcome {
            CommandOutcome::Succeeded
            | CommandOutcome::Failed { .. }
            | CommandOutcome::NotStarted { .. }
            | CommandOutcome::Unknown { .. }
            | CommandOutcome::Booted
            | CommandOutcome::NotBooted => true,
        }
    }

    fn subject(&self) -> Subject {
        Subject::Host(self.host.clone())
    }

    fn is_release(&self) -> bool {
        false
    }

    fn pool(&self) -> Option<&GroupName> {
        None
    }

    /// Until this leader's fence is open, the state may still say that its predecessor's command is being run.
    fn needs_fence() -> bool {
        true
    }
}

/// The command that the entry needs now, if any.
fn order(state: &State, entry: &Entry, attempt: &Attempt) -> Option<CommandOrder> {
    let checks_boot = state.settings.reboot.checks_boot();
    match attempt.stage {
        AttemptStage::Running => Some(CommandOrder::Reboot { attempt: attempt.number }),
        AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed if checks_boot => {
            Some(CommandOrder::CheckBoot { since: second_from(entry.last_transition) })
        }
        AttemptStage::Due
        | AttemptStage::Succeeded
        | AttemptStage::Unknown
        | AttemptStage::Failed
        | AttemptStage::Booted => None,
    }
}

/// The first whole second from `at` on. A boot in the second of `at` may have been before.
fn second_from(at: DateTime<Utc>) -> DateTime<Utc> {
    let second = at.trunc_subsecs(0);
    if second < at { second + TimeDelta::seconds(1) } else { second }
}

fn unknown(detail: &str, output: &str) -> EntryEvent {
    let (detail, output) = (detail.to_owned(), output.to_owned());
    EntryEvent::AttemptUnknown { reason: Reason::RebootUnknown { detail, output } }
}

/// What is journaled of a command whose outcome is lost. Commands need no secret, so that none is sealed.
fn detail(why: NoAnswer) -> String {
    match why {
        NoAnswer::NotConfigured => "none is configured".to_owned(),
        NoAnswer::Sealed { .. } => "a secret cannot be used".to_owned(),
        NoAnswer::TimedOut => "timed out".to_owned(),
        NoAnswer::NotSent { detail } | NoAnswer::Failed { detail } => detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_count_from_the_next_second_on() {
        for (at, expected) in [(0, 0), (1, 1_000), (999, 1_000), (1_000, 1_000)] {
            let time = |millis| DateTime::from_timestamp_millis(millis).unwrap();
            assert_eq!(second_from(time(at)), time(expected), "{at}");
        }
    }
}
