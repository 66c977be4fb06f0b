//! What records change in the projection: facts folded by the kernel, rows read off the result. No SQL, no I/O.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::Part;
use os_upgrade_kernel::{Fact, HostEvent, Run, State};
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_shell::journal::Committed;

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
        let (of_run, of_host) = (fact.affects(Part::Run), fact.affects(Part::Host));
        if !of_run && !of_host {
            return;
        }
        let subject = fact.subject();
        let mut runs = state.run.iter().chain(&state.last_run);
        let Some(run) = state.run_of(subject).and_then(|id| runs.find(|run| run.id == *id)) else { return };
        if fact.affects(Part::HostList) {
            self.touch_all(run);
        }
        let change = self.touch(run);
        if of_run {
            change.run = run.clone();
        }
        if let Some(host) = subject.host.filter(|_| of_host) {
            let started = change.hosts.entry(host.clone()).or_default();
            if let Fact::Host { event: HostEvent::SlotGranted { .. }, .. } = fact {
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
        let event = if let Fact::Host { event, .. } = fact { Some(event.name()) } else { None };
        let subject = fact.subject();
        Self {
            sequence: committed.sequence,
            place,
            at: committed.record.at,
            name: fact.name(),
            event,
            actor: subject.actor.map(ToOwned::to_owned),
            run: before.run_of(subject).cloned(),
            host: subject.host.cloned(),
            json: serde_json::to_string(fact).expect("a fact has string keys and no fallible part"),
        }
    }
}
