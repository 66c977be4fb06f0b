//! What operators ask about slots of the embedded semaphores: to hold one, and to take one back.

use os_upgrade_protocol::{ApplicationName, GroupName, HostName, RunId};
use serde::{Deserialize, Serialize};

use super::granted::Granted;
use super::lock_clients::of_ours;
use crate::client_id::ClientId;
use crate::config::Reclaim;
use crate::fact::Fact;
use crate::run::HostStatus;
use crate::semaphore::Denied;
use crate::slot::ReleaseCause;
use crate::state::State;
use crate::view::View;

/// What may be asked about slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SlotOperation {
    /// A slot that is to be held in the name of `id`, until it is released.
    Hold {
        /// The group.
        group: GroupName,
        /// In whose name.
        id: ClientId,
        /// Why, as the operator says.
        reason: String,
    },
    /// Takes a slot back, whoever holds it and for whatever, unless its host is at work. Who waits for one is forgotten.
    Release {
        /// The group.
        group: GroupName,
        /// Who holds it.
        id: ClientId,
        /// Why, as the operator says.
        reason: String,
    },
    /// The same for one that has left the inventory, where the settings let that be reason enough.
    Reclaim {
        /// The group.
        group: GroupName,
        /// Who holds it.
        id: ClientId,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SlotRefusal {
    /// Nobody of that name holds a slot there.
    #[error("{id} neither holds a slot of group {group} nor waits for one")]
    NoHolder {
        /// The group.
        group: GroupName,
        /// The name.
        id: ClientId,
    },
    /// The slot's host is being upgraded.
    #[error(
        "{id} is {status} in run {run}: its slot can be released when it has come to its end, or the run has"
    )]
    HolderAtWork {
        /// The host.
        id: ClientId,
        /// What it is at.
        status: HostStatus,
        /// The run.
        run: RunId,
    },
    /// A command of the slot's host may still appear.
    #[error("whether {id} has been sent a command is being looked up; try again in a moment")]
    HolderUncertain {
        /// The host.
        id: ClientId,
    },
    /// The settings do not let slots be taken back because their holders have left.
    #[error(
        "slots are not taken back from who has left the inventory: set [fleet-lock] reclaim = \"inventory\", or release it with a reason"
    )]
    ReclaimsNothing,
    /// An operator holds it already.
    #[error("{id} is held by {actor}: {reason}; release it first")]
    HeldAlready {
        /// In whose name.
        id: ClientId,
        /// Who holds it.
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// The holder was never in the inventory, as far as is known, or is held by an operator.
    #[error(
        "{id} has not left the inventory, as it was never in it, or an operator holds its slot: release it with a reason"
    )]
    NotLeft {
        /// The holder.
        id: ClientId,
    },
    /// The holder has not left.
    #[error("{id} is in the inventory: its workers have announced themselves on {applications}")]
    InInventory {
        /// The holder.
        id: ClientId,
        /// What its workers announced, joined by commas.
        applications: String,
    },
    /// The semaphore grants no slot, as it would grant a FleetLock client none.
    #[error("{denied}")]
    LockDenied {
        /// Why.
        denied: Denied,
    },
}

impl From<Denied> for SlotRefusal {
    fn from(denied: Denied) -> Self {
        Self::LockDenied { denied }
    }
}

pub(super) fn decide(
    state: &State,
    view: &View,
    asked: &SlotOperation,
    actor: &str,
) -> Result<Granted, SlotRefusal> {
    let facts = match asked {
        SlotOperation::Hold { group, id, reason } => hold(state, group, id, actor, reason),
        SlotOperation::Release { group, id, reason } => release(state, group, id, actor, Some(reason)),
        SlotOperation::Reclaim { group, id } => reclaim(state, view, group, id, actor),
    };
    facts.map(Granted::done)
}

/// A slot that is held because an operator says so.
fn hold(
    state: &State,
    group: &GroupName,
    id: &ClientId,
    actor: &str,
    reason: &str,
) -> Result<Vec<Fact>, SlotRefusal> {
    of_ours(state)?;
    state.semaphores.admits(group, id.as_str())?;
    let holder = state.semaphores.known(group)?.holders.get(id.as_str());
    match holder.and_then(|holder| holder.hold.as_ref()) {
        Some(hold) if hold.actor != actor => {
            let (actor, reason) = (hold.actor.clone(), hold.reason.clone());
            return Err(SlotRefusal::HeldAlready { id: id.clone(), actor, reason });
        }
        Some(hold) if hold.reason == reason => return Ok(Vec::new()),
        Some(_) | None => {}
    }
    let (group, id) = (group.clone(), id.clone());
    let (actor, reason) = (actor.to_owned(), reason.to_owned());
    Ok(vec![Fact::HoldPlaced { group, id, actor, reason }])
}

/// Takes a slot back, also one that a lock server has granted to a host of ours; one that waits does so no more. Not
/// from a host that is at work, or that may be told to begin: whoever waits for the slot would be at work beside it.
fn release(
    state: &State,
    group: &GroupName,
    id: &ClientId,
    actor: &str,
    reason: Option<&str>,
) -> Result<Vec<Fact>, SlotRefusal> {
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
        return Err(SlotRefusal::NoHolder { group: group.clone(), id: id.clone() });
    }
    let mut facts = Vec::new();
    if let Some((host, slot)) = slot {
        let in_run = state.run.as_ref().and_then(|run| Some((run, run.host(host)?)));
        if let Some((run, in_run)) = in_run.filter(|(_, in_run)| in_run.status.is_under_way()) {
            let (id, run) = (id.clone(), run.id.clone());
            return Err(SlotRefusal::HolderAtWork { id, status: in_run.status, run });
        }
        // A command may still appear, or stands in the stream and is being retracted: a worker may be told to begin.
        let may_be_told = state.retractions.values().any(|told| told == host);
        if may_be_told || slot.may_see_late_command(state.fence.as_ref()) {
            return Err(SlotRefusal::HolderUncertain { id: id.clone() });
        }
        facts.extend(state.release_slot(host, ReleaseCause::Operator));
    }
    let (group, id) = (group.clone(), id.clone());
    facts.push(Fact::HolderReleased {
        group,
        id,
        actor: actor.to_owned(),
        reason: reason.map(str::to_owned),
    });
    Ok(facts)
}

/// Takes back the slot of one that has left the inventory. That it is silent is no reason: it may be at work.
fn reclaim(
    state: &State,
    view: &View,
    group: &GroupName,
    id: &ClientId,
    actor: &str,
) -> Result<Vec<Fact>, SlotRefusal> {
    match state.settings.reclaim {
        Reclaim::Never => return Err(SlotRefusal::ReclaimsNothing),
        Reclaim::Inventory => {}
    }
    let host = HostName::new(id.as_str()).ok();
    if let Some(seen) = host.as_ref().and_then(|host| view.hosts.get(host)) {
        let applications: Vec<&str> = seen.applications.iter().map(ApplicationName::as_str).collect();
        return Err(SlotRefusal::InInventory { id: id.clone(), applications: applications.join(", ") });
    }
    // Of clients that were never in it the inventory says nothing; and what an operator wants held, stays.
    let holder = state.semaphores.get(group).and_then(|semaphore| semaphore.holders.get(id.as_str()));
    let is_wanted = holder.is_some_and(|holder| holder.hold.is_some());
    if is_wanted || !host.is_some_and(|host| view.left.contains(&host)) {
        return Err(SlotRefusal::NotLeft { id: id.clone() });
    }
    release(state, group, id, actor, None)
}
