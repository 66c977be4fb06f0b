//! The sequential semaphore: for each group a count, owners and waiters. Facts are its steps.
//!
//! Beside FleetLock clients, hosts of runs hold slots, and operators place holds. A slot is free when none of these
//! holds it. A waiter does not keep a free slot from other clients, but keeps it from hosts whose turn came later.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::fact::{ConfigFact, LockFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reason::Denial;
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::slot::{HostDenied, ReleaseCause};
use os_upgrade_kernel::{
    Fact, HostEvent, LockOperation, LockProvider, Operation, Reason, Reclaim, Request, Settings,
    SlotOperation,
};
use os_upgrade_protocol::{Action, GroupName, HostName};

use crate::checker::runs::expected;
use crate::checker::violation::Violation;

/// How long a client that does not ask again is remembered.
const REMEMBERED: TimeDelta = TimeDelta::minutes(7);
/// How long a client that has asked once may keep a slot from a host.
const EXPECTED: TimeDelta = TimeDelta::minutes(6);

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Yes,
    Full,
    UnknownGroup,
    NoHolder,
    /// The slot's host is at work, or may be sent a command.
    AtWork,
    ReclaimsNothing,
    InInventory,
    /// Hosts never leave the inventory in the simulator.
    NotLeft,
    /// Another operator has placed a hold.
    HeldAlready,
}

#[derive(Debug, Default)]
struct Group {
    /// Removed from the settings, and kept only for its holders.
    removed: bool,
    slots: u32,
    /// How many slots of failed hosts do not count against hosts of runs.
    failed: u32,
    holders: BTreeMap<String, Holder>,
    waiters: BTreeMap<String, Waiter>,
}

/// For whom a slot is held; a free slot has no `Holder`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Holder {
    client: bool,
    run: bool,
    /// Whether its host's worker answered an error in the run that it is held for.
    failed: bool,
    /// With the operator's name and reason.
    hold: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    last_asked: DateTime<Utc>,
    /// Its place in the order of arrival.
    turn: DateTime<Utc>,
    /// The time between its last two requests.
    interval: Option<TimeDelta>,
}

impl Waiter {
    /// A client that asked while the clock was far ahead is forgotten too.
    fn is_remembered(self, now: DateTime<Utc>) -> bool {
        now < self.last_asked + REMEMBERED && self.last_asked < now + REMEMBERED
    }

    /// Whether a slot is left to it at `now` by a host whose run ends at `not_after`.
    fn precedes(self, now: DateTime<Utc>, not_after: DateTime<Utc>) -> bool {
        let retries = self.interval.map_or(EXPECTED, |shown| shown * 5 / 4 + TimeDelta::seconds(30));
        let until = self.last_asked + retries.min(REMEMBERED);
        now <= until && until < not_after
    }
}

/// A step that the semaphore could not have made.
fn impossible(text: String) -> Violation {
    Violation::new("semaphore", text)
}

/// An entry of the reboot queue that is under way.
#[derive(Debug)]
struct Rebooting {
    index: u64,
    /// Whether its host was told to reboot.
    is_told: bool,
}

#[derive(Debug)]
pub(super) struct Specification {
    groups: BTreeMap<GroupName, Group>,
    reclaim: Reclaim,
    /// All hosts in the inventory.
    hosts: BTreeSet<HostName>,
    /// The group of the slot that each host holds in a run.
    slots: BTreeMap<HostName, GroupName>,
    /// Hosts that wait for a slot, each with the time since when it is their turn.
    arrivals: BTreeMap<HostName, DateTime<Utc>>,
    /// Hosts that are at work on their upgrade.
    under_way: BTreeSet<HostName>,
    /// Hosts that the reboot queue is at work on.
    rebooting: BTreeMap<HostName, Rebooting>,
    /// When each entry of the reboot queue was added, by its index.
    queued: Vec<DateTime<Utc>>,
    /// When the run ends at the latest.
    not_after: DateTime<Utc>,
    /// The host whose slot the previous fact released for an operator.
    just_released: Option<HostName>,
}

impl Specification {
    pub(super) fn new(hosts: impl IntoIterator<Item = HostName>) -> Self {
        Self {
            groups: BTreeMap::new(),
            reclaim: Reclaim::Never,
            hosts: hosts.into_iter().collect(),
            slots: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            under_way: BTreeSet::new(),
            rebooting: BTreeMap::new(),
            queued: Vec::new(),
            not_after: DateTime::UNIX_EPOCH,
            just_released: None,
        }
    }

