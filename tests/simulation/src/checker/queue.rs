//! The reboot queue. Rules:
//!
//! - `queue`: no more entries are under way than may be; each holds its host's slot while it is; none starts on a host that
//!   takes no part, or that a run is not through with, and no run's step beside one; nothing starts while the queue is
//!   disabled, nor outside of windows if it is bound to them; one that was cancelled before its host was told to reboot
//!   does not reboot it, and any other ends as the journal allows; its command names the boot that was journaled.
//! - `doubled`: no host reboots twice for an entry. If the machine of bus and orchestrators is put back to an earlier moment,
//!   it may do so once more: what that machine has forgotten nobody knows.
//! - `lost`: an entry counts as rebooted only after a worker has answered `done` to its command from another boot than the
//!   one to leave. One whose host the operator's command reboots counts once its host is in another boot, or the boot check says
//!   so.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Zones};
use os_upgrade_kernel::fact::{ConfigFact, EnrolmentFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::{EntryEvent, EntryStatus};
use os_upgrade_kernel::{
    CommandJob, Config, Fact, HostEvent, Order, Owner, RebootOperation, RebootRefusal, RebootSettings,
};
use os_upgrade_protocol::{CommandId, HostName, Outcome, Reply, RunId};

use super::attempts::Attempts;
use super::enrolment::Enrolled;
use super::runs::expected;
use super::violation::Violation;
use super::workers::Workers;
use crate::host::boot_id;
use crate::plan::Plan;
use crate::time::Micros;

/// An entry, according to the journal.
#[derive(Debug)]
struct Entry {
    host: HostName,
    run: RunId,
    /// Who added it.
    actor: String,
    /// Its statuses, each with the time since when it was in it; `None` once it has ended.
    statuses: Vec<(Micros, Option<EntryStatus>)>,
    /// Whether an operator cancelled it.
    cancelled: bool,
    /// Who gave it up.
    given_up_by: Option<String>,
    /// The boot to leave.
    leave: Option<String>,
    /// Whether a worker has answered `done` to its command from another boot.
    has_left: bool,
    /// Whether its host counts as back, so that it ends as rebooted even if it is cancelled.
    is_back: bool,
    /// How far the operator's command that reboots its host is; `None` if its worker does.
    attempt: Option<Attempt>,
    /// When the command was run for it, each time until its outcome was known.
    runs: Vec<(Micros, Option<Micros>)>,
}

/// How far the operator's command is, according to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Due,
    Running,
    Succeeded,
    Unknown,
    Failed,
}

impl Entry {
    fn status(&self) -> Option<EntryStatus> {
        self.statuses.last().and_then(|(_, status)| *status)
    }

    fn is_under_way(&self) -> bool {
        self.status().is_some_and(EntryStatus::is_under_way)
    }

    /// Whether it was in `status` at some time since `since`.
    fn was(&self, status: Option<EntryStatus>, since: Micros) -> bool {
        self.statuses.iter().enumerate().any(|(number, (_, was))| {
            let until = self.statuses.get(number + 1).map_or(Micros::MAX, |(from, _)| *from);
            *was == status && until >= since
        })
    }

    fn added(&self) -> Micros {
        self.statuses.first().map_or(0, |(at, _)| *at)
    }

    /// Whether the command was run for it at some time since `since`.
    fn ran(&self, since: Micros) -> bool {
        self.runs.iter().any(|(_, until)| until.is_none_or(|until| until >= since))
    }

