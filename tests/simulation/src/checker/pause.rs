//! Rules `paused` and `deferred`: on a site that is paused, and on a host that is deferred, nothing begins; either ends when somebody ends it,
//! or when its end has come.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{EnrolmentFact, PauseFact, QueueFact, RunFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{Fact, HostEvent, PauseCause, PauseOperation};
use os_upgrade_protocol::HostName;

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
    /// The hosts that are deferred, each with the end of that.
    deferred: BTreeMap<HostName, Option<DateTime<Utc>>>,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { changes: vec![(0, None)], deferred: BTreeMap::new() }
    }
}

impl Pauses {
    fn current(&self) -> Option<&Seen> {
        self.changes.last().and_then(|(_, seen)| seen.as_ref())
    }

    /// A fact of the time `at` was added to the journal.
    pub(super) fn fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        self.of_site(now, at, fact)?;
        self.of_hosts(at, fact)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    fn of_hosts(&mut self, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        let begun: Vec<&HostName> = match fact {
            Fact::Enrolment(EnrolmentFact::HostDeferred { host, until, .. }) => {
                self.deferred.insert(host.clone(), *until);
                return Ok(());
            }
            Fact::Enrolment(EnrolmentFact::DeferralEnded { host, actor, .. }) => {
                let until = self.deferred.remove(host).flatten();
                if actor.is_none() && until.is_none_or(|until| at < until) {
                    let text = format!("the deferral of {host} until {until:?} ended by itself at {at}");
                    return Err(Violation::new("deferred", text));
                }
                return Ok(());
            }
            Fact::Enrolment(
                EnrolmentFact::HostWithdrawn { host, .. } | EnrolmentFact::HostRemoved { host, .. },
            ) => {
                self.deferred.remove(host);
                return Ok(());
            }
            Fact::Run(RunFact::Started { hosts, .. }) => {
                hosts.iter().filter(|entry| entry.skipped.is_none()).map(|entry| &entry.host).collect()
            }
            Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { .. }, .. })
            | Fact::Queue(QueueFact::Reboot { host, event: EntryEvent::Started { .. }, .. }) => vec![host],
            _ => return Ok(()),
        };
        match begun.into_iter().find(|host| self.deferred.contains_key(*host)) {
            Some(host) => Err(Violation::new("deferred", format!("{host} begins while it is deferred"))),
            None => Ok(()),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    fn of_site(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
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
