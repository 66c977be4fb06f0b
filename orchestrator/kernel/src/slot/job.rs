//! External lock servers: which slots of hosts to request and release there, and what follows from the answers.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, HostName};
use serde::{Deserialize, Serialize};

use super::state::{ReleaseCause, Slot, SlotState};
use crate::config::LockProvider;
use crate::fact::{Fact, SlotFact};
use crate::no_answer::NoAnswer;
use crate::owner::Owner;
use crate::reason::LockRefusal;
use crate::reboot_queue::{Entry, EntryStatus, next_reboot};
use crate::run::Run;
use crate::state::State;
use crate::system_job::{Subject, SystemJob};
use crate::view::View;

/// A request to a lock server about a host's slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotJob {
    /// Whether to lock or unlock.
    pub order: SlotOrder,
    pub host: HostName,
    pub group: GroupName,
}

/// What to request from a lock server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotOrder {
    /// Take a slot: FleetLock's `pre-reboot`.
    Lock,
    /// Release it: FleetLock's `steady-state`.
    Unlock,
}

/// The outcome of a request to a lock server. Only `Granted` is a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LockOutcome {
    /// Status 200.
    Granted,
    /// Status 4xx or 5xx with a FleetLock error.
    Denied {
        /// The error's `kind`.
        lock_kind: String,
        /// The error's `value`.
        value: String,
    },
    /// No answer.
    Unreachable {
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// Any other answer.
    Protocol {
        /// A description of the answer.
        detail: String,
    },
}

impl LockOutcome {
    /// Whether the request was sent, and the server may still carry it out.
    const fn may_come_late(&self) -> bool {
        match self {
            Self::Granted
            | Self::Denied { .. }
            | Self::Unreachable {
                why: NoAnswer::NotConfigured | NoAnswer::Sealed { .. } | NoAnswer::NotSent { .. },
            } => false,
            Self::Unreachable { why: NoAnswer::TimedOut | NoAnswer::Failed { .. } }
            | Self::Protocol { .. } => true,
        }
    }
}

impl SystemJob for SlotJob {
    type Outcome = LockOutcome;

    fn wanted(state: &State) -> impl Iterator<Item = Self> {
        locks(state).chain(unlocks(state))
    }

    fn done(&self, state: &State, view: &View, outcome: &LockOutcome, now: DateTime<Utc>) -> Vec<Fact> {
        let mut facts = match self.order {
            SlotOrder::Lock => locked(state, view, &self.host, outcome, now),
            SlotOrder::Unlock => unlocked(state, &self.host, outcome),
        };
        let slot = state.slots.get(&self.host).filter(|_| outcome.may_come_late());
        if slot.is_some_and(|slot| !slot.in_doubt) {
            facts.push(Fact::Slot(SlotFact::InDoubt { host: self.host.clone() }));
        }
        // It was begun for an earlier slot. Carried out late, it would free this one while the host is at work.
        if self.order == SlotOrder::Unlock && slot.is_some_and(|slot| slot.state == SlotState::Requested) {
            facts.push(Fact::Slot(SlotFact::ReleaseDue {
                host: self.host.clone(),
                why: ReleaseCause::NotNeeded,
            }));
        }
        facts
    }

    fn leadership_began(state: &State) -> impl Iterator<Item = Fact> + '_ {
        // The outcomes of requests about held slots are known, or were in doubt before.
        let may_be_asked =
            |slot: &Slot| slot.provider == LockProvider::External && slot.state != SlotState::Held;
        let doubtful = state.slots.iter().filter(move |(_, slot)| may_be_asked(slot) && !slot.in_doubt);
        doubtful.map(|(host, _)| Fact::Slot(SlotFact::InDoubt { host: host.clone() }))
    }

    fn unanswered(why: NoAnswer) -> LockOutcome {
        LockOutcome::Unreachable { why }
    }

    fn is_answer(outcome: &LockOutcome) -> bool {
        match outcome {
            LockOutcome::Granted | LockOutcome::Denied { .. } => true,
            LockOutcome::Unreachable { .. } | LockOutcome::Protocol { .. } => false,
        }
    }

    fn subject(&self) -> Subject {
        Subject::Host(self.host.clone())
    }

    fn is_release(&self) -> bool {
        match self.order {
            SlotOrder::Lock => false,
            SlotOrder::Unlock => true,
        }
    }

    fn pool(&self) -> Option<&GroupName> {
        Some(&self.group)
    }
}

fn locks(state: &State) -> impl Iterator<Item = SlotJob> + '_ {
    let lock = |host: &HostName, group: &GroupName| SlotJob {
        order: SlotOrder::Lock,
        host: host.clone(),
        group: group.clone(),
    };
    let run = state.run.as_ref().filter(|run| state.may_begin(run));
    let of_run = run.into_iter().flat_map(move |run| {
        run.waiting().iter().filter_map(move |name| {
            let in_run = run.host(name).filter(|_| state.needs_external_lock(run, name))?;
            Some(lock(name, &in_run.group))
        })
    });
    of_run.chain(state.requesting_entries().map(move |(_, entry, slot)| lock(&entry.host, &slot.group)))
}

