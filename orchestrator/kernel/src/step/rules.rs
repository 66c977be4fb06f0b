//! Steps of runs and of entries alike: what others ask of them, and what happens to them.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName};

use super::stage::Stage;
use crate::config::LockProvider;
use crate::fact::{Fact, SlotFact};
use crate::owner::Owner;
use crate::reason::Reason;
use crate::reboot_queue::{Entry, EntryEvent, drained};
use crate::run::{HostEvent, Issued, Run};
use crate::state::State;
use crate::view::View;

/// A host's step in a run, or for an entry of the reboot queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    pub(crate) owner: Owner,
    pub(crate) host: &'a HostName,
    pub(crate) stage: Stage,
    /// Its current or last command, that of a run's `prepare` included.
    pub(crate) command: Option<Issued>,
    /// Whether its host is about to be told what to do.
    pub(crate) is_unsent: bool,
    /// Whether it has failed at its stage, and needs an operator.
    pub(crate) has_failed: bool,
    /// How many of its drains were given up.
    pub(crate) backoffs: u32,
    /// When its command must no longer be sent nor started; absent if that has no end.
    pub(crate) not_after: Option<DateTime<Utc>>,
    /// Until when it may begin, if it is expected to take a certain time.
    pub(crate) begins_until: Option<DateTime<Utc>>,
    /// The boot that its host is to leave, if its command says so.
    pub(crate) boot_id: Option<&'a str>,
}

/// What happens to a step, whosever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepEvent {
    /// Its command was seen in the control stream.
    Sent { action: Action, attempt: u32, sequence: u64 },
    /// It has no slot yet.
    Waiting { reason: Reason },
    /// Its host's slot is held, and its node is to be drained if `drain`.
    Granted { group: GroupName, provider: LockProvider, drain: bool },
    /// Its drain is given up until then.
    BackedOff { until: DateTime<Utc>, reason: Reason },
    /// Its host is back. Its node is uncordoned once that is ready.
    Returned {
        /// Whether the operator's command says so.
        checked: bool,
    },
    /// Its host is back, and so is its node.
    Done,
}

impl<'a> Step<'a> {
    fn in_run(run: &Run, host: &'a HostName) -> Option<Self> {
        let in_run = run.host(host)?;
        Some(Self {
            owner: Owner::Run(run.id.clone()),
            host,
            stage: in_run.status.stage(),
            command: in_run.command,
            is_unsent: in_run.is_unsent(),
            has_failed: false,
            backoffs: in_run.backoff.map_or(0, |backoff| backoff.count),
            not_after: Some(run.not_after),
            begins_until: run.rollout.expected_duration.map(|_| run.begins_until()),
            boot_id: None,
        })
    }

    /// The step for the entry at `index`.
    pub(crate) fn of_entry(index: u64, entry: &'a Entry) -> Self {
        Self {
            owner: entry.owner(index),
            host: &entry.host,
            stage: entry.stage(),
            command: entry.command,
            is_unsent: entry.is_unsent(),
            has_failed: entry.has_failed(),
            backoffs: entry.backoff_count,
            not_after: None,
            begins_until: None,
            boot_id: entry.boot_id.as_deref(),
        }
    }

    /// Its command, if that has not been seen in the control stream yet.
    pub(crate) fn unsent(&self) -> Option<Issued> {
        self.command.filter(|command| self.is_unsent && command.sequence.is_none())
    }

    /// A text that no other step has.
    pub(crate) fn text(&self) -> String {
        match &self.owner {
            Owner::Run(run) => format!("{run} {}", self.host),
            entry @ Owner::Entry { .. } => entry.to_string(),
        }
    }

    /// The fact that `event` happened to it.
    pub(crate) fn fact(&self, event: StepEvent) -> Fact {
        of_step(&self.owner, self.host, event)
    }
}

/// The fact that `event` happened to the step of `host` for `owner`.
pub(crate) fn of_step(owner: &Owner, host: &HostName, event: StepEvent) -> Fact {
    match owner {
        Owner::Run(run) => Fact::of_host(run, host, event.into()),
        Owner::Entry { index, .. } => Fact::of_entry(*index, host, event.into()),
    }
}

impl From<StepEvent> for HostEvent {
    fn from(event: StepEvent) -> Self {
        match event {
            StepEvent::Sent { action, attempt, sequence } => Self::CommandSent { action, attempt, sequence },
            StepEvent::Waiting { reason } => Self::Waiting { reason },
            StepEvent::Granted { group, provider, drain } => Self::SlotGranted { group, provider, drain },
            StepEvent::BackedOff { until, reason } => Self::BackedOff { until, reason },
            StepEvent::Returned { checked: _ } => Self::Recovering,
            StepEvent::Done => Self::Upgraded,
        }
    }
}

impl From<StepEvent> for EntryEvent {
    fn from(event: StepEvent) -> Self {
        match event {
            StepEvent::Sent { action: _, attempt, sequence } => Self::CommandSent { attempt, sequence },
            StepEvent::Waiting { reason } => Self::Waiting { reason },
            StepEvent::Granted { group, provider, drain } => Self::Started { group, provider, drain },
            StepEvent::BackedOff { until, reason } => Self::BackedOff { until, reason: Some(reason) },
            StepEvent::Returned { checked } => Self::Booted { checked },
            StepEvent::Done => Self::Rebooted,
        }
    }
}