    pub(super) fn is_under_way(&self, host: &HostName) -> bool {
        self.under_way.contains(host) || self.rebooting.contains_key(host)
    }

    /// What a call would be answered now if it changes nothing; none if it would change something.
    pub(super) fn verdict(&self, request: &Request) -> Option<Verdict> {
        let group = |group: &GroupName| self.groups.get(group).ok_or(Verdict::UnknownGroup);
        let verdict = match &request.operation {
            Operation::Lock(LockOperation::Lock { group: of, id }) => group(of).map(|group| {
                let held = group.holders.get(id.as_str()).is_some_and(|holder| holder.client);
                let waits = group.waiters.contains_key(id.as_str());
                match (held, group.admits(id.as_str())) {
                    (true, _) => Some(Verdict::Yes),
                    (false, false) if waits => Some(Verdict::Full),
                    (false, true | false) => None,
                }
            }),
            Operation::Lock(LockOperation::Unlock { group: of, id }) => group(of).map(|group| {
                let held = group.holders.get(id.as_str()).is_some_and(|holder| holder.client);
                let waits = group.waiters.contains_key(id.as_str());
                (!held && !waits).then_some(Verdict::Yes)
            }),
            Operation::Slot(operation) => self.operator_verdict(&request.actor, operation),
            Operation::Run(_)
            | Operation::Pause(_)
            | Operation::Config(_)
            | Operation::Enrolment(_)
            | Operation::Reboot(_)
            | Operation::Node(_)
            | Operation::Desired(_)
            | Operation::Secret(_)
            | Operation::Unit(_) => Ok(None),
        };
        verdict.unwrap_or_else(Some)
    }

    fn operator_verdict(&self, actor: &str, operation: &SlotOperation) -> Result<Option<Verdict>, Verdict> {
        let group = |group: &GroupName| self.groups.get(group).ok_or(Verdict::UnknownGroup);
        match operation {
            SlotOperation::Hold { group: of, id, reason } => group(of).map(|group| {
                let hold = group.holders.get(id.as_str()).and_then(|holder| holder.hold.as_ref());
                match hold {
                    Some((by, why)) if by == actor && why == reason => Some(Verdict::Yes),
                    Some((by, _)) => (by != actor).then_some(Verdict::HeldAlready),
                    None => (!group.admits(id.as_str())).then_some(Verdict::Full),
                }
            }),
            SlotOperation::Release { group: of, id, .. } => {
                group(of).map(|group| group.release_verdict(id.as_str()))
            }
            SlotOperation::Reclaim { .. } if self.reclaim == Reclaim::Never => Err(Verdict::ReclaimsNothing),
            SlotOperation::Reclaim { id, .. } if self.is_in_inventory(id.as_str()) => {
                Err(Verdict::InInventory)
            }
            SlotOperation::Reclaim { .. } => Err(Verdict::NotLeft),
        }
    }

    fn is_in_inventory(&self, id: &str) -> bool {
        self.hosts.iter().any(|host| host.as_str() == id)
    }

