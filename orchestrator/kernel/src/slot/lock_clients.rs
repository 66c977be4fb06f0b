//! Requests from external FleetLock clients to the embedded semaphores: lock and unlock.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

use super::client_id::ClientId;
use super::semaphore::{Denied, DeniedKind, Semaphore};
use crate::answer::Accepted;
use crate::config::LockProvider;
use crate::fact::{Fact, LockFact};
use crate::state::State;

/// An operation of a FleetLock client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LockOperation {
    /// Take a slot. A client that already holds one is granted it again.
    Lock {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
    },
    /// Release the client's slot, or stop waiting for one. A client that holds none is answered that it is done.
    Unlock {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
    },
}

/// The facts and the answer. A refusal may have facts too: the refused client is remembered.
pub(crate) fn decide(
    state: &State,
    operation: &LockOperation,
    actor: &str,
    now: DateTime<Utc>,
) -> (Vec<Fact>, Result<Accepted, Denied>) {
    match operation {
        LockOperation::Lock { group, id } => lock(state, group, id, actor, now),
        LockOperation::Unlock { group, id } => match unlock(state, group, id, actor) {
            Ok(facts) => (facts, Ok(Accepted::Done)),
            Err(denied) => (Vec::new(), Err(denied)),
        },
    }
}

/// Grants a slot of the semaphore that hosts of runs use too. A client that already holds one is granted it again, also
/// when it holds it as a host in a run: to FleetLock the same id is the same holder. A refused client is remembered
/// for a while.
fn lock(
    state: &State,
    group: &GroupName,
    id: &ClientId,
    actor: &str,
    now: DateTime<Utc>,
) -> (Vec<Fact>, Result<Accepted, Denied>) {
    let semaphore = check_embedded(state).and_then(|()| state.semaphores.known(group));
    let admitted = semaphore.and_then(|semaphore| {
        state.semaphores.admits(group, id.as_str())?;
        Ok(semaphore.is_held_by_client(id))
    });
    let named = || (group.clone(), id.clone(), actor.to_owned());
    match admitted {
        Ok(true) => (Vec::new(), Ok(Accepted::Done)),
        Ok(false) => {
            let (group, id, actor) = named();
            (vec![Fact::Lock(LockFact::Granted { group, id, actor })], Ok(Accepted::Done))
        }
        Err(denied) => {
            let waits = denied.kind() == DeniedKind::FailedLockSemaphoreFull
                && needs_record(state.semaphores.get(group), id, now);
            let (group, id, actor) = named();
            let facts =
                waits.then_some(Fact::Lock(LockFact::Awaited { group, id, actor })).into_iter().collect();
            (facts, Err(denied))
        }
    }
}

/// Whether the journal must record that `id` was refused at `now`.
fn needs_record(semaphore: Option<&Semaphore>, id: &ClientId, now: DateTime<Utc>) -> bool {
    semaphore.is_some_and(|semaphore| semaphore.waiters.needs_record(id, now))
}

/// Releases the client's slot, but not a slot that a host of that name holds for a run: a FleetLock agent unlocks each
/// time it starts, even after the reboot in the middle of an upgrade. The client is answered that it holds no slot,
/// which is true of the client itself: such an agent does nothing else until it gets this answer.
fn unlock(state: &State, group: &GroupName, id: &ClientId, actor: &str) -> Result<Vec<Fact>, Denied> {
    let semaphore = state.semaphores.known(group)?;
    let named = || (group.clone(), id.clone(), actor.to_owned());
    Ok(if semaphore.is_held_by_client(id) {
        let (group, id, actor) = named();
        vec![Fact::Lock(LockFact::Released { group, id, actor })]
    } else if semaphore.waiters.contains(id) {
        let (group, id, actor) = named();
        vec![Fact::Lock(LockFact::WaitEnded { group, id, actor })]
    } else {
        Vec::new()
    })
}

/// Refuses to grant slots here when the site uses an external lock server: hosts of runs take their slots there, so
/// slots granted here would not limit them.
pub(crate) fn check_embedded(state: &State) -> Result<(), Denied> {
    match state.settings.provider {
        LockProvider::Embedded => Ok(()),
        LockProvider::External => Err(Denied::OtherLockServer),
    }
}
