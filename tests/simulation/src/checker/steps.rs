//! The steps of hosts, from the `upgrade` that opens one to the `done` that closes it, and the slots that they need.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::fact::{ControlFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::slot::ReleaseCause;
use os_upgrade_kernel::{ClientId, Fact, HostEvent, LockProvider, OnFailure, Owner, Reason, Settings, State};
use os_upgrade_protocol::{Action, CommandId, GroupName, HostName, Outcome, Reply, RunId};

use super::calls::Calls;
use super::semaphore::Semaphores;
use super::violation::Violation;
use crate::locks::LockServer;
use crate::plan::Plan;

/// In place of the sequence of a command, if the operator's command reboots the host: nobody answers it.
const BY_COMMAND: u64 = u64::MAX;

/// A host's step.
#[derive(Debug, Clone)]
struct Step {
    run: RunId,
    /// Its last command.
    action: Action,
    sequence: u64,
    /// Whether the host may be under upgrade.
    open: bool,
    /// Whether the worker has answered an error, and not that the host is unhealthy.
    failed: bool,
    /// Whether the host was given up because it did not answer.
    silent: bool,
    /// The run that has been granted the slot since, as an entry that was given up leaves it held.
    taken_over: Option<RunId>,
    /// The sequence of the `done` with which it ended.
    done: Option<u64>,
}

impl Step {
    /// A step that begins, or goes on, with this command.
    fn new(run: RunId, action: Action, sequence: u64) -> Self {
        Self { run, action, sequence, open: true, failed: false, silent: false, taken_over: None, done: None }
    }
}

#[derive(Debug)]
pub(super) struct Steps {
    provider: LockProvider,
    on_failure: OnFailure,
    default_group: GroupName,
    /// The group of each host that announces one.
    groups: BTreeMap<HostName, GroupName>,
    /// The most slots that each group may have had.
    slots: BTreeMap<GroupName, u32>,
    /// How many slots of failed hosts may not have counted in each group.
    failed: BTreeMap<GroupName, u32>,
    /// Hosts that hold a slot according to the journal.
    granted: BTreeSet<HostName>,
    by_host: BTreeMap<HostName, Step>,
    given_up: u64,
}

impl Steps {
    pub(super) fn new(plan: &Plan, names: &[HostName]) -> Self {
        let hosts = names.iter().zip(&plan.hosts);
        Self {
            provider: plan.settings.provider,
            on_failure: plan.settings.on_failure,
            default_group: plan.settings.default_group.clone(),
            groups: hosts.filter_map(|(name, host)| Some((name.clone(), host.group.clone()?))).collect(),
            slots: plan.settings.groups.clone(),
            failed: plan.settings.failed.clone(),
            granted: BTreeSet::new(),
            by_host: BTreeMap::new(),
            given_up: 0,
        }
    }

    /// The hosts that operators gave up after these had begun.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The hosts that may be under upgrade.
    pub(super) fn open(&self) -> impl Iterator<Item = &HostName> {
        self.by_host.iter().filter(|(_, step)| step.open).map(|(host, _)| host)
    }

    /// The settings of an instance have changed; they come into force if it leads.
    pub(super) fn settings_changed(&mut self, settings: &Settings) {
        // An external lock server has its own slots.
        if self.provider == LockProvider::Embedded {
            for (group, slots) in &settings.groups {
                let most = self.slots.entry(group.clone()).or_default();
                *most = (*most).max(*slots);
            }
        }
    }

    /// An `upgrade` or a `reboot` is stored in the stream.
    pub(super) fn commanded(
        &mut self,
        sequence: u64,
        id: &CommandId,
        locks: &LockServer,
        calls: &Calls,
    ) -> Result<(), Violation> {
        self.by_host.insert(id.host.clone(), Step::new(id.run.clone(), id.action, sequence));
        self.check_held(&id.host, locks, || format!("{id} is in the stream"))?;
        self.check_slots(self.group_of(&id.host), calls)
    }

    /// The operator's command is run for the entry `run` of the reboot queue.
    pub(super) fn command_runs(
        &mut self,
        host: &HostName,
        run: RunId,
        locks: &LockServer,
        calls: &Calls,
    ) -> Result<(), Violation> {
        self.by_host.insert(host.clone(), Step::new(run, Action::Reboot, BY_COMMAND));
        self.check_held(host, locks, || format!("the reboot command is run for {host}"))?;
        self.check_slots(self.group_of(host), calls)
    }