    /// Applies a fact, if the semaphore can make that step.
    pub(super) fn fact(
        &mut self,
        at: DateTime<Utc>,
        fact: &Fact,
        silent: &BTreeSet<HostName>,
    ) -> Result<(), Violation> {
        let just_released = self.just_released.take();
        self.step(at, fact, just_released, silent)?;
        self.groups.retain(|_, group| !group.removed || !group.holders.is_empty());
        Ok(())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    fn step(
        &mut self,
        at: DateTime<Utc>,
        fact: &Fact,
        just_released: Option<HostName>,
        silent: &BTreeSet<HostName>,
    ) -> Result<(), Violation> {
        match fact {
            Fact::Config(ConfigFact::SettingsAdopted { settings }) => self.configure(settings),
            Fact::Lock(LockFact::Granted { group, id, .. }) => {
                let held = self.group(group)?.holders.contains_key(id.as_str());
                self.acquire(group, id.as_str())?.client = true;
                self.group(group)?.granted(id.as_str(), held, at);
            }
            Fact::Lock(LockFact::Awaited { group, id, .. }) => {
                let group = self.group(group)?;
                if group.admits(id.as_str()) {
                    return Err(impossible(format!("{id} is refused although a slot is free: {group:?}")));
                }
                group.refused(id.as_str(), at);
            }
            Fact::Lock(LockFact::WaitEnded { group, id, .. }) => {
                let group = self.group(group)?;
                if group.holders.get(id.as_str()).is_some_and(|holder| holder.client) {
                    return Err(impossible(format!("{id} only waited, and holds a slot: {group:?}")));
                }
                if group.waiters.remove(id.as_str()).is_none() {
                    return Err(impossible(format!("{id} did not wait: {group:?}")));
                }
            }
            Fact::Lock(LockFact::Released { group, id, .. }) => {
                let group = self.group(group)?;
                group.give_back(id.as_str(), |holder| holder.client = false);
                group.waiters.remove(id.as_str());
            }
            Fact::Lock(LockFact::HoldPlaced { group, id, actor, reason }) => {
                self.acquire(group, id.as_str())?.hold = Some((actor.clone(), reason.clone()));
                self.group(group)?.waiters.remove(id.as_str());
            }
            Fact::Lock(LockFact::HolderReleased { group, id, .. }) => {
                let by_operator = just_released.is_some_and(|host| host.as_str() == id.as_str());
                let group = self.group(group)?;
                let waits = group.waiters.remove(id.as_str()).is_some();
                if !by_operator && !waits && !group.holders.contains_key(id.as_str()) {
                    return Err(impossible(format!("{id} is released, but holds no slot")));
                }
                group.give_back(id.as_str(), |holder| {
                    holder.client = false;
                    holder.hold = None;
                });
            }
            Fact::Run(RunFact::Started { not_after, rollout, .. }) => {
                // Hosts begin as long as they can be through by then.
                self.not_after = *not_after - expected(rollout);
                self.forget_run();
            }
            Fact::Run(RunFact::Ended { .. }) => self.forget_run(),
            Fact::Run(RunFact::Host { host, event, .. }) => self.host(at, host, event, silent)?,
            Fact::Queue(QueueFact::RebootsQueued { hosts, .. }) => {
                self.queued.extend(hosts.iter().map(|_| at));
            }
            Fact::Queue(QueueFact::Reboot { index, host, event }) => self.entry(at, *index, host, event)?,
            Fact::Slot(SlotFact::Released { host, why }) => {
                if let Some(group) = self.slots.remove(host) {
                    self.group(&group)?
                        .give_back(host.as_str(), |holder| (holder.run, holder.failed) = (false, false));
                }
                self.just_released = (*why == ReleaseCause::Operator).then(|| host.clone());
            }
            // The other facts concern no slot of an embedded semaphore.
            _ => {}
        }
        Ok(())
    }

    fn forget_run(&mut self) {
        self.arrivals.clear();
        self.under_way.clear();
    }

    fn host(
        &mut self,
        at: DateTime<Utc>,
        host: &HostName,
        event: &HostEvent,
        silent: &BTreeSet<HostName>,
    ) -> Result<(), Violation> {
        match event {
            HostEvent::Waiting { reason } => {
                let arrived = *self.arrivals.entry(host.clone()).or_insert(at);
                if let Reason::SlotDenied { group, denial } = reason
                    && let Denial::Embedded(HostDenied::LeftToEarlier { id, .. }) = denial
                {
                    let not_after = self.not_after;
                    self.group(group)?.check_left(host, id.as_str(), arrived, at, not_after)?;
                }
            }
            HostEvent::SlotGranted { group, provider, .. } => {
                self.under_way.insert(host.clone());
                let arrived = self.arrivals.remove(host).unwrap_or(at);
                if *provider == LockProvider::Embedded {
                    self.hold(at, host, group, arrived, self.not_after, silent)?;
                }
            }
            HostEvent::TurnLost
            | HostEvent::BackedOff { .. }
            | HostEvent::Upgraded
            | HostEvent::TimedOut { .. }
            | HostEvent::Skipped { .. }
            | HostEvent::Cancelled { .. }
            | HostEvent::NotReached { .. } => {
                self.arrivals.remove(host);
                self.under_way.remove(host);
            }
            HostEvent::Failed { reason } => {
                self.arrivals.remove(host);
                self.under_way.remove(host);
                if let Reason::WorkerError { action: Action::Upgrade | Action::Reboot, .. } = reason
                    && let Some(group) = self.slots.get(host).cloned()
                    && let Some(holder) = self.group(&group)?.holders.get_mut(host.as_str())
                {
                    holder.failed = true;
                }
            }
            HostEvent::CommandSent { .. }
            | HostEvent::Prepared
            | HostEvent::Drained
            | HostEvent::PrepareBegan
            | HostEvent::PrepareFailed { .. }
            | HostEvent::Overdue { .. }
            | HostEvent::Recovering
            | HostEvent::RebootRequired => {}
        }
        Ok(())
    }

    /// A host, waiting since `arrived`, is granted a slot for something that ends at `not_after`.
    fn hold(
        &mut self,
        at: DateTime<Utc>,
        host: &HostName,
        group: &GroupName,
        arrived: DateTime<Utc>,
        not_after: DateTime<Utc>,
        silent: &BTreeSet<HostName>,
    ) -> Result<(), Violation> {
        let held = self.group(group)?.holders.contains_key(host.as_str());
        let is_of_run = not_after < DateTime::<Utc>::MAX_UTC;
        let uncounted = if is_of_run { self.group(group)?.uncounted(host, silent) } else { 0 };
        let of = self.group(group)?;
        if !held && of.holders.len() >= of.slots as usize + uncounted {
            let text = format!("{host} is granted a slot of group {group}, which has none free: {of:?}");
            return Err(impossible(text));
        }
        let holder = of.holders.entry(host.to_string()).or_default();
        (holder.run, holder.failed) = (true, false);
        self.slots.insert(host.clone(), group.clone());
        self.group(group)?.waiters.remove(host.as_str());
        if !held {
            self.group(group)?.check_fair(host, arrived, at, not_after, uncounted)?;
        }
        Ok(())
    }

    /// An entry of the reboot queue is older than what came after it, and has no end to be too late for.
    fn entry(
        &mut self,
        at: DateTime<Utc>,
        index: u64,
        host: &HostName,
        event: &EntryEvent,
    ) -> Result<(), Violation> {
        match event {
            EntryEvent::Started { group, provider, .. } => {
                self.rebooting.insert(host.clone(), Rebooting { index, is_told: false });
                if *provider == LockProvider::Embedded {
                    let added = usize::try_from(index).ok().and_then(|index| self.queued.get(index)).copied();
                    self.hold(
                        at,
                        host,
                        group,
                        added.unwrap_or(at),
                        DateTime::<Utc>::MAX_UTC,
                        &BTreeSet::new(),
                    )?;
                }
            }
            EntryEvent::Removed
            | EntryEvent::NotRebooted
            | EntryEvent::Rebooted
            | EntryEvent::BackedOff { .. }
            | EntryEvent::GivenUp { .. } => {
                self.rebooting.retain(|_, it| it.index != index);
            }
            // Its host was not told anything: only its node is uncordoned yet.
            EntryEvent::Cancelled { .. } => {
                self.rebooting.retain(|_, it| it.index != index || it.is_told);
            }
            EntryEvent::RebootBegan { .. } | EntryEvent::AttemptBegan | EntryEvent::AttemptDue { .. } => {
                if let Some(it) = self.rebooting.get_mut(host).filter(|it| it.index == index) {
                    it.is_told = !matches!(event, EntryEvent::AttemptDue { .. });
                }
            }
            EntryEvent::Waiting { .. }
            | EntryEvent::CommandSent { .. }
            | EntryEvent::Booted { .. }
            | EntryEvent::AttemptSucceeded
            | EntryEvent::AttemptUnknown { .. }
            | EntryEvent::Failed { .. } => {}
        }
        Ok(())
    }

    fn configure(&mut self, settings: &Settings) {
        self.reclaim = settings.reclaim;
        for (name, slots) in &settings.groups {
            let group = self.groups.entry(name.clone()).or_default();
            group.slots = *slots;
            group.failed = settings.failed.get(name).copied().unwrap_or(0);
            group.removed = false;
        }
        // Holders keep their slots, whatever happens to their group.
        self.groups.retain(|name, group| settings.groups.contains_key(name) || !group.holders.is_empty());
        for (_, group) in self.groups.iter_mut().filter(|(name, _)| !settings.groups.contains_key(*name)) {
            group.slots = 0;
            group.removed = true;
            group.waiters.clear();
        }
    }

    fn group(&mut self, group: &GroupName) -> Result<&mut Group, Violation> {
        self.groups.get_mut(group).ok_or_else(|| impossible(format!("there is no group {group}")))
    }

    /// The holder `id`, which must hold a slot already or find one free.
    fn acquire(&mut self, group: &GroupName, id: &str) -> Result<&mut Holder, Violation> {
        let of = self.group(group)?;
        if !of.admits(id) {
            let text = format!("{id} is granted a slot of group {group}, which has none free: {of:?}");
            return Err(impossible(text));
        }
        Ok(of.holders.entry(id.to_owned()).or_default())
    }
}

impl Group {
    fn free(&self) -> usize {
        (self.slots as usize).saturating_sub(self.holders.len())
    }

