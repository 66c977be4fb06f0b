//! What records change in the projection: the kernel folds facts, and rows are read from the result. No SQL, no I/O.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{Part, RunFact};
use os_upgrade_kernel::{Fact, HostEvent, Owner, Run, RunResult, State, Trigger};
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_shell::journal::Committed;

use super::error::ApplyError;

/// The rows that a batch of records changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The runs in the state with which the store begins, or begins anew after a gap: how they and their hosts have ended by then is
    /// counted if the store has not done so.
    pub(super) base_runs: Vec<Run>,
    /// Changed runs as they are after the batch, in the order of their first change.
    pub(super) runs: Vec<RunChange>,
    /// All facts of the batch.
    pub(super) facts: Vec<FactEntry>,
    /// Runs that ended in the batch.
    pub(super) ended_runs: Vec<EndedRun>,
    /// How many hosts were upgraded, failed or timed out in the batch, by the event's name, which is the status too.
    pub(super) ended_hosts: BTreeMap<&'static str, u32>,
}

/// What stands for the trigger in the totals of runs of chosen hosts.
pub const TARGETED: &str = "targeted";

/// The end of a run.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub(super) at: DateTime<Utc>,
    pub(super) result: RunResult,
    pub(super) trigger_kind: &'static str,
}

/// As what the end of a run is counted: one of chosen hosts says little of the site.
pub(super) fn counted_as(trigger: &Trigger) -> &'static str {
    if trigger.is_targeted() { TARGETED } else { trigger.kind() }
}

/// A changed run.
#[derive(Debug)]
pub(super) struct RunChange {
    /// The run after the batch.
    pub(super) run: Run,
    /// Hosts whose rows must be written, each with the time of its slot's grant if that is in the batch.
    pub(super) hosts: BTreeMap<HostName, Option<DateTime<Utc>>>,
}

/// A fact with the columns by which it is found.
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
    pub(super) list: Option<&'static str>,
    pub(super) json: String,
}

impl Changes {
    /// What `batch` changes. The first batch of an empty store, or after a gap, also adds the runs in the state before it, because a
    /// journal may begin with a snapshot.
    pub(super) fn of(batch: &[Committed], begins: bool) -> Result<Self, ApplyError> {
        let mut changes = Self::default();
        if let Some(first) = batch.first().filter(|_| begins) {
            let known: Vec<&Run> = first.before.known_runs().collect();
            // The oldest first.
            for run in known.into_iter().rev() {
                changes.touch_all(run);
                changes.base_runs.push(run.clone());
            }
        }
        for committed in batch {
            changes.apply(committed)?;
        }
        Ok(changes)
    }

    fn apply(&mut self, committed: &Committed) -> Result<(), ApplyError> {
        let at = committed.record.at;
        let mut state = committed.before.clone();
        for (place, fact) in (0..).zip(&committed.record.facts) {
            self.facts.push(FactEntry::new(committed, place, fact, &state));
            self.count(at, fact, &state);
            state.apply(at, fact).map_err(|source| ApplyError::Fact {
                sequence: committed.sequence,
                place,
                source,
            })?;
            self.mark_rows(at, fact, &state);
        }
        // Hosts are marked by name only; their rows are read from this state.
        if let Some(run) = &state.run
            && let Some(change) = self.runs.iter_mut().find(|change| change.run.id == run.id)
        {
            change.run = run.clone();
        }
        Ok(())
    }

    /// Counts what ends with `fact`; `state` is the state before it.
    fn count(&mut self, at: DateTime<Utc>, fact: &Fact, state: &State) {
        if let Fact::Run(RunFact::Ended { result, .. }) = fact
            && let Some(run) = &state.run
        {
            self.ended_runs.push(EndedRun { at, result: *result, trigger_kind: counted_as(&run.trigger) });
        }
        if let Fact::Run(RunFact::Host { event, .. }) = fact
            && let HostEvent::Upgraded | HostEvent::Failed { .. } | HostEvent::TimedOut { .. } = event
        {
            *self.ended_hosts.entry(event.name()).or_default() += 1;
        }
    }

    /// Marks the rows that `fact` changes; `state` is the state after it.
    fn mark_rows(&mut self, at: DateTime<Utc>, fact: &Fact, state: &State) {
        let (affects_run, affects_host) = (fact.affects(Part::Run), fact.affects(Part::Host));
        if !affects_run && !affects_host {
            return;
        }
        let about = fact.about();
        let mut runs = state.known_runs();
        let owner = state.owner_of(about);
        let id = owner.as_ref().and_then(Owner::run);
        let Some(run) = id.and_then(|id| runs.find(|run| run.id == *id)) else { return };
        if fact.affects(Part::HostList) {
            self.touch_all(run);
        }
        let change = self.touch(run);
        if affects_run {
            change.run = run.clone();
        }
        if let Some(host) = about.host.filter(|_| affects_host) {
            let started = change.hosts.entry(host.clone()).or_default();
            if let Fact::Run(RunFact::Host { event: HostEvent::SlotGranted { .. }, .. }) = fact {
                *started = Some(at);
            }
        }
    }

    fn touch(&mut self, run: &Run) -> &mut RunChange {
        let known = self.runs.iter().position(|change| change.run.id == run.id);
        let index = known.unwrap_or_else(|| {
            self.runs.push(RunChange { run: run.clone(), hosts: BTreeMap::new() });
            self.runs.len() - 1
        });
        &mut self.runs[index]
    }

    fn touch_all(&mut self, run: &Run) {
        self.touch(run).hosts.extend(run.hosts().keys().map(|name| (name.clone(), None)));
    }
}

impl FactEntry {
    fn new(committed: &Committed, place: u32, fact: &Fact, before: &State) -> Self {
        let event = if let Fact::Run(RunFact::Host { event, .. }) = fact { Some(event.name()) } else { None };
        let about = fact.about();
        Self {
            sequence: committed.sequence,
            place,
            at: committed.record.at,
            name: fact.name(),
            event,
            actor: about.actor.map(ToOwned::to_owned),
            run: before.owner_of(about).map(|owner| owner.id()),
            host: about.host.cloned(),
            list: about.list.map(Into::into),
            json: serde_json::to_string(fact).expect("a fact has string keys and no fallible part"),
        }
    }
}