    /// Follows what happens to the operator's command. Returns whether that may happen.
    fn attempted(&mut self, now: Micros, event: &EntryEvent) -> bool {
        use Attempt as A;
        let next = match (self.attempt, event) {
            (Some(A::Unknown), EntryEvent::AttemptDue { boot_id, .. }) if *boot_id == self.leave => A::Due,
            (Some(A::Due), EntryEvent::AttemptBegan) => A::Running,
            (Some(A::Running), EntryEvent::AttemptSucceeded) => A::Succeeded,
            (Some(A::Running), EntryEvent::AttemptUnknown { .. }) => A::Unknown,
            (Some(A::Running), EntryEvent::Failed { .. }) => A::Failed,
            _ => return false,
        };
        if next == A::Running {
            self.runs.push((now, None));
        } else if let Some((_, until @ None)) = self.runs.last_mut() {
            *until = Some(now);
        }
        self.attempt = Some(next);
        true
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    /// By index.
    entries: Vec<Entry>,
    /// When it was enabled or disabled.
    switched: Vec<(Micros, bool)>,
    settings: RebootSettings,
    config: Option<Config>,
    /// The hosts of the active run whose part in it has not ended.
    unfinished: BTreeSet<HostName>,
    hosts: BTreeSet<HostName>,
    /// The hosts whose workers take a `reboot` that names a boot.
    on_request: BTreeSet<HostName>,
    /// The hosts whose workers may answer what is not true.
    liars: BTreeSet<HostName>,
    /// How often a host has rebooted for each entry.
    boots: BTreeMap<RunId, u32>,
    /// The entries whose hosts were told to reboot, and had not, when the machine was put back.
    told_before: BTreeSet<RunId>,
    rebooted: u64,
}

/// What else is known when a fact is checked.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) enrolled: &'a Enrolled,
    pub(super) attempts: &'a Attempts,
    pub(super) workers: &'a Workers,
}

fn wrong(text: String) -> Violation {
    Violation::new("queue", text)
}

impl Queue {
    pub(super) fn new(plan: &Plan, names: &[HostName]) -> Self {
        let hosts = || names.iter().zip(&plan.hosts);
        let lie = plan.rate(crate::fault::Fault::WorkerLies) > 0;
        Self {
            entries: Vec::new(),
            switched: vec![(0, true)],
            settings: RebootSettings::default(),
            config: None,
            unfinished: BTreeSet::new(),
            hosts: names.iter().cloned().collect(),
            on_request: hosts()
                .filter(|(_, host)| host.reboots_on_request)
                .map(|(name, _)| name.clone())
                .collect(),
            liars: hosts().filter(|(_, host)| lie && !host.sdk).map(|(name, _)| name.clone()).collect(),
            boots: BTreeMap::new(),
            told_before: BTreeSet::new(),
            rebooted: 0,
        }
    }

    /// The entries that ended because their hosts have rebooted.
    pub(super) fn rebooted(&self) -> u64 {
        self.rebooted
    }

    /// The entry that is under way on `host`.
    fn under_way(&self, host: &HostName) -> Option<usize> {
        self.entries.iter().position(|entry| entry.host == *host && entry.is_under_way())
    }