    /// How many slots of other hosts do not count against `host` of a run, at most: those of hosts whose worker answered an error, and
    /// that are not known to be silent.
    fn uncounted(&self, host: &HostName, silent: &BTreeSet<HostName>) -> usize {
        let is_failed = |(id, holder): &(&String, &Holder)| {
            let is_alone = holder.failed && !holder.client && holder.hold.is_none();
            is_alone && *id != host.as_str() && !silent.iter().any(|silent| silent.as_str() == *id)
        };
        self.holders.iter().filter(is_failed).count().min(self.failed as usize)
    }

    /// Whether `id` holds a slot or finds one free. Waiters keep no client from a free slot.
    fn admits(&self, id: &str) -> bool {
        self.holders.contains_key(id) || self.free() > 0
    }

    /// The refusal to release the slot of `id`, if it is certain.
    fn release_verdict(&self, id: &str) -> Option<Verdict> {
        let Some(holder) = self.holders.get(id) else {
            return (!self.waiters.contains_key(id)).then_some(Verdict::NoHolder);
        };
        // Only the orchestrator knows whether a command may still appear.
        holder.run.then_some(Verdict::AtWork)
    }

    fn give_back(&mut self, id: &str, change: impl FnOnce(&mut Holder)) {
        if let Some(holder) = self.holders.get_mut(id) {
            change(holder);
            if *holder == Holder::default() {
                self.holders.remove(id);
            }
        }
    }

