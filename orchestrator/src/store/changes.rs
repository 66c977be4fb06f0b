//! What records change in the projection: facts folded by the kernel, rows read off the result. No SQL, no I/O.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Fact, HostEvent, Reason, Run, State, StopCause};
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_shell::committed::Committed;

use super::error::ApplyError;

/// Everything that a batch of records changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Runs that were touched, in the order in which they were; each as it is after the batch.
    pub(super) runs: Vec<RunChange>,
    /// Every fact.
    pub(super) facts: Vec<FactEntry>,
}

/// A run that was touched.
#[derive(Debug)]
pub(super) struct RunChange {
    /// The run after the batch.
    pub(super) run: Run,
    /// Hosts whose rows are to be written, each with the time of its slot's grant if that was in the batch.
    pub(super) hosts: BTreeMap<HostName, Option<DateTime<Utc>>>,
}

/// A fact, with what it is found by.
#[derive(Debug)]
pub(super) struct FactEntry {
    pub(super) sequence: u64,
    pub(super) place: u32,
    pub(super) at: DateTime<Utc>,
    pub(super) name: &'static str,
    pub(super) event: Option<&'static str>,
    pub(super) actor: Option<String>,
    pub(super) run: Option<RunId>,
    pub(super) host: Option<HostName>,
    pub(super) json: String,
}

impl Changes {
    /// What `batch` changes. The first batch of an empty store also brings the runs that its state already has:
    /// a journal may begin after a snapshot.
    pub(super) fn of(batch: &[Committed], store_is_empty: bool) -> Result<Self, ApplyError> {
        let mut changes = Self::default();
        if let Some(first) = batch.first().filter(|_| store_is_empty) {
            for run in first.before.last_run.iter().chain(&first.before.run) {
                changes.touch_all(run);
            }
        }
        for committed in batch {
            changes.follow(committed)?;
        }
        Ok(changes)
    }

    fn follow(&mut self, committed: &Committed) -> Result<(), ApplyError> {
        let at = committed.record.at;
        let mut state = committed.before.clone();
        for (place, fact) in (0..).zip(&committed.record.facts) {
            self.facts.push(FactEntry::new(committed, place, fact, &state));
            state.apply(at, fact).map_err(|source| ApplyError::Fact {
                sequence: committed.sequence,
                place,
                source,
            })?;
            self.note(at, fact, &state);
        }
        // Hosts were noted by name only; this is the state that their rows are read from.
        if let Some(run) = &state.run
            && let Some(change) = self.runs.iter_mut().find(|change| change.run.id == run.id)
        {
            change.run = run.clone();
        }
        Ok(())
    }

    /// Notes which rows `fact`, which led to `state`, touches.
    fn note(&mut self, at: DateTime<Utc>, fact: &Fact, state: &State) {
        match fact {
            Fact::RunStarted { .. } => {
                if let Some(run) = &state.run {
                    self.touch_all(run);
                }
            }
            Fact::UpgradesBegan { run } | Fact::RunStopping { run, .. } => {
                self.touch(state, run);
            }
            Fact::RunEnded { run, .. } => {
                let ended = state.last_run.clone();
                if let (Some(change), Some(ended)) = (self.touch(state, run), ended) {
                    change.run = ended;
                }
            }
            Fact::Host { run, host, event } => {
                let granted = matches!(event, HostEvent::SlotGranted { .. }).then_some(at);
                if let Some(change) = self.touch(state, run) {
                    let started = change.hosts.entry(host.clone()).or_default();
                    *started = granted.or(*started);
                }
            }
            Fact::SettingsAdopted { .. }
            | Fact::ConfigReplaced { .. }
            | Fact::Fenced { .. }
            | Fact::FencePassed { .. }
            | Fact::SlotRequested { .. }
            | Fact::SlotReleaseDue { .. }
            | Fact::SlotReleased { .. }
            | Fact::LockGranted { .. }
            | Fact::LockAwaited { .. }
            | Fact::LockReleased { .. }
            | Fact::HoldPlaced { .. }
            | Fact::HolderReleased { .. }
            | Fact::StrongboxMade { .. }
            | Fact::SecretKept { .. }
            | Fact::SecretRemoved { .. }
            | Fact::HostsApproved { .. }
            | Fact::HostWithdrawn { .. }
            | Fact::Restored { .. }
            | Fact::LateCommandSeen { .. }
            | Fact::Withdrawn { .. }
            | Fact::Ignored { .. } => {}
        }
    }

    fn touch(&mut self, state: &State, id: &RunId) -> Option<&mut RunChange> {
        if let Some(index) = self.runs.iter().position(|change| change.run.id == *id) {
            return self.runs.get_mut(index);
        }
        let run = state.run.iter().chain(&state.last_run).find(|run| run.id == *id)?;
        self.runs.push(RunChange { run: run.clone(), hosts: BTreeMap::new() });
        self.runs.last_mut()
    }

    fn touch_all(&mut self, run: &Run) {
        let hosts = run.hosts().keys().map(|name| (name.clone(), None)).collect();
        self.runs.push(RunChange { run: run.clone(), hosts });
    }
}

impl FactEntry {
    fn new(committed: &Committed, place: u32, fact: &Fact, before: &State) -> Self {
        let event = if let Fact::Host { event, .. } = fact { Some(event.name()) } else { None };
        Self {
            sequence: committed.sequence,
            place,
            at: committed.record.at,
            name: fact.name(),
            event,
            actor: actor(fact).map(ToOwned::to_owned),
            run: run_of(fact, before),
            host: host_of(fact).cloned(),
            json: serde_json::to_string(fact).expect("a fact has string keys and no fallible part"),
        }
    }
}