    fn check_held(
        &self,
        host: &HostName,
        locks: &LockServer,
        what: impl Fn() -> String,
    ) -> Result<(), Violation> {
        let held = match self.provider {
            LockProvider::Embedded => self.granted.contains(host),
            LockProvider::External => locks.holds(self.group_of(host), host.as_str()),
        };
        if held { Ok(()) } else { Err(Violation::new("S4", format!("{} without a slot", what()))) }
    }

    /// Of a host that the operator's command reboots, nobody answers: it is back, as the queue's rules check, or it has not
    /// rebooted for longer than it may take.
    fn command_is_over(&mut self, host: &HostName) {
        if let Some(step) = self.by_host.get_mut(host).filter(|step| step.sequence == BY_COMMAND) {
            step.open = false;
        }
    }

    fn group_of(&self, host: &HostName) -> &GroupName {
        self.groups.get(host).unwrap_or(&self.default_group)
    }

    /// S1: counts hosts under upgrade and FleetLock clients; a name that is both counts once. Of hosts whose worker answered an error as
    /// many as the settings say need no slot of their own beside those at work.
    pub(super) fn check_slots(&self, group: &GroupName, calls: &Calls) -> Result<(), Violation> {
        let hosts = self.open().filter(|host| self.group_of(host) == group).map(HostName::as_str);
        let holders: BTreeSet<&str> = hosts.chain(calls.holders(group).map(ClientId::as_str)).collect();
        let slots = self.slots.get(group).copied().unwrap_or(0) as usize;
        let failed = self
            .by_host
            .iter()
            .filter(|(host, step)| step.open && step.failed && self.group_of(host) == group);
        let uncounted = failed.count().min(self.failed.get(group).copied().unwrap_or(0) as usize);
        if holders.len() > slots + uncounted {
            let text = format!("{holders:?} have a slot of group {group}, which has {slots}");
            return Err(Violation::new("S1", text));
        }
        Ok(())
    }

    /// A reply is stored in the stream.
    pub(super) fn answered(
        &mut self,
        host: &HostName,
        reply: &Reply,
        in_reply_to: Option<u64>,
        sequence: u64,
    ) {
        let of_run = self.on_failure;
        let Some(step) = self.by_host.get_mut(host) else { return };
        // Of a host that has failed to reboot on request nobody knows whether it will.
        let on_failure = if Owner::from(&step.run).entry().is_some() { OnFailure::Hold } else { of_run };
        let answers = match in_reply_to {
            Some(command) => command == step.sequence,
            None => sequence > step.sequence,
        };
        if !answers || reply.action != step.action {
            return;
        }
        match (&reply.result, on_failure) {
            (Outcome::Done, _) => {
                step.open = false;
                step.done.get_or_insert(sequence);
            }
            // The slot stays: the host may be down, or still at work.
            (Outcome::Error(_), OnFailure::Hold) => {
                let is_of_run = Owner::from(&step.run).run().is_some();
                let is_unhealthy = step.action == Action::Reboot && reply.result.why_unhealthy().is_some();
                step.failed = is_of_run && !is_unhealthy;
            }
            (Outcome::Error(_), OnFailure::Release) => step.open = false,
            (Outcome::RebootRequired, _) if step.action == Action::Upgrade => {}
            (Outcome::RebootRequired, OnFailure::Hold) => {
                step.failed = Owner::from(&step.run).run().is_some();
            }
            (Outcome::RebootRequired, OnFailure::Release) => step.open = false,
        }
    }

    /// The step's command was deleted before it was delivered.
    pub(super) fn retracted(&mut self, host: &HostName, sequence: u64) {
        if let Some(step) = self.by_host.get_mut(host)
            && step.sequence == sequence
        {
            step.open = false;
        }
    }

    /// A fact of a record whose facts are about to be checked. With `on-failure = "release"` hosts that do not answer
    /// are released too, by the end of their run, or as soon as their command has been retracted or delivered.
    pub(super) fn release_silent(&mut self, fact: &Fact) {
        if self.on_failure != OnFailure::Release {
            return;
        }
        if let Fact::Run(RunFact::Ended { run, .. }) = fact {
            let is_of_run = |step: &&mut Step| step.run == *run || step.taken_over.as_ref() == Some(run);
            for step in self.by_host.values_mut().filter(is_of_run) {
                step.open = false;
            }
        } else if let Fact::Control(ControlFact::CommandRetracted { host, sequence, .. }) = fact
            && let Some(step) = self.by_host.get_mut(host)
            && step.silent
            && step.sequence == *sequence
        {
            step.open = false;
        }
    }