    fn refused(&mut self, id: &str, at: DateTime<Utc>) {
        self.forget(at);
        let new = Waiter { last_asked: at, turn: at, interval: None };
        let waiter = self.waiters.entry(id.to_owned()).or_insert(new);
        // A clock may have been set back.
        let shown = TimeDelta::seconds((at - waiter.last_asked).num_seconds());
        let interval = if shown > TimeDelta::zero() { Some(shown) } else { waiter.interval };
        *waiter = Waiter { last_asked: at, turn: waiter.turn.min(at), interval };
    }

    /// Whichever client is granted a slot, the earliest arrival among the clients is used up; a client that already
    /// holds a slot uses up none.
    fn granted(&mut self, id: &str, held: bool, at: DateTime<Utc>) {
        if held {
            self.waiters.remove(id);
            return;
        }
        self.forget(at);
        let turn = self.waiters.remove(id).map_or(at, |waiter| waiter.turn);
        let first = self.waiters.iter_mut().min_by_key(|(id, waiter)| (waiter.turn, (*id).clone()));
        if let Some((_, first)) = first.filter(|(_, first)| first.turn < turn) {
            first.turn = turn;
        }
    }

    fn forget(&mut self, at: DateTime<Utc>) {
        self.waiters.retain(|_, waiter| waiter.is_remembered(at));
    }

    /// A host leaves a free slot to the client `id` only if that was refused before the host's turn came, and can be
    /// expected to ask again before the run ends.
    fn check_left(
        &self,
        host: &HostName,
        id: &str,
        arrived: DateTime<Utc>,
        at: DateTime<Utc>,
        not_after: DateTime<Utc>,
    ) -> Result<(), Violation> {
        let waiter = self.waiters.get(id).filter(|waiter| waiter.turn <= arrived.min(at));
        if waiter.is_some_and(|waiter| waiter.is_remembered(at) && waiter.precedes(at, not_after)) {
            return Ok(());
        }
        let text = format!(
            "{host}, waiting since {arrived}, leaves a slot to {id}, which is not expected: {self:?}"
        );
        Err(Violation::new("fair", text))
    }

    /// After a host was granted a slot, one must be left free for each client that was refused before the host's turn
    /// came, and that can be expected to ask again before the run ends.
    fn check_fair(
        &self,
        host: &HostName,
        arrived: DateTime<Utc>,
        at: DateTime<Utc>,
        not_after: DateTime<Utc>,
        uncounted: usize,
    ) -> Result<(), Violation> {
        let before = |(id, waiter): &(&String, &Waiter)| {
            let is_first = waiter.turn <= arrived.min(at) && id.as_str() != host.as_str();
            is_first && waiter.is_remembered(at) && waiter.precedes(at, not_after)
        };
        let waiters: Vec<_> = self.waiters.iter().filter(before).collect();
        let free = (self.slots as usize + uncounted).saturating_sub(self.holders.len());
        if waiters.len() > free {
            let text = format!("{host}, waiting since {arrived}, leaves {free} free for {waiters:?}");
            return Err(Violation::new("fair", text));
        }
        Ok(())
    }
}