    /// A fact of the time `at` was added to the journal.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(
        &mut self,
        now: Micros,
        at: DateTime<Utc>,
        fact: &Fact,
        context: &Context<'_>,
    ) -> Result<(), Violation> {
        match fact {
            Fact::Config(ConfigFact::SettingsAdopted { settings }) => self.settings = settings.reboot.clone(),
            Fact::Config(ConfigFact::Replaced { config, .. }) => self.config.clone_from(config),
            Fact::Run(RunFact::Started { hosts, .. }) => {
                let taking_part = hosts.iter().filter(|entry| entry.skipped.is_none());
                self.unfinished = taking_part.map(|entry| entry.host.clone()).collect();
            }
            Fact::Run(RunFact::Ended { .. }) => self.unfinished.clear(),
            Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { .. }, run }) => {
                if let Some(index) = self.under_way(host) {
                    return Err(wrong(format!("{run} begins on {host}, where entry {index} is under way")));
                }
            }
            Fact::Run(RunFact::Host {
                host,
                event:
                    HostEvent::Upgraded
                    | HostEvent::Failed { .. }
                    | HostEvent::TimedOut { .. }
                    | HostEvent::Skipped { .. }
                    | HostEvent::Cancelled { .. }
                    | HostEvent::NotReached { .. },
                ..
            }) => {
                self.unfinished.remove(host);
            }
            Fact::Slot(SlotFact::ReleaseDue { host, why } | SlotFact::Released { host, why }) => {
                if let Some(index) = self.under_way(host) {
                    let text =
                        format!("the slot of {host} is freed ({why:?}) while entry {index} is under way");
                    return Err(wrong(text));
                }
            }
            Fact::Enrolment(EnrolmentFact::HostRemoved { host, .. }) => {
                if let Some(index) = self.under_way(host) {
                    return Err(wrong(format!("{host} is removed while entry {index} is under way")));
                }
            }
            Fact::Queue(QueueFact::RebootsQueued { hosts, actor, .. }) => {
                return self.queued(now, at, hosts, actor);
            }
            Fact::Queue(QueueFact::Switched { enabled, .. }) => self.switched.push((now, *enabled)),
            Fact::Queue(QueueFact::Reboot { index, host, event }) => {
                return self.entry_fact(now, at, *index, host, event, context);
            }
            // The other facts concern no reboot.
            _ => {}
        }
        Ok(())
    }

    fn queued(
        &mut self,
        now: Micros,
        at: DateTime<Utc>,
        hosts: &[HostName],
        actor: &str,
    ) -> Result<(), Violation> {
        for host in hosts {
            let waits = |entry: &Entry| entry.host == *host && entry.status() == Some(EntryStatus::Queued);
            if self.entries.iter().any(waits) {
                return Err(wrong(format!("{host} is queued twice")));
            }
            let run = format!("rq-{}-{}", self.entries.len(), at.timestamp());
            self.entries.push(Entry {
                host: host.clone(),
                run: RunId::new(&run).expect("a valid id"),
                actor: actor.to_owned(),
                statuses: vec![(now, Some(EntryStatus::Queued))],
                cancelled: false,
                given_up_by: None,
                leave: None,
                has_left: false,
                is_back: false,
                attempt: None,
                runs: Vec::new(),
            });
        }
        Ok(())
    }

    fn entry_fact(
        &mut self,
        now: Micros,
        at: DateTime<Utc>,
        index: u64,
        host: &HostName,
        event: &EntryEvent,
        context: &Context<'_>,
    ) -> Result<(), Violation> {
        use EntryStatus as S;
        if let EntryEvent::Started { .. } = event {
            self.check_start(at, index, host, context.enrolled)?;
        }
        let may_lie = self.liars.contains(host);
        let Some(entry) = self.entries.get_mut(index_of(index)).filter(|entry| entry.host == *host) else {
            return Err(wrong(format!("{host} has no entry {index}: {event:?}")));
        };
        let status = entry.status();
        let trusted = !may_lie || entry.attempt.is_some();
        if entry.attempt.is_some() {
            let is_other = |leave: &String| *leave != boot_id(context.workers.boot_of(host));
            entry.has_left |=
                entry.leave.as_ref().is_some_and(is_other) || context.attempts.is_checked(index, host);
        }
        let next = match (status, event) {
            (Some(S::Draining), EntryEvent::AttemptDue { boot_id, .. }) => {
                (entry.leave, entry.attempt) = (boot_id.clone(), Some(Attempt::Due));
                Some(S::Rebooting)
            }
            (
                Some(S::Rebooting),
                EntryEvent::AttemptDue { .. }
                | EntryEvent::AttemptBegan
                | EntryEvent::AttemptSucceeded
                | EntryEvent::AttemptUnknown { .. },
            ) if entry.attempted(now, event) => status,
            (Some(S::Rebooting), EntryEvent::Failed { .. })
                if entry.attempt.is_some() && entry.attempted(now, event) =>
            {
                status
            }
            // Its host was not told anything.
            (Some(S::Rebooting), EntryEvent::Cancelled { .. })
                if entry.attempt == Some(Attempt::Due) && !entry.is_back =>
            {
                entry.cancelled = true;
                Some(S::Cancelled)
            }
            (Some(S::Queued), EntryEvent::Waiting { .. }) => status,
            (Some(S::Rebooting), EntryEvent::CommandSent { .. } | EntryEvent::Failed { .. })
                if entry.attempt.is_none() =>
            {
                status
            }
            (Some(S::Queued), EntryEvent::Started { .. }) => Some(S::Draining),
            (Some(S::Draining), EntryEvent::RebootBegan { boot_id }) => {
                entry.leave = Some(boot_id.clone());
                Some(S::Rebooting)
            }
            (Some(S::Queued | S::Draining), EntryEvent::Cancelled { .. }) => {
                entry.cancelled = true;
                Some(S::Cancelled)
            }
            (Some(S::Rebooting), EntryEvent::Cancelled { .. }) => {
                entry.cancelled = true;
                status
            }
            // What was told to its host has had no effect.
            (Some(S::Rebooting), EntryEvent::NotRebooted)
                if entry.cancelled && entry.attempt.is_some_and(|attempt| attempt != Attempt::Running) =>
            {
                Some(S::Cancelled)
            }
            (Some(S::Cancelled), EntryEvent::Removed) => None,
            (Some(S::Draining), EntryEvent::BackedOff { .. }) => Some(S::Queued),
            (Some(S::Rebooting), EntryEvent::Booted { .. }) if entry.has_left || !trusted => {
                entry.is_back = true;
                status
            }
            (Some(S::Rebooting), EntryEvent::Rebooted) => {
                if trusted && !entry.has_left {
                    let text = format!(
                        "entry {index} of {host} counts as rebooted, and nobody has said so: {entry:?}"
                    );
                    return Err(Violation::new("lost", text));
                }
                self.rebooted += 1;
                None
            }
            (Some(S::Draining | S::Rebooting), EntryEvent::GivenUp { actor, .. }) => {
                entry.given_up_by = Some(actor.clone());
                None
            }
            (status, event) => {
                return Err(wrong(format!("entry {index} of {host} is {status:?}, and {event:?}")));
            }
        };
        if next != status {
            entry.statuses.push((now, next));
        }
        Ok(())
    }

    fn check_start(
        &self,
        at: DateTime<Utc>,
        index: u64,
        host: &HostName,
        enrolled: &Enrolled,
    ) -> Result<(), Violation> {
        let earlier = self.entries.iter().take(index_of(index));
        let under_way = self.entries.iter().filter(|entry| entry.is_under_way()).count();
        let why = if !self.is_enabled() {
            "the queue is disabled".to_owned()
        } else if under_way >= self.settings.max_concurrent as usize {
            format!("{under_way} are under way, as many as may be")
        } else if self.unfinished.contains(host) {
            "a run is not through with it".to_owned()
        } else if !enrolled.takes_part(host) {
            "it takes no part".to_owned()
        } else if self.settings.command.is_none() && !self.on_request.contains(host) {
            "its worker does not reboot it on request".to_owned()
        } else if earlier.filter(|entry| entry.host == *host).any(|entry| entry.status().is_some()) {
            "an earlier entry of it is there".to_owned()
        } else if self.settings.in_windows && !self.is_in_window(at) {
            format!("no window is open for long enough at {at}")
        } else {
            return Ok(());
        };
        Err(wrong(format!("entry {index} of {host} starts, and {why}")))
    }

    fn is_enabled(&self) -> bool {
        self.switched.last().is_none_or(|(_, enabled)| *enabled)
    }

    fn is_in_window(&self, at: DateTime<Utc>) -> bool {
        self.config.as_ref().is_some_and(|config| {
            let calendar =
                Calendar::new(&config.maintenance_windows, &config.deny_windows, Tz::UTC, Zones::built_in());
            matches!(calendar.containing(at), Ok(Some(open)) if at + expected(&config.rollout) <= open.end)
        })
    }

    /// The entry whose command has this id.
    fn entry_of(&self, id: &CommandId) -> Option<&Entry> {
        let entry = self.entries.get(index_of(Owner::from(&id.run).entry()?))?;
        (entry.run == id.run && entry.host == id.host).then_some(entry)
    }

    /// A command is stored in the stream.
    pub(super) fn commanded(&self, order: &Order) -> Result<(), Violation> {
        let Order { id, not_after: _, boot_id } = order;
        if Owner::from(&id.run).entry().is_none() {
            return match boot_id {
                Some(boot_id) => Err(wrong(format!("{id} of a run is to leave {boot_id}"))),
                None => Ok(()),
            };
        }
        let Some(entry) = self.entry_of(id) else { return Err(wrong(format!("{id} is of no entry"))) };
        if entry.status() != Some(EntryStatus::Rebooting) || entry.leave != *boot_id {
            return Err(wrong(format!("{id} is to leave {boot_id:?}, and its entry is {entry:?}")));
        }
        Ok(())
    }

    /// The operator's command is run for an entry.
    pub(super) fn command_runs(&self, job: &CommandJob) -> Result<RunId, Violation> {
        let entry = self.entries.get(index_of(job.index)).filter(|entry| entry.host == job.host);
        let running = entry.filter(|entry| {
            entry.status() == Some(EntryStatus::Rebooting) && entry.attempt == Some(Attempt::Running)
        });
        let entry = running.ok_or_else(|| wrong(format!("{job:?} is run, and its entry is {entry:?}")))?;
        Ok(entry.run.clone())
    }

    /// Whether the entry of a command has ended otherwise than because an operator gave it up.
    pub(super) fn is_over(&self, job: &CommandJob) -> bool {
        let entry = self.entries.get(index_of(job.index)).filter(|entry| entry.host == job.host);
        entry
            .is_none_or(|entry| entry.status() != Some(EntryStatus::Rebooting) && entry.given_up_by.is_none())
    }

    /// A command has been deleted, which must not happen before its entry has ended.
    pub(super) fn check_deleted(&self, id: &CommandId) -> Result<(), Violation> {
        match self.entry_of(id) {
            Some(entry) if entry.status().is_some() => {
                Err(Violation::new("once", format!("{id} is deleted while its entry is there")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a host has gone down for the entry of this command.
    pub(super) fn has_rebooted_for(&self, id: &CommandId) -> bool {
        self.boots.contains_key(&id.run)
    }

    /// A host goes down for a command.
    pub(super) fn went_down(&mut self, id: &CommandId, is_rolled_back: bool) -> Result<(), Violation> {
        if Owner::from(&id.run).entry().is_none() {
            return Ok(());
        }
        let boots = self.boots.entry(id.run.clone()).or_default();
        *boots += 1;
        if *boots > 1 + u32::from(self.told_before.contains(&id.run)) {
            return Err(Violation::new("doubled", format!("{} reboots for {} again", id.host, id.run)));
        }
        let never_told = |entry: &Entry| !entry.was(Some(EntryStatus::Rebooting), 0);
        if !is_rolled_back && self.entry_of(id).is_none_or(never_told) {
            return Err(wrong(format!("{} reboots for {}, which never began", id.host, id.run)));
        }
        Ok(())
    }

    /// A reply to a command is stored in the stream, of a host that is in this boot.
    pub(super) fn replied(&mut self, id: &CommandId, reply: &Reply, boot: u32) {
        let Some(index) = Owner::from(&id.run).entry().map(index_of) else { return };
        if reply.result == Outcome::Done
            && self.entry_of(id).is_some()
            && let Some(entry) = self.entries.get_mut(index)
        {
            entry.has_left |= entry.leave.as_ref().is_some_and(|leave| *leave != boot_id(boot));
        }
    }

    /// The machine of bus and orchestrators is put back to an earlier moment.
    pub(super) fn rolled_back(&mut self) {
        // A host may reboot later for what it was told before.
        let told = |entry: &&Entry| {
            entry.was(Some(EntryStatus::Rebooting), 0) && !self.boots.contains_key(&entry.run)
        };
        self.told_before = self.entries.iter().filter(told).map(|entry| entry.run.clone()).collect();
        self.boots.clear();
    }

    /// Whether an accepted operation of `actor`, called at `called`, took effect.
    pub(super) fn took_effect(&self, operation: &RebootOperation, actor: &str, called: Micros) -> bool {
        match operation {
            RebootOperation::Add { hosts, .. } => {
                let added = self.entries.iter().filter(|entry| entry.actor == actor);
                added.map(|entry| &entry.host).eq(hosts)
            }
            RebootOperation::Cancel { index, .. } => {
                self.entries.get(index_of(*index)).is_some_and(|entry| entry.cancelled)
            }
            RebootOperation::CancelAll { .. } => {
                let known = self.entries.iter().filter(|entry| entry.added() < called);
                known.into_iter().all(|entry| entry.cancelled || entry.status().is_none())
            }
            RebootOperation::GiveUp { index, .. } => {
                let entry = self.entries.get(index_of(*index));
                entry.is_some_and(|entry| entry.given_up_by.as_deref() == Some(actor))
            }
            // No drain is ever given up here.
            RebootOperation::ResetBackoff => true,
            RebootOperation::Enable { .. } => self.was_enabled(true, called),
            RebootOperation::Disable { .. } => self.was_enabled(false, called),
        }
    }

    fn was_enabled(&self, enabled: bool, since: Micros) -> bool {
        self.switched.iter().enumerate().any(|(number, (_, was))| {
            let until = self.switched.get(number + 1).map_or(Micros::MAX, |(from, _)| *from);
            *was == enabled && until >= since
        })
    }

    /// Whether there was a reason for the refusal of an operation at some time since `called`.
    pub(super) fn was_refusable(
        &self,
        operation: &RebootOperation,
        refusal: &RebootRefusal,
        called: Micros,
    ) -> bool {
        let named = match operation {
            RebootOperation::Add { hosts, .. } => hosts.as_slice(),
            RebootOperation::Cancel { .. }
            | RebootOperation::CancelAll { .. }
            | RebootOperation::GiveUp { .. }
            | RebootOperation::ResetBackoff
            | RebootOperation::Enable { .. }
            | RebootOperation::Disable { .. } => &[],
        };
        let entry = |index: u64| self.entries.get(index_of(index));
        match refusal {
            RebootRefusal::NoHosts => named.is_empty(),
            RebootRefusal::NamedTwice { host } => named.iter().filter(|named| *named == host).count() > 1,
            // The simulated site never queues that many.
            RebootRefusal::QueueFull { .. } => false,
            RebootRefusal::UnknownHosts { hosts, .. } | RebootRefusal::NeitherNodeNorWorker { hosts, .. } => {
                hosts.iter().all(|host| !self.hosts.contains(host))
            }
            RebootRefusal::NoRebootsOnRequest { hosts, .. } => {
                hosts.iter().all(|host| !self.on_request.contains(host))
            }
            RebootRefusal::Queued { host, index } => entry(*index).is_some_and(|entry| {
                entry.host == *host && named.contains(host) && entry.was(Some(EntryStatus::Queued), called)
            }),
            RebootRefusal::NoEntry { index } => {
                entry(*index).is_none_or(|entry| entry.added() >= called || entry.status().is_none())
            }
            RebootRefusal::NotBegun { index, status } => {
                !status.is_under_way() && entry(*index).is_some_and(|entry| entry.was(Some(*status), called))
            }
            RebootRefusal::CommandRuns { host } => {
                let of_host = || self.entries.iter().filter(|entry| entry.host == *host);
                of_host().any(|entry| entry.ran(called))
            }
            // Of enrolment only its consequences are checked; only a leader knows what it has not read or seen.
            RebootRefusal::NotApproved { .. }
            | RebootRefusal::EntryUncertain { .. }
            | RebootRefusal::ClusterUnseen => true,
        }
    }
}

fn index_of(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}
