//! Slots of the embedded semaphores, asked for by FleetLock clients from outside and by operators.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{ApplicationName, GroupName, HostName};

use super::Decision;
use super::request::Decided;
use crate::client_id::ClientId;
use crate::config::{LockProvider, Reclaim};
use crate::fact::{Fact, ReleaseCause};
use crate::input::{Accepted, Refusal};
use crate::semaphore::{Denied, DeniedKind, Semaphore};
use crate::state::State;
use crate::view::View;

/// A slot of the semaphore that our own hosts take theirs from. A client that holds one already is granted it again,
/// also where it holds it as a host of ours: to FleetLock the same id is the same holder. One that is refused is
/// remembered for a while.
pub(super) fn lock(
    state: &State,
    group: &GroupName,
    id: &ClientId,
    actor: Option<&String>,
    now: DateTime<Utc>,
) -> Decision {
    let asked = of_ours(state).and_then(|()| state.semaphores.known(group));
    let admitted = asked.and_then(|semaphore| {
        state.semaphores.admits(group, id.as_str())?;
        Ok(semaphore.is_held_by_client(id))
    });
    let named = || (group.clone(), id.clone(), actor.cloned());
    let (facts, answer) = match admitted {
        Ok(true) => (Vec::new(), Ok(Accepted::Done)),
        Ok(false) => {
            let (group, id, actor) = named();
            (vec![Fact::LockGranted { group, id, actor }], Ok(Accepted::Done))
        }
        Err(denied) => {
            let waits = denied.kind == DeniedKind::FailedLockSemaphoreFull
                && asked_anew(state.semaphores.get(group), id, now);
            let (group, id, actor) = named();
            let facts = waits.then_some(Fact::LockAwaited { group, id, actor }).into_iter().collect();
            (facts, Err(denied.into()))
        }
    };
    Decision { facts, answer: Some(answer) }
}

fn asked_anew(semaphore: Option<&Semaphore>, id: &ClientId, now: DateTime<Utc>) -> bool {
    semaphore.is_some_and(|semaphore| semaphore.waiters.is_news(id, now))
}

/// The client's slot back. A slot that a host of that name holds for a run is not the client's to give: a FleetLock
/// agent asks for this each time it starts, also after the reboot in the middle of an upgrade. It is told that it
/// holds nothing, which is true of itself, because such an agent does nothing else until it is told so.
pub(super) fn unlock(state: &State, group: &GroupName, id: &ClientId, actor: Option<&String>) -> Decided {
    let semaphore = state.semaphores.known(group)?;
    if !semaphore.is_held_by_client(id) && !semaphore.waiters.contains(id) {
        return Ok((Vec::new(), Accepted::Done));
    }
    let (group, id, actor) = (group.clone(), id.clone(), actor.cloned());
    Ok((vec![Fact::LockReleased { group, id, actor }], Accepted::Done))
}

/// A slot that is held because an operator says so.
pub(super) fn hold(state: &State, group: &GroupName, id: &ClientId, actor: &str, reason: &str) -> Decided {
    of_ours(state)?;
    state.semaphores.admits(group, id.as_str())?;
    let holder = state.semaphores.known(group)?.holders.get(id.as_str());
    match holder.and_then(|holder| holder.hold.as_ref()) {
        Some(hold) if hold.actor != actor => {
            let (actor, reason) = (hold.actor.clone(), hold.reason.clone());
            return Err(Refusal::HeldAlready { id: id.clone(), actor, reason });
        }
        Some(hold) if hold.reason == reason => return Ok((Vec::new(), Accepted::Done)),
        Some(_) | None => {}
    }
    let (group, id) = (group.clone(), id.clone());
    let (actor, reason) = (actor.to_owned(), reason.to_owned());
    Ok((vec![Fact::HoldPlaced { group, id, actor, reason }], Accepted::Done))
}

/// Takes a slot back, also one that a lock server has granted to a host of ours; one that waits does so no more. Not from a host that is at work, or
/// that may be told to begin: whoever waits for the slot would be at work beside it.
pub(super) fn release(state: &State, group: &GroupName, id: &ClientId, actor: &str, reason: &str) -> Decided {
    let host = HostName::new(id.as_str()).ok();
    let slot = host.as_ref().and_then(|host| Some((host, state.slots.get(host)?)));
    let slot = slot.filter(|(_, slot)| slot.group == *group);
    let holder = match state.semaphores.known(group) {
        Ok(semaphore) => semaphore.holders.get(id.as_str()),
        // Another lock server's groups are not known here.
        Err(_) if slot.is_some() => None,
        Err(denied) => return Err(denied.into()),
    };
    let waits = state.semaphores.get(group).is_some_and(|semaphore| semaphore.waiters.contains(id));
    if holder.is_none() && slot.is_none() && !waits {
        return Err(Refusal::NoHolder { group: group.clone(), id: id.clone() });
    }
    let mut facts = Vec::new();
    if let Some((host, slot)) = slot {
        let in_run = state.run.as_ref().and_then(|run| Some((run, run.host(host)?)));
        if let Some((run, in_run)) = in_run.filter(|(_, in_run)| in_run.status.is_under_way()) {
            let (id, run) = (id.clone(), run.id.clone());
            return Err(Refusal::HolderAtWork { id, status: in_run.status, run });
        }
        // A command may still appear, or stands in the stream and is being withdrawn: a worker may be told to begin.
        let may_be_told = state.withdrawals.values().any(|told| told == host);
        if may_be_told || slot.may_see_late_command(state.fence.as_ref()) {
            return Err(Refusal::HolderUncertain { id: id.clone() });
        }
        facts.extend(state.release_slot(host, ReleaseCause::Operator));
    }
    let (group, id) = (group.clone(), id.clone());
    facts.push(Fact::HolderReleased { group, id, actor: actor.to_owned(), reason: reason.to_owned() });
    Ok((facts, Accepted::Done))
}

/// Takes back the slot of one that has left the inventory. That it is silent is no reason: it may be at work.
pub(super) fn reclaim(state: &State, view: &View, group: &GroupName, id: &ClientId, actor: &str) -> Decided {
    match state.settings.reclaim {
        Reclaim::Never => return Err(Refusal::ReclaimsNothing),
        Reclaim::Inventory => {}
    }
    let host = HostName::new(id.as_str()).ok();
    if let Some(seen) = host.as_ref().and_then(|host| view.hosts.get(host)) {
        let applications: Vec<&str> = seen.applications.iter().map(ApplicationName::as_str).collect();
        return Err(Refusal::InInventory { id: id.clone(), applications: applications.join(", ") });
    }
    // Of clients that were never in it the inventory says nothing; and what an operator wants held, stays.
    let holder = state.semaphores.get(group).and_then(|semaphore| semaphore.holders.get(id.as_str()));
    let is_wanted = holder.is_some_and(|holder| holder.hold.is_some());
    if is_wanted || !host.is_some_and(|host| view.left.contains(&host)) {
        return Err(Refusal::NotLeft { id: id.clone() });
    }
    release(state, group, id, actor, "it has left the inventory")
}

/// Hosts of ours take no slot here when another server's count, so one given to somebody else would be counted by nobody.
fn of_ours(state: &State) -> Result<(), Denied> {
    match state.settings.provider {
        LockProvider::Embedded => Ok(()),
        LockProvider::External => {
            let value = "the slots of this site are another lock server's: ask that one".to_owned();
            Err(Denied { kind: DeniedKind::OtherLockServer, value })
        }
    }
}