/// Who caused `fact`, where somebody did.
fn actor(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::RunStarted { trigger, .. } => trigger.actor(),
        Fact::ConfigReplaced { actor, .. }
        | Fact::RunStopping {
            cause: StopCause::Cancelled { actor } | StopCause::Restored { actor }, ..
        }
        | Fact::Restored { actor, .. }
        | Fact::HoldPlaced { actor, .. }
        | Fact::HolderReleased { actor, .. }
        | Fact::SecretKept { actor, .. }
        | Fact::SecretRemoved { actor, .. }
        | Fact::HostsApproved { actor, .. }
        | Fact::Host {
            event:
                HostEvent::TimedOut { reason: Reason::GivenUp { actor, .. } }
                | HostEvent::Cancelled { reason: Reason::GivenUp { actor, .. } },
            ..
        }
        | Fact::HostWithdrawn { actor, .. } => Some(actor),
        Fact::LockGranted { actor, .. }
        | Fact::LockAwaited { actor, .. }
        | Fact::LockReleased { actor, .. } => actor.as_deref(),
        Fact::SettingsAdopted { .. }
        | Fact::Fenced { .. }
        | Fact::FencePassed { .. }
        | Fact::UpgradesBegan { .. }
        | Fact::RunStopping { cause: StopCause::Failed { .. }, .. }
        | Fact::RunEnded { .. }
        | Fact::Host { .. }
        | Fact::SlotRequested { .. }
        | Fact::SlotReleaseDue { .. }
        | Fact::SlotReleased { .. }
        | Fact::StrongboxMade { .. }
        | Fact::LateCommandSeen { .. }
        | Fact::Withdrawn { .. }
        | Fact::Ignored { .. } => None,
    }
}

/// The host that `fact` is about.
fn host_of(fact: &Fact) -> Option<&HostName> {
    match fact {
        Fact::Host { host, .. }
        | Fact::SlotRequested { host, .. }
        | Fact::SlotReleaseDue { host, .. }
        | Fact::SlotReleased { host, .. }
        | Fact::LateCommandSeen { host, .. }
        | Fact::Withdrawn { host, .. }
        | Fact::HostWithdrawn { host, .. } => Some(host),
        Fact::Ignored { host, .. } => host.as_ref(),
        Fact::SettingsAdopted { .. }
        | Fact::ConfigReplaced { .. }
        | Fact::Restored { .. }
        | Fact::Fenced { .. }
        | Fact::FencePassed { .. }
        | Fact::RunStarted { .. }
        | Fact::UpgradesBegan { .. }
        | Fact::RunStopping { .. }
        | Fact::RunEnded { .. }
        | Fact::LockGranted { .. }
        | Fact::LockAwaited { .. }
        | Fact::LockReleased { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HolderReleased { .. }
        | Fact::StrongboxMade { .. }
        | Fact::SecretKept { .. }
        | Fact::SecretRemoved { .. }
        | Fact::HostsApproved { .. } => None,
    }
}

/// The run in whose history `fact` belongs: the one it names; else the one for which the slot is held, or whose
/// command it is about, as far as that is known; else, for a message that changes nothing, the active run if its host is in it.
fn run_of(fact: &Fact, before: &State) -> Option<RunId> {
    let runs = || before.run.iter().chain(&before.last_run);
    match fact {
        Fact::RunStarted { run, .. }
        | Fact::UpgradesBegan { run }
        | Fact::RunStopping { run, .. }
        | Fact::RunEnded { run, .. }
        | Fact::Host { run, .. }
        | Fact::SlotRequested { run, .. } => Some(run.clone()),
        Fact::SlotReleaseDue { host, .. } | Fact::SlotReleased { host, .. } => {
            before.slots.get(host).map(|slot| slot.run.clone())
        }
        // The fact does not say whose command it is; without a slot held for it, the host's latest run is the best guess.
        Fact::LateCommandSeen { host, .. } => {
            let of_slot = before.slots.get(host).filter(|slot| slot.unsent_at_fence.is_some());
            let latest = || runs().find(|run| run.host(host).is_some()).map(|run| &run.id);
            of_slot.map(|slot| &slot.run).or_else(latest).cloned()
        }
        Fact::Withdrawn { host, sequence, .. } => {
            let sent = |run: &&Run| {
                let command = run.host(host).and_then(|in_run| in_run.command);
                command.is_some_and(|command| command.sequence == Some(*sequence))
            };
            runs().find(sent).map(|run| run.id.clone())
        }
        Fact::Ignored { host, .. } => {
            let host = host.as_ref()?;
            before.run.as_ref().filter(|run| run.host(host).is_some()).map(|run| run.id.clone())
        }
        Fact::SettingsAdopted { .. }
        | Fact::ConfigReplaced { .. }
        | Fact::Restored { .. }
        | Fact::Fenced { .. }
        | Fact::FencePassed { .. }
        | Fact::LockGranted { .. }
        | Fact::LockAwaited { .. }
        | Fact::LockReleased { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HolderReleased { .. }
        | Fact::StrongboxMade { .. }
        | Fact::SecretKept { .. }
        | Fact::SecretRemoved { .. }
        | Fact::HostsApproved { .. }
        | Fact::HostWithdrawn { .. } => None,
    }
}
