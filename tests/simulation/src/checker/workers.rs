//! What happens on hosts.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName, RunId};
use os_upgrade_worker_rules::Call;

use super::Checker;
use crate::plan::HostPlan;

/// A host as an outsider sees it.
#[derive(Debug)]
pub(super) struct HostSeen {
    pub(super) name: HostName,
    pub(super) group: Option<GroupName>,
    /// Whether its worker keeps the SDK's rules.
    sdk: bool,
    /// The runs in which it has executed `upgrade`.
    upgraded: BTreeSet<RunId>,
    /// The run whose upgrade answered `reboot-required`, until the host boots.
    pub(super) reboot_due: Option<RunId>,
    /// Whether its state file was ever lost.
    has_lost_state: bool,
    /// The `upgrade` that answered so last.
    pub(super) upgrade: Option<u64>,
}

impl HostSeen {
    pub(super) fn new(name: HostName, plan: &HostPlan) -> Self {
        let group = plan.group.clone();
        Self {
            name,
            group,
            sdk: plan.sdk,
            upgraded: BTreeSet::new(),
            reboot_due: None,
            has_lost_state: false,
            upgrade: None,
        }
    }
}

impl HostSeen {
    /// In how many runs it has executed `upgrade`.
    pub(super) fn upgrades(&self) -> u64 {
        self.upgraded.len() as u64
    }
}

/// A handler that is begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) sequence: u64,
    pub(crate) call: Call,
    pub(crate) resume: bool,
    /// The worker's clock when it was decided.
    pub(crate) wall: DateTime<Utc>,
}

impl Checker {
    /// A handler is begun on a host.
    pub(crate) fn handler_begun(&mut self, host: usize, begun: &Begun) {
        let Some(command) = self.commands.get_mut(&begun.sequence) else {
            return self.violated("worker", format!("command {} was never stored", begun.sequence));
        };
        command.executed = true;
        let (id, not_after) = (command.id.clone(), command.not_after);
        let starts = match begun.call {
            Call::Prepare => true,
            Call::Upgrade => !begun.resume,
            Call::Health => false,
        };
        if starts && begun.wall > not_after {
            self.violated("S2", format!("{id} is begun at {}, after its not-after {not_after}", begun.wall));
        }
        let host = &mut self.hosts[host];
        if begun.call == Call::Upgrade && !begun.resume && !host.upgraded.insert(id.run.clone()) {
            self.violated("S3", format!("{} executes upgrade twice in {}", id.host, id.run));
        }
    }

    /// A reboot is begun on a host.
    pub(crate) fn reboot_begun(&mut self, host: usize, sequence: u64, wall: DateTime<Utc>) {
        let Some(command) = self.commands.get_mut(&sequence) else {
            return self.violated("worker", format!("command {sequence} was never stored"));
        };
        command.executed = true;
        let (id, not_after) = (command.id.clone(), command.not_after);
        if self.hosts[host].reboot_due.as_ref() != Some(&id.run) {
            self.violated("worker", format!("{id} reboots a host for which no reboot is due"));
        } else if wall > not_after {
            self.violated("S2", format!("{id} is begun at {wall}, after its not-after {not_after}"));
        }
    }

    /// A host has booted.
    pub(crate) fn booted(&mut self, host: usize) {
        self.hosts[host].reboot_due = None;
    }

    /// A worker's state file is gone: without one no reboot is due, and what was begun is not known to have been.
    pub(crate) fn worker_state_lost(&mut self, host: usize) {
        self.hosts[host].reboot_due = None;
        self.hosts[host].has_lost_state = true;
        self.forgive_repetitions();
        let name = &self.hosts[host].name;
        for command in self.commands.values_mut().filter(|command| command.id.host == *name) {
            command.executed = false;
        }
    }

    /// The bus has forgotten acknowledgements.
    pub(crate) fn acks_forgotten(&mut self) {
        self.acks_forgotten = true;
        self.forgive_repetitions();
    }

    /// A host whose state file is gone, and whose `prepare` the bus delivers again because it has forgotten that it was
    /// acknowledged, cannot know that it has been upgraded.
    fn forgive_repetitions(&mut self) {
        if self.acks_forgotten {
            for host in self.hosts.iter_mut().filter(|host| host.has_lost_state) {
                host.upgraded.clear();
            }
        }
    }

    /// A worker's acknowledgement has reached the bus.
    pub(crate) fn acked(&mut self, host: usize, sequence: u64, wall: DateTime<Utc>) {
        let Some(command) = self.commands.get(&sequence).filter(|_| self.hosts[host].sdk) else { return };
        // One that was cut off and comes too late is dropped without a reply.
        let dropped = command.id.action != Action::Upgrade && wall > command.not_after;
        if command.executed && !command.replied && !dropped {
            let text = format!("{} was executed and is acknowledged before its reply", command.id);
            self.violated("worker", text);
        }
    }
}
