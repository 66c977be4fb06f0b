//! Which hosts may be sent commands: those that were approved when their run began, and no more once they are withdrawn,
//! unless they had begun.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::{Enlisted, Fact, HostEvent};
use os_upgrade_protocol::{CommandId, HostName, RunId};

use super::Checker;
use crate::time::Micros;

/// What operators decided about hosts, and what follows for runs.
#[derive(Debug, Default)]
pub(super) struct Enrolled {
    auto_approve: bool,
    approved: BTreeSet<HostName>,
    withdrawn: BTreeSet<HostName>,
    /// Who takes part in each run.
    participants: BTreeMap<RunId, BTreeSet<HostName>>,
    active: Option<RunId>,
    /// Who has begun in the active run.
    begun: BTreeSet<HostName>,
    /// Who was withdrawn in a run before it began there, and when any instance first showed that.
    out: BTreeMap<(RunId, HostName), Option<Micros>>,
}

impl Enrolled {
    fn takes_part(&self, host: &HostName) -> bool {
        self.approved.contains(host) || (self.auto_approve && !self.withdrawn.contains(host))
    }

    fn withdraw(&mut self, host: &HostName, forgotten: bool) {
        self.approved.remove(host);
        if forgotten {
            self.withdrawn.remove(host);
        } else {
            self.withdrawn.insert(host.clone());
        }
        if let Some(run) = self.active.clone().filter(|_| !self.begun.contains(host)) {
            self.out.entry((run, host.clone())).or_default();
        }
    }
}

impl Checker {
    /// A fact stands in the journal.
    pub(super) fn enrolment_fact(&mut self, fact: &Fact) {
        let enrolled = &mut self.enrolled;
        if let Fact::SettingsAdopted { settings } = fact {
            enrolled.auto_approve = settings.auto_approve;
        } else if let Fact::HostsApproved { hosts, .. } = fact {
            for host in hosts {
                enrolled.withdrawn.remove(host);
                enrolled.approved.insert(host.clone());
            }
        } else if let Fact::HostWithdrawn { host, forgotten, .. } = fact {
            enrolled.withdraw(host, *forgotten);
        } else if let Fact::RunStarted { run, hosts, .. } = fact {
            self.run_enlists(run, hosts);
        } else if let Fact::RunEnded { .. } = fact {
            enrolled.active = None;
        } else if let Fact::Host { host, event: HostEvent::SlotGranted { .. }, .. } = fact {
            enrolled.begun.insert(host.clone());
        }
    }

    fn run_enlists(&mut self, run: &RunId, hosts: &[Enlisted]) {
        let taking_part: BTreeSet<HostName> =
            hosts.iter().filter(|entry| entry.skipped.is_none()).map(|entry| entry.host.clone()).collect();
        if let Some(host) = taking_part.iter().find(|host| !self.enrolled.takes_part(host)) {
            self.violated("enrol", format!("{host} takes part in {run} without an approval"));
        }
        self.enrolled.participants.insert(run.clone(), taking_part);
        self.enrolled.active = Some(run.clone());
        self.enrolled.begun.clear();
    }

    /// An instance shows that `host` is withdrawn.
    pub(super) fn withdrawal_shown(&mut self, host: &HostName) {
        for ((_, withdrawn), shown) in &mut self.enrolled.out {
            if withdrawn == host {
                shown.get_or_insert(self.now);
            }
        }
    }

    /// A command that was sent at `sent` stands in the stream.
    pub(super) fn check_enrolled(&mut self, id: &CommandId, sent: Micros) {
        let takes_part =
            self.enrolled.participants.get(&id.run).is_some_and(|hosts| hosts.contains(&id.host));
        if !takes_part {
            self.violated("enrol", format!("{id} goes to a host that does not take part"));
        }
        let out = self.enrolled.out.get(&(id.run.clone(), id.host.clone()));
        if out.is_some_and(|shown| shown.is_some_and(|shown| shown < sent)) {
            self.violated("enrol", format!("{id} is sent to a host that was withdrawn before it began"));
        }
    }
}