fn unlocks(state: &State) -> impl Iterator<Item = SlotJob> + '_ {
    let is_due =
        |slot: &Slot| matches!(slot.state, SlotState::Releasing { .. }) && slot.unlocked_at.is_none();
    let releasing = state.slots.iter().filter(move |(_, slot)| is_due(slot));
    releasing.map(|(host, slot)| SlotJob {
        order: SlotOrder::Unlock,
        host: host.clone(),
        group: slot.group.clone(),
    })
}

/// The facts after a request for the slot of `host`. An answer that nobody waits for any more changes nothing: the
/// request has been cancelled, and the slot counts as held only after another request.
fn locked(
    state: &State,
    view: &View,
    host: &HostName,
    outcome: &LockOutcome,
    now: DateTime<Utc>,
) -> Vec<Fact> {
    let Some(slot) = state.slots.get(host) else { return Vec::new() };
    let run = || {
        let run = state.run.as_ref().filter(|run| run.stopping.is_none());
        run.filter(|run| state.needs_external_lock(run, host))
    };
    let waits = match state.entry_of_slot(host) {
        Some((index, entry)) => {
            let is_awaited = slot.state == SlotState::Requested && entry.status == EntryStatus::Queued;
            is_awaited.then_some(Waits::Entry(index, entry))
        }
        None => run().map(Waits::Run),
    };
    let Some(waits) = waits else { return Vec::new() };
    match (refusal(outcome), waits) {
        (Some(refusal), _) if slot.refusal.as_ref() == Some(&refusal) => Vec::new(),
        (Some(refusal), _) => vec![Fact::Slot(SlotFact::Refused { host: host.clone(), refusal })],
        (None, Waits::Run(run)) => granted(state, view, run, host, slot, now),
        // Otherwise it is given back: something else comes first by now.
        (None, Waits::Entry(index, entry)) => (next_reboot(state, view, now) == Ok(index))
            .then(|| {
                let owner = entry.owner(index);
                state.slot_granted(&owner, host, &slot.group, LockProvider::External)
            })
            .into_iter()
            .collect(),
    }
}

/// Whose request for a slot is awaited.
enum Waits<'a> {
    Run(&'a Run),
    Entry(u64, &'a Entry),
}

/// The facts after the lock server has granted the slot of a host of the active run.
fn granted(
    state: &State,
    view: &View,
    run: &Run,
    host: &HostName,
    slot: &Slot,
    now: DateTime<Utc>,
) -> Vec<Fact> {
    let is_certain = view.clock.is_beyond_doubt();
    // A run that has too little time left gives it back when it leaves its hosts out, or ends.
    if is_certain && !run.fits(now) {
        return Vec::new();
    }
    if is_certain && state.may_begin(run) && state.waits_for_nodes(view, host).is_none() {
        let owner = Owner::Run(run.id.clone());
        return vec![state.slot_granted(&owner, host, &slot.group, LockProvider::External)];
    }
    // Another host was faster, the site is paused, no node may be drained now, or the time is in doubt. This slot would be idle, and others may need it.
    state.turn_lost(run, host)
}

/// The facts after a request to release the slot of `host`. It is repeated until the lock server confirms it; once more
/// if the server may carry out an earlier request after that.
fn unlocked(state: &State, host: &HostName, outcome: &LockOutcome) -> Vec<Fact> {
    let Some(slot) = state.slots.get(host) else { return Vec::new() };
    let SlotState::Releasing { why } = slot.state else { return Vec::new() };
    let host = host.clone();
    match refusal(outcome) {
        None if slot.in_doubt => vec![Fact::Slot(SlotFact::Unlocked { host })],
        // This request was begun before the answer to another one was in the journal.
        _ if slot.unlocked_at.is_some() => Vec::new(),
        None => vec![Fact::Slot(SlotFact::Released { host, why })],
        Some(refusal) if slot.refusal.as_ref().is_some_and(|known| known.is_like(&refusal)) => Vec::new(),
        Some(refusal) => vec![Fact::Slot(SlotFact::ReleaseRefused { host, refusal })],
    }
}

fn refusal(outcome: &LockOutcome) -> Option<LockRefusal> {
    match outcome.clone() {
        LockOutcome::Granted => None,
        LockOutcome::Denied { lock_kind, value } => Some(LockRefusal::Denied { lock_kind, value }),
        LockOutcome::Unreachable { why } => Some(LockRefusal::Unreachable { why }),
        LockOutcome::Protocol { detail } => Some(LockRefusal::Protocol { detail }),
    }
}
