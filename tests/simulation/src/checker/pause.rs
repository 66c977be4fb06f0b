//! Rule `paused`: on a site that is paused nothing begins, and a pause ends when somebody resumes the site, or when its end has come.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{PauseFact, QueueFact, RunFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{Fact, HostEvent, PauseCause, PauseOperation};

use super::violation::Violation;
use crate::time::Micros;

/// A pause, according to the journal.
#[derive(Debug, PartialEq)]
struct Seen {
    reason: Option<String>,
    until: Option<DateTime<Utc>>,
}

#[derive(Debug)]
pub(super) struct Pauses {
    /// Every change, with the time from which it is so.
    changes: Vec<(Micros, Option<Seen>)>,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { changes: vec![(0, None)] }
    }
}

impl Pauses {
    fn current(&self) -> Option<&Seen> {
        self.changes.last().and_then(|(_, seen)| seen.as_ref())
    }

    /// A fact of the time `at` was added to the journal.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        let begun = match fact {
            Fact::Pause(PauseFact::Paused { cause, until }) => {
                let reason = match cause {
                    PauseCause::Operator { reason, .. } => Some(reason.clone()),
                    PauseCause::Restored { .. } => None,
                };
                self.changes.push((now, Some(Seen { reason, until: *until })));
                return Ok(());
            }
            Fact::Pause(PauseFact::Resumed { actor, .. }) => {
                let until = self.current().and_then(|seen| seen.until);
                self.changes.push((now, None));
                if actor.is_none() && until.is_none_or(|until| at < until) {
                    let text = format!("a pause until {until:?} ended by itself at {at}");
                    return Err(Violation::new("paused", text));
                }
                return Ok(());
            }
            Fact::Run(RunFact::Started { run, .. }) => format!("run {run}"),
            Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { .. }, .. }) => host.to_string(),
            Fact::Queue(QueueFact::Reboot { host, event: EntryEvent::Started { .. }, .. }) => {
                format!("the reboot of {host}")
            }
            _ => return Ok(()),
        };
        if self.current().is_some() {
            return Err(Violation::new("paused", format!("{begun} begins while the site is paused")));
        }
        Ok(())
    }

    /// Whether what `operation` asks for was so at some time since `called`.
    pub(super) fn took_effect(&self, operation: &PauseOperation, called: Micros) -> bool {
        self.was(called, |seen| match operation {
            PauseOperation::Pause { reason, until } => {
                seen.is_some_and(|seen| seen.reason.as_ref() == Some(reason) && seen.until == *until)
            }
            PauseOperation::Resume { .. } => seen.is_none(),
        })
    }

    /// Whether the site was paused at some time since `called`.
    pub(super) fn was_paused(&self, called: Micros) -> bool {
        self.was(called, |seen| seen.is_some())
    }

    /// Whether `is_it` held at some time since `called`.
    fn was(&self, called: Micros, is_it: impl Fn(Option<&Seen>) -> bool) -> bool {
        self.changes.iter().enumerate().any(|(number, (_, seen))| {
            let until = self.changes.get(number + 1).map_or(Micros::MAX, |(from, _)| *from);
            is_it(seen.as_ref()) && until >= called
        })
    }
}
