//! Which hosts may be sent commands: those that were approved when their run began, until they are withdrawn, unless
//! they had begun by then.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::fact::{ConfigFact, EnrolmentFact, RunFact};
use os_upgrade_kernel::{Enlisted, Fact, HostEvent, Owner};
use os_upgrade_protocol::{CommandId, HostName, RunId};

use super::violation::Violation;
use crate::time::Micros;

/// The operators' decisions about hosts, and their consequences for runs.
#[derive(Debug, Default)]
pub(super) struct Enrolled {
    auto_approve: bool,
    approved: BTreeSet<HostName>,
    withdrawn: BTreeSet<HostName>,
    /// Hosts that are not approved automatically, because they were removed.
    removed: BTreeSet<HostName>,
    /// Those of them of which nothing is stored any more.
    purged: BTreeSet<HostName>,
    /// The hosts that take part in each run.
    participants: BTreeMap<RunId, BTreeSet<HostName>>,
    active: Option<RunId>,
    /// The hosts that have begun in the active run.
    begun: BTreeSet<HostName>,
    /// The hosts of the active run whose part in it has not ended.
    at_work: BTreeSet<HostName>,
    /// The hosts that were withdrawn in a run before they began there, and when any instance first showed that.
    out: BTreeMap<(RunId, HostName), Option<Micros>>,
}

impl Enrolled {
    /// A fact was added to the journal.
    pub(super) fn fact(&mut self, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::Config(ConfigFact::SettingsAdopted { settings }) => {
                self.auto_approve = settings.auto_approve;
                if !self.auto_approve {
                    // With hosts approved automatically later, these are like all others.
                    let purged = std::mem::take(&mut self.purged);
                    self.removed.retain(|host| !purged.contains(host));
                }
            }
            Fact::Enrolment(fact) => return self.decided(fact),
            Fact::Run(fact) => return self.ran(fact),
            Fact::Config(ConfigFact::Replaced { .. })
            | Fact::Slot(_)
            | Fact::Desired(_)
            | Fact::Pause(_)
            | Fact::Lock(_)
            | Fact::Queue(_)
            | Fact::Node(_)
            | Fact::Secret(_)
            | Fact::Unit(_)
            | Fact::Control(_)
            | Fact::Restoration(_) => {}
        }
        Ok(())
    }

    fn decided(&mut self, fact: &EnrolmentFact) -> Result<(), Violation> {
        match fact {
            EnrolmentFact::HostsApproved { hosts, .. } => {
                for host in hosts {
                    self.withdrawn.remove(host);
                    self.removed.remove(host);
                    self.approved.insert(host.clone());
                }
            }
            EnrolmentFact::HostWithdrawn { host, .. } => {
                self.approved.remove(host);
                self.removed.remove(host);
                self.withdrawn.insert(host.clone());
                if let Some(run) = self.active.clone().filter(|_| !self.begun.contains(host)) {
                    self.out.entry((run, host.clone())).or_default();
                }
            }
            EnrolmentFact::KeyPinned { .. }
            | EnrolmentFact::HostDeferred { .. }
            | EnrolmentFact::DeferralEnded { .. } => {}
            EnrolmentFact::HostRemoved { host, .. } => {
                self.approved.remove(host);
                self.withdrawn.remove(host);
                self.removed.insert(host.clone());
                self.purged.remove(host);
                return self.check_removed(host);
            }
            EnrolmentFact::HostPurged { host } if self.auto_approve => {
                self.purged.insert(host.clone());
            }
            EnrolmentFact::HostPurged { host } => {
                self.removed.remove(host);
            }
        }
        Ok(())
    }

    fn ran(&mut self, fact: &RunFact) -> Result<(), Violation> {
        match fact {
            RunFact::Started { run, hosts, .. } => return self.run_enlists(run, hosts),
            RunFact::Ended { .. } => {
                self.active = None;
                self.at_work.clear();
            }
            RunFact::Host { host, event: HostEvent::SlotGranted { .. }, .. } => {
                self.begun.insert(host.clone());
            }
            RunFact::Host {
                host,
                event:
                    HostEvent::Upgraded
                    | HostEvent::Failed { .. }
                    | HostEvent::TimedOut { .. }
                    | HostEvent::Skipped { .. }
                    | HostEvent::Cancelled { .. }
                    | HostEvent::NotReached { .. },
                ..
            } => {
                self.at_work.remove(host);
            }
            RunFact::Host { .. }
            | RunFact::UpgradesBegan { .. }
            | RunFact::Stopping { .. }
            | RunFact::Missed(_) => {}
        }
        Ok(())
    }

    fn run_enlists(&mut self, run: &RunId, hosts: &[Enlisted]) -> Result<(), Violation> {
        let taking_part: BTreeSet<HostName> =
            hosts.iter().filter(|entry| entry.skipped.is_none()).map(|entry| entry.host.clone()).collect();
        let unapproved = taking_part.iter().find(|host| !self.takes_part(host)).cloned();
        self.at_work.clone_from(&taking_part);
        self.participants.insert(run.clone(), taking_part);
        self.active = Some(run.clone());
        self.begun.clear();
        match unapproved {
            Some(host) => {
                Err(Violation::new("enrol", format!("{host} takes part in {run} without an approval")))
            }
            None => Ok(()),
        }
    }

    /// An instance shows that `host` is withdrawn.
    pub(super) fn withdrawal_shown(&mut self, now: Micros, host: &HostName) {
        for ((_, withdrawn), shown) in &mut self.out {
            if withdrawn == host {
                shown.get_or_insert(now);
            }
        }
    }

    /// A command that was sent at `sent` is stored in the stream.
    pub(super) fn check_command(&self, id: &CommandId, sent: Micros) -> Result<(), Violation> {
        // Of an entry of the reboot queue `queue` checks this when it starts.
        if Owner::from(&id.run).entry().is_some() {
            return Ok(());
        }
        if !self.participants.get(&id.run).is_some_and(|hosts| hosts.contains(&id.host)) {
            let text = format!("{id} goes to a host that does not take part");
            return Err(Violation::new("enrol", text));
        }
        let out = self.out.get(&(id.run.clone(), id.host.clone()));
        if out.is_some_and(|shown| shown.is_some_and(|shown| shown < sent)) {
            let text = format!("{id} is sent to a host that was withdrawn before it began");
            return Err(Violation::new("enrol", text));
        }
        Ok(())
    }

    /// Whether a host takes part in what starts now.
    pub(super) fn takes_part(&self, host: &HostName) -> bool {
        self.approved.contains(host)
            || (self.auto_approve && !self.withdrawn.contains(host) && !self.removed.contains(host))
    }

    /// A host that was removed has nothing to do any more.
    fn check_removed(&self, host: &HostName) -> Result<(), Violation> {
        if self.at_work.contains(host) {
            return Err(Violation::new("enrol", format!("{host} is removed while it is in a run")));
        }
        Ok(())
    }
}
