//! What FleetLock clients from outside ask of the embedded semaphores: a slot, and to give it back.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

use super::granted::Accepted;
use crate::client_id::ClientId;
use crate::config::LockProvider;
use crate::fact::Fact;
use crate::semaphore::{Denied, DeniedKind, Semaphore};
use crate::state::State;

/// What a client may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LockOperation {
    /// A slot. A client that holds one already is granted it again.
    Lock {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
    },
    /// Its slot back. One that holds none is told that it is so.
    Unlock {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
    },
}

/// What becomes true, also where the client is refused: it is remembered.
pub(super) fn decide(
    state: &State,
    asked: &LockOperation,
    actor: &str,
    now: DateTime<Utc>,
) -> (Vec<Fact>, Result<Accepted, Denied>) {
    match asked {
        LockOperation::Lock { group, id } => lock(state, group, id, actor, now),
        LockOperation::Unlock { group, id } => match unlock(state, group, id, actor) {
            Ok(facts) => (facts, Ok(Accepted::Done)),
            Err(denied) => (Vec::new(), Err(denied)),
        },
    }
}

/// A slot of the semaphore that our own hosts take theirs from. A client that holds one already is granted it again,
/// also where it holds it as a host of ours: to FleetLock the same id is the same holder. One that is refused is
/// remembered for a while.
fn lock(
    state: &State,
    group: &GroupName,
    id: &ClientId,
    actor: &str,
    now: DateTime<Utc>,
) -> (Vec<Fact>, Result<Accepted, Denied>) {
    let asked = of_ours(state).and_then(|()| state.semaphores.known(group));
    let admitted = asked.and_then(|semaphore| {
        state.semaphores.admits(group, id.as_str())?;
        Ok(semaphore.is_held_by_client(id))
    });
    let named = || (group.clone(), id.clone(), actor.to_owned());
    match admitted {
        Ok(true) => (Vec::new(), Ok(Accepted::Done)),
        Ok(false) => {
            let (group, id, actor) = named();
            (vec![Fact::LockGranted { group, id, actor }], Ok(Accepted::Done))
        }
        Err(denied) => {
            let waits = denied.kind() == DeniedKind::FailedLockSemaphoreFull
                && asked_anew(state.semaphores.get(group), id, now);
            let (group, id, actor) = named();
            let facts = waits.then_some(Fact::LockAwaited { group, id, actor }).into_iter().collect();
            (facts, Err(denied))
        }
    }
}

fn asked_anew(semaphore: Option<&Semaphore>, id: &ClientId, now: DateTime<Utc>) -> bool {
    semaphore.is_some_and(|semaphore| semaphore.waiters.is_news(id, now))
}

/// The client's slot back. A slot that a host of that name holds for a run is not the client's to give: a FleetLock
/// agent asks for this each time it starts, also after the reboot in the middle of an upgrade. It is told that it
/// holds nothing, which is true of itself, because such an agent does nothing else until it is told so.
fn unlock(state: &State, group: &GroupName, id: &ClientId, actor: &str) -> Result<Vec<Fact>, Denied> {
    let semaphore = state.semaphores.known(group)?;
    if !semaphore.is_held_by_client(id) && !semaphore.waiters.contains(id) {
        return Ok(Vec::new());
    }
    let (group, id, actor) = (group.clone(), id.clone(), actor.to_owned());
    Ok(vec![Fact::LockReleased { group, id, actor }])
}

/// Hosts of ours take no slot here when another server's count, so one given to somebody else would be counted by nobody.
pub(super) fn of_ours(state: &State) -> Result<(), Denied> {
    match state.settings.provider {
        LockProvider::Embedded => Ok(()),
        LockProvider::External => Err(Denied::OtherLockServer),
    }
}
