//! Rules `preparing`, `retries`, `early` and `result`, and `turn` of hosts that are prepared: what the rollout of a run bounds, and how the
//! run may end.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::{Enlisted, Fact, HostEvent, Reason, RunHost, RunResult, State};
use os_upgrade_protocol::{Action, GroupName, HostName};

use super::violation::Violation;

/// A host of the active run, according to the journal.
#[derive(Debug)]
struct Host {
    group: GroupName,
    /// Whether it is told to prepare, or is about to be, and has not answered.
    is_told: bool,
    /// How many times it was told to prepare, where that is recorded.
    attempts: u32,
    /// When its last command was seen.
    sent: Option<(Action, DateTime<Utc>)>,
    is_upgraded: bool,
    is_left: bool,
}

/// The active run, according to the journal.
#[derive(Debug, Default)]
pub(super) struct Rollouts {
    rollout: Rollout,
    hosts: BTreeMap<HostName, Host>,
}

impl Rollouts {
    /// A fact of the time `at` was added to the journal, which folds to `state` with it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, at: DateTime<Utc>, fact: &Fact, state: &State) -> Result<(), Violation> {
        match fact {
            Fact::Run(RunFact::Started { rollout, hosts, .. }) => {
                self.rollout = rollout.clone();
                let is_told = rollout.max_preparing.is_none();
                let host = |entry: &Enlisted| Host {
                    group: entry.group.clone(),
                    is_told: is_told && entry.skipped.is_none(),
                    attempts: u32::from(is_told),
                    sent: None,
                    is_upgraded: false,
                    is_left: false,
                };
                self.hosts = hosts.iter().map(|entry| (entry.host.clone(), host(entry))).collect();
                Ok(())
            }
            Fact::Run(RunFact::Host { host, event, .. }) => self.host(at, host, event, state),
            Fact::Run(RunFact::Ended { result: RunResult::Completed, .. }) => {
                let is_nobody_upgraded = !self.hosts.values().any(|host| host.is_upgraded);
                match self.hosts.iter().find(|(_, host)| is_nobody_upgraded || host.is_left) {
                    Some((host, _)) => Err(Violation::new("result", format!("completed in spite of {host}"))),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn host(
        &mut self,
        at: DateTime<Utc>,
        name: &HostName,
        event: &HostEvent,
        state: &State,
    ) -> Result<(), Violation> {
        let Some(host) = self.hosts.get_mut(name) else { return Ok(()) };
        let sent = host.sent;
        host.is_upgraded |= *event == HostEvent::Upgraded;
        host.is_left |= matches!(event, HostEvent::NotReached { .. });
        match event {
            HostEvent::CommandSent { action, .. } => host.sent = Some((*action, at)),
            HostEvent::PrepareBegan => {
                // One that holds a slot does not count, also if that is released before it answers.
                host.is_told = !state.slots.contains_key(name);
                host.attempts += 1;
                self.check_retries(name)?;
                check_turn(at, name, state)?;
                return self.check_preparing();
            }
            HostEvent::PrepareFailed { .. }
            | HostEvent::Prepared
            | HostEvent::Failed { .. }
            | HostEvent::Skipped { .. }
            | HostEvent::Cancelled { .. }
            | HostEvent::NotReached { .. } => host.is_told = false,
            HostEvent::TimedOut { reason } => {
                host.is_told = false;
                let timeout = self.rollout.prepare_timeout;
                if let Reason::PrepareTimeout { .. } = reason {
                    return check_time(at, name, sent, Action::Prepare, timeout);
                }
                if let Reason::BootTimeout { .. } = reason {
                    return check_time(at, name, sent, Action::Reboot, Some(self.rollout.boot_timeout));
                }
            }
            HostEvent::Overdue { .. } => {
                return check_time(at, name, sent, Action::Upgrade, self.rollout.upgrade_timeout);
            }
            HostEvent::Waiting { .. }
            | HostEvent::TurnLost
            | HostEvent::SlotGranted { .. }
            | HostEvent::Drained
            | HostEvent::BackedOff { .. }
            | HostEvent::Recovering
            | HostEvent::RebootRequired
            | HostEvent::Upgraded => {}
        }
        Ok(())
    }

    fn check_retries(&self, name: &HostName) -> Result<(), Violation> {
        let attempts = self.hosts.get(name).map_or(0, |host| host.attempts);
        let most = self.rollout.retries.map_or(0, |retries| retries.prepare).saturating_add(1);
        if attempts > most {
            let text = format!("{name} is prepared for the {attempts}th time, and may be {most} times");
            return Err(Violation::new("retries", text));
        }
        Ok(())
    }

    /// One of each group may be told whoever else is, and so may one that holds a slot.
    fn check_preparing(&self) -> Result<(), Violation> {
        let Some(max) = self.rollout.max_preparing else { return Ok(()) };
        let told = self.hosts.values().filter(|host| host.is_told);
        let groups: BTreeSet<&GroupName> = self.hosts.values().map(|host| &host.group).collect();
        let (told, most) = (told.count(), max as usize + groups.len() - 1);
        if told > most {
            let text = format!("{told} hosts prepare at once, and {most} may");
            return Err(Violation::new("preparing", text));
        }
        Ok(())
    }
}

/// Hosts of a group are prepared in the order of turns, but for those that hold a slot, back off or reboot.
fn check_turn(at: DateTime<Utc>, name: &HostName, state: &State) -> Result<(), Violation> {
    let Some(run) = state.run.as_ref().filter(|_| !state.slots.contains_key(name)) else { return Ok(()) };
    let Some(host) = run.host(name) else { return Ok(()) };
    let is_due = |(other, it): &(&HostName, &RunHost)| {
        it.group == host.group
            && it.is_untold()
            && it.retry.is_none_or(|retry| retry.until <= at)
            && state.entry_under_way(other).is_none()
    };
    let mut due = run.hosts().iter().filter(is_due);
    match due.find(|(other, it)| (it.last_turn, *other) < (host.last_turn, name)) {
        Some((other, _)) => Err(Violation::new("turn", format!("{name} is prepared before {other}"))),
        None => Ok(()),
    }
}

/// Nothing counts as unanswered before its time, by the times of the journal.
fn check_time(
    at: DateTime<Utc>,
    name: &HostName,
    sent: Option<(Action, DateTime<Utc>)>,
    action: Action,
    timeout: Option<Duration>,
) -> Result<(), Violation> {
    let is_due = |(sent, since): (Action, DateTime<Utc>)| {
        // Where the clock was set back, the time since then counts, which the journal does not have.
        let is_set_back = since > at;
        let is_over = timeout.is_some_and(|timeout| since + timeout.to_delta() <= at);
        sent == action && (is_set_back || is_over)
    };
    if sent.is_some_and(is_due) {
        return Ok(());
    }
    let text =
        format!("{name}, told {sent:?}, has not answered {action} in time at {at}, within {timeout:?}");
    Err(Violation::new("early", text))
}