    /// A fact was added to the journal, which folds to `journal` with it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(
        &mut self,
        fact: &Fact,
        journal: &State,
        semaphores: &Semaphores,
    ) -> Result<(), Violation> {
        match fact {
            Fact::Run(RunFact::Host { run, host, event: HostEvent::SlotGranted { .. } }) => {
                self.granted.insert(host.clone());
                if let Some(step) = self.by_host.get_mut(host) {
                    step.taken_over = Some(run.clone());
                    step.failed = false;
                }
                Ok(())
            }
            Fact::Queue(QueueFact::Reboot { host, event: EntryEvent::Started { .. }, .. }) => {
                self.granted.insert(host.clone());
                Ok(())
            }
            Fact::Queue(QueueFact::Reboot {
                host,
                event:
                    EntryEvent::AttemptDue { .. }
                    | EntryEvent::Booted { .. }
                    | EntryEvent::Rebooted
                    | EntryEvent::NotRebooted,
                ..
            }) => {
                self.command_is_over(host);
                Ok(())
            }
            Fact::Run(RunFact::Host { run, host, event: HostEvent::Upgraded }) => {
                self.check_upgraded(run, host)
            }
            Fact::Run(RunFact::Host { run, host, event: HostEvent::TimedOut { reason } })
                if is_given_up(reason) =>
            {
                self.given_up += u64::from(matches!(reason, Reason::GivenUp { .. }));
                self.host_given_up(run, host, journal)
            }
            Fact::Slot(
                SlotFact::ReleaseDue { host, why: ReleaseCause::Operator }
                | SlotFact::Released { host, why: ReleaseCause::Operator },
            ) => {
                self.granted.remove(host);
                self.slot_released_by_operator(host, semaphores)
            }
            Fact::Slot(SlotFact::ReleaseDue { host, .. } | SlotFact::Released { host, .. }) => {
                if self.granted.remove(host) { self.check_freed(host) } else { Ok(()) }
            }
            // The other facts concern no step.
            _ => Ok(()),
        }
    }

    /// According to the journal `host` is upgraded.
    fn check_upgraded(&self, run: &RunId, host: &HostName) -> Result<(), Violation> {
        let done = self.by_host.get(host).is_some_and(|step| step.done.is_some() && step.run == *run);
        if !done {
            let text = format!("{host} is upgraded in {run} by the journal, but has not replied so");
            return Err(Violation::new("live", text));
        }
        Ok(())
    }

    /// A host was given up in the middle of its run, because it does not answer.
    fn host_given_up(&mut self, run: &RunId, host: &HostName, journal: &State) -> Result<(), Violation> {
        let fence = journal.fence.as_ref().map_or(0, |fence| fence.sequence);
        let Some(step) = self.by_host.get_mut(host) else { return Ok(()) };
        step.silent = true;
        if step.done.is_some_and(|done| done < fence) {
            let text =
                format!("{host} is given up in {run}, although its answer precedes its leader's fence");
            return Err(Violation::new("live", text));
        }
        Ok(())
    }

    /// An operator has released the slot of `host`, and so answers for the consequences. Not while the host is at
    /// work: its upgrade would go on beside the next holder's.
    fn slot_released_by_operator(
        &mut self,
        host: &HostName,
        semaphores: &Semaphores,
    ) -> Result<(), Violation> {
        if let Some(step) = self.by_host.get_mut(host) {
            step.open = false;
        }
        if semaphores.is_under_way(host) {
            let text = format!("the slot of {host} is released while it is at work");
            return Err(Violation::new("S6", text));
        }
        Ok(())
    }

    /// The slot of `host` may go to others from now on.
    pub(super) fn check_freed(&self, host: &HostName) -> Result<(), Violation> {
        if self.by_host.get(host).is_some_and(|step| step.open) {
            let text = format!("the slot of {host} is freed while it may be under upgrade");
            return Err(Violation::new("S6", text));
        }
        Ok(())
    }
}

/// Whether a host that is given up for this reason, before its run's end, is only known not to have answered.
fn is_given_up(reason: &Reason) -> bool {
    matches!(reason, Reason::UpgradeTimeout { .. } | Reason::BootTimeout { .. } | Reason::GivenUp { .. })
}
