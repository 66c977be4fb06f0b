//! Effects: what should be under way, given the state. A crash loses none, because they are derived from the state.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Command, CommandId, HostName};

use crate::desired::{self, ManifestOrder};
use crate::job::{self, Job};
use crate::owner::Owner;
use crate::run::Issued;
use crate::state::State;
use crate::step::Step;

/// Something to do outside the kernel. Repeating it does no harm; equal values are the same effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Publish a command under the current fence. It counts as sent once it has been seen in the control stream.
    Send(Order),
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
    /// Publish the manifest of a host, then delete the items that it no longer names.
    Manifest(ManifestOrder),
}

/// A command to send.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// Its id: run, host, action and attempt.
    pub id: CommandId,
    /// The time after which it must be neither published nor started; absent for an entry of the reboot queue.
    pub not_after: Option<DateTime<Utc>>,
    /// For an entry of the reboot queue, the boot that the host is to leave.
    pub boot_id: Option<String>,
}

impl Order {
    /// Whether its time has passed at `now`.
    pub fn is_late(&self, now: DateTime<Utc>) -> bool {
        self.not_after.is_some_and(|not_after| not_after <= now)
    }

    /// The command itself.
    pub fn command(&self) -> Command {
        let host = self.id.host.clone();
        match &self.boot_id {
            Some(boot_id) => {
                Command::Reboot { host, not_after: self.not_after, boot_id: Some(boot_id.clone()) }
            }
            None => Command::for_host(self.id.action, host, self.not_after),
        }
    }
}

/// What to delete of a removed host: what it announced and published before, its consumer, and its output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Purge {
    pub host: HostName,
    /// The sequence of its last announcement before it was removed; 0 if it had announced nothing. If it has announced
    /// itself since, its consumer is kept.
    pub announced: u64,
    /// When it was removed: versions that it published later are kept.
    pub removed_at: DateTime<Utc>,
}

/// Everything that should be under way, the most urgent first. Lazy: a caller at its limit stops early.
pub fn effects(state: &State) -> impl Iterator<Item = Effect> + '_ {
    sends(state).chain(other_effects(state)).chain(manifests(state).map(Effect::Manifest))
}

/// Everything except commands to send, and manifests to publish: few at any time, apart from retractions at the end of a run, and purges after many
/// hosts were removed.
pub fn other_effects(state: &State) -> impl Iterator<Item = Effect> + '_ {
    job::wanted(state).map(Effect::Job).chain(new_fence(state)).chain(retractions(state)).chain(purges(state))
}

/// Commands to send: one for every host whose current command has not been seen in the control stream.
pub fn sends(state: &State) -> impl Iterator<Item = Effect> + '_ {
    let fenced = state.fence.as_ref().is_some_and(|fence| fence.passed);
    state.unsent_steps().filter(move |_| fenced).filter_map(|step| order(state, &step)).map(Effect::Send)
}

/// Manifests to publish: one for every host whose manifest is not known to be stored, once it may be.
pub fn manifests(state: &State) -> impl Iterator<Item = ManifestOrder> + '_ {
    desired::due(state)
}

/// The command of `step` that is to be sent.
fn order(state: &State, step: &Step<'_>) -> Option<Order> {
    let Issued { action, attempt, .. } = state.sendable(step)?;
    let id = CommandId { run: step.owner.id(), host: step.host.clone(), action, attempt };
    Some(Order { id, not_after: step.not_after, boot_id: step.boot_id.map(ToOwned::to_owned) })
}

/// Whether this very command still has to be sent.
pub fn is_wanted(state: &State, id: &CommandId) -> bool {
    let step = state.step(&Owner::from(&id.run), &id.host);
    let unsent = step.and_then(|step| state.sendable(&step));
    unsent.is_some_and(|command| (command.action, command.attempt) == (id.action, id.attempt))
}

fn new_fence(state: &State) -> impl Iterator<Item = Effect> + '_ {
    let fence = state.fence.as_ref().map_or(0, |fence| fence.sequence);
    let needed =
        state.slots.values().any(|slot| slot.unsent_at_fence.is_some_and(|sequence| sequence >= fence));
    needed.then_some(Effect::NewFence { above: fence }).into_iter()
}

fn purges(state: &State) -> impl Iterator<Item = Effect> + '_ {
    // A host that is gone has nothing: that is said before it is forgotten. The epoch of a delivery that was resumed stays known.
    let due = state
        .enrolment
        .removed
        .iter()
        .filter(|(host, removal)| !removal.purged && !state.desired.outdated.contains(*host));
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
