//! Effects: what should be under way, given the state. A crash loses none, because they are derived from the state.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{CommandId, HostName};

use crate::job::{self, Job};
use crate::state::State;

/// Something to do outside the kernel. Repeating it does no harm; equal values are the same effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Publish a command under the current fence. It counts as sent once it has been seen in the control stream.
    Send {
        /// The command's id: run, host, action and attempt.
        id: CommandId,
        /// The time after which the command must be neither published nor started.
        not_after: DateTime<Utc>,
    },
    /// Do a job in a system outside of the bus.
    Job(Job),
    /// Publish a new fence, to learn whether a command that was never seen can still appear.
    NewFence {
        /// The new fence's sequence must be above this one.
        above: u64,
    },
    /// Delete a command of an ended run, or of a host that was given up, from the control stream, unless it has been
    /// delivered to a worker.
    Retract {
        /// The host it was sent to.
        host: HostName,
        /// The command's sequence in the control stream.
        sequence: u64,
    },
    /// Delete what is stored of a removed host.
    Purge(Purge),
}

/// What to delete of a removed host: what it announced and published before, its consumer, and its output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Purge {
    /// The host.
    pub host: HostName,
    /// The sequence of its last announcement before it was removed; 0 if it had announced nothing. If it has announced
    /// itself since, its consumer is kept.
    pub announced: u64,
    /// When it was removed: versions that it published later are kept.
    pub removed_at: DateTime<Utc>,
}

/// Everything that should be under way, the most urgent first. Lazy: a caller at its limit stops early.
pub fn effects(state: &State) -> impl Iterator<Item = Effect> + '_ {
    sends(state).chain(other_effects(state))
}

/// Everything except commands to send: few at any time, apart from retractions at the end of a run, and purges after many
/// hosts were removed.
pub fn other_effects(state: &State) -> impl Iterator<Item = Effect> + '_ {
    job::wanted(state).map(Effect::Job).chain(new_fence(state)).chain(retractions(state)).chain(purges(state))
}

/// Commands to send: one for every host whose current command has not been seen in the control stream.
pub fn sends(state: &State) -> impl Iterator<Item = Effect> + '_ {
    let fenced = state.fence.as_ref().is_some_and(|fence| fence.passed);
    let run = state.run.as_ref().filter(|_| fenced);
    run.into_iter().flat_map(|run| {
        run.unsent().iter().filter_map(|name| {
            let command = run.host(name)?.command?;
            let (host, action, attempt) = (name.clone(), command.action, command.attempt);
            Some(Effect::Send {
                id: CommandId { run: run.id.clone(), host, action, attempt },
                not_after: run.not_after,
            })
        })
    })
}

fn new_fence(state: &State) -> impl Iterator<Item = Effect> + '_ {
    let fence = state.fence.as_ref().map_or(0, |fence| fence.sequence);
    let needed =
        state.slots.values().any(|slot| slot.unsent_at_fence.is_some_and(|sequence| sequence >= fence));
    needed.then_some(Effect::NewFence { above: fence }).into_iter()
}

fn purges(state: &State) -> impl Iterator<Item = Effect> + '_ {
    let due = state.enrolment.removed.iter().filter(|(_, removal)| !removal.purged);
    due.map(|(host, removal)| {
        let (announced, removed_at) = (removal.announced, removal.since);
        Effect::Purge(Purge { host: host.clone(), announced, removed_at })
    })
}

fn retractions(state: &State) -> impl Iterator<Item = Effect> + '_ {
    state
        .retractions
        .iter()
        .map(|(sequence, host)| Effect::Retract { host: host.clone(), sequence: *sequence })
}