impl State {
    /// The step of `host` for this owner; `None` if the run is not active, or there is no such entry.
    pub(crate) fn step<'a>(&'a self, owner: &Owner, host: &'a HostName) -> Option<Step<'a>> {
        match owner {
            Owner::Run(id) => {
                let run = self.run.as_ref().filter(|run| run.id == *id)?;
                Step::in_run(run, host)
            }
            Owner::Entry { .. } => {
                let (index, entry) = self.reboot_queue.of_owner(owner)?;
                (entry.host == *host).then(|| Step::of_entry(index, entry))
            }
        }
    }

    /// The step for which the slot of `host` is requested or held; if that is over, its step in the active run. A host that is under
    /// way in a run never has a slot that an entry owns, nor the reverse.
    pub(crate) fn step_of<'a>(&'a self, host: &'a HostName) -> Option<Step<'a>> {
        let of_slot = self.slots.get(host).and_then(|slot| self.step(&slot.owner, host));
        of_slot.or_else(|| Step::in_run(self.run.as_ref()?, host))
    }

    /// Whether a run or an entry of the reboot queue is under way on `host`.
    pub(crate) fn is_at_work(&self, host: &HostName) -> bool {
        self.step_of(host).is_some_and(|step| step.stage.is_under_way())
    }

    /// Why the last step of `host` did not go on; absent if it does.
    pub(crate) fn why_stopped(&self, host: &HostName) -> Option<Reason> {
        if let Some((_, entry)) = self.entry_under_way(host) {
            return entry.reason.clone();
        }
        let mut newest = self.known_runs().filter_map(|run| run.host(host)).peekable();
        let is_under_way = newest.peek().is_some_and(|in_run| in_run.status.is_under_way());
        newest.find_map(|in_run| in_run.reason.clone()).filter(|_| !is_under_way)
    }

    /// The step of `host`, if it is at this stage.
    pub(crate) fn step_at<'a>(&'a self, host: &'a HostName, stage: Stage) -> Option<Step<'a>> {
        self.step_of(host).filter(|step| step.stage == stage)
    }

    /// The step of `host` if the host is about to be told to upgrade or to reboot.
    pub(crate) fn told_next<'a>(&'a self, host: &'a HostName) -> Option<Step<'a>> {
        self.step_of(host).filter(|step| step.stage.is_under_way() && step.is_unsent)
    }

    /// The steps whose command has not been seen in the control stream.
    pub(crate) fn unsent_steps(&self) -> impl Iterator<Item = Step<'_>> {
        let of_run =
            self.run.iter().flat_map(|run| run.unsent().iter().filter_map(|host| Step::in_run(run, host)));
        of_run.chain(self.reboot_queue.under_way().map(|(index, entry)| Step::of_entry(index, entry)))
    }

    /// The command of `step`, if it may be sent now.
    pub(crate) fn sendable(&self, step: &Step<'_>) -> Option<Issued> {
        // A host has one unanswered command at a time: a worker that opens its consumer anew may begin with the last.
        let is_other_awaited = step.owner.run().is_some() && self.has_unanswered_reboot(step.host);
        let command = step.unsent().filter(|_| !is_other_awaited)?;
        self.cordon_allows(step.host, command.action).then_some(command)
    }

    /// The fact that begins the first command of `step`, whose node was drained in `boot_id`. Absent while it is not known which boot
    /// its host is to leave: the node is looked at again and again until then.
    pub(crate) fn drained(&self, view: &View, step: &Step<'_>, boot_id: Option<&str>) -> Option<Fact> {
        match &step.owner {
            Owner::Run(run) => Some(Fact::of_host(run, step.host, HostEvent::Drained)),
            Owner::Entry { index, .. } => {
                let entry = self.reboot_queue.entries.get(index)?;
                Some(Fact::of_entry(*index, step.host, drained(self, view, entry, boot_id)?))
            }
        }
    }

    /// The fact that `owner` has got a slot of `group` for `host`, whose node is drained first if it has one.
    pub(crate) fn slot_granted(
        &self,
        owner: &Owner,
        host: &HostName,
        group: &GroupName,
        provider: LockProvider,
    ) -> Fact {
        let (group, drain) = (group.clone(), self.settings.has_node(host));
        of_step(owner, host, StepEvent::Granted { group, provider, drain })
    }

    /// The facts that a slot of `group` is requested from the lock server, for `owner` and `host`.
    pub(crate) fn slot_requested(&self, owner: Owner, host: &HostName, group: &GroupName) -> Vec<Fact> {
        let waiting = StepEvent::Waiting { reason: Reason::AskingForSlot { group: group.clone() } };
        let waiting = of_step(&owner, host, waiting);
        let (host, group) = (host.clone(), group.clone());
        let is_new = !self.slots.contains_key(&host);
        let requested = is_new.then_some(Fact::Slot(SlotFact::Requested { host, group, owner }));
        requested.into_iter().chain([waiting]).collect()
    }
}
