//! Operators' control of slots of the embedded semaphores: hold one, or release one.

use os_upgrade_protocol::{ApplicationName, GroupName, HostName, RunId};
use serde::{Deserialize, Serialize};

use super::client_id::ClientId;
use super::lock_clients::check_embedded;
use super::semaphore::Denied;
use super::state::ReleaseCause;
use crate::answer::{Granted, RefusalClass};
use crate::config::Reclaim;
use crate::fact::{Fact, LockFact};
use crate::run::HostStatus;
use crate::state::State;
use crate::view::View;

/// An operation on slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SlotOperation {
    /// Hold a slot under `id` until it is released.
    Hold {
        group: GroupName,
        /// The id under which the slot is held.
        id: ClientId,
        /// Why, as the operator says.
        reason: String,
    },
    /// Release a slot, whoever holds it for whatever reason, unless its host is at work. A waiter is forgotten.
    Release {
        group: GroupName,
        /// The holder or waiter.
        id: ClientId,
        /// Why, as the operator says.
        reason: String,
    },
    /// Release the slot of a holder that has left the inventory, if the settings allow this without a reason.
    Reclaim {
        group: GroupName,
        /// The holder.
        id: ClientId,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SlotRefusal {
    /// No such id holds a slot of the group or waits for one.
    NoHolder { group: GroupName, id: ClientId },
    /// The slot's host is being upgraded.
    HolderAtWork {
        /// The host.
        id: ClientId,
        /// Its status in the run.
        status: HostStatus,
        run: RunId,
    },
    /// The reboot queue is at work on the slot's host.
    HolderRebooting {
        /// The host.
        id: ClientId,
        index: u64,
    },
    /// A command of the slot's host may still appear.
    HolderUncertain {
        /// The host.
        id: ClientId,
    },
    /// The settings do not allow slots to be released because their holders have left.
    ReclaimsNothing,
    /// Another operator holds it already.
    HeldAlready {
        /// The id under which the slot is held.
        id: ClientId,
        /// The operator who holds it.
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// The holder is not known to have been in the inventory, or an operator holds the slot.
    NotLeft {
        /// The holder.
        id: ClientId,
    },
    /// The holder is in the inventory.
    InInventory {
        /// The holder.
        id: ClientId,
        /// The applications that its workers announced, joined by commas.
        applications: String,
    },
    /// The semaphore grants no slot, for the same reasons as to a FleetLock client.
    LockDenied {
        /// What keeps the slot from being granted.
        denied: Denied,
    },
}

impl SlotRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::NoHolder { .. } | Self::LockDenied { denied: Denied::UnknownGroup { .. } } => {
                RefusalClass::Missing
            }
            Self::LockDenied { .. }
            | Self::HolderAtWork { .. }
            | Self::HolderRebooting { .. }
            | Self::HolderUncertain { .. }
            | Self::ReclaimsNothing
            | Self::InInventory { .. }
            | Self::NotLeft { .. }
            | Self::HeldAlready { .. } => RefusalClass::Conflict,
        }
    }
}

impl From<Denied> for SlotRefusal {
    fn from(denied: Denied) -> Self {
        Self::LockDenied { denied }
    }
}

pub(crate) fn decide(
    state: &State,
    view: &View,
    operation: &SlotOperation,
    actor: &str,
) -> Result<Granted, SlotRefusal> {
    let facts = match operation {
        SlotOperation::Hold { group, id, reason } => hold(state, group, id, actor, reason),
        SlotOperation::Release { group, id, reason } => release(state, group, id, actor, Some(reason)),
        SlotOperation::Reclaim { group, id } => reclaim(state, view, group, id, actor),
    };
    facts.map(Granted::done)
}

/// Holds a slot for an operator.
fn hold(
    state: &State,
    group: &GroupName,
    id: &ClientId,
    actor: &str,
    reason: &str,
) -> Result<Vec<Fact>, SlotRefusal> {
    check_embedded(state)?;
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
    Ok(vec![Fact::Lock(LockFact::HoldPlaced { group, id, actor, reason })])
}

/// Releases a slot, also one that a lock server granted to a host of a run; a waiter is forgotten. Refused if the host is
/// at work or may still begin: the next holder would be at work at the same time.
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
        // The groups of an external lock server are not known here.
        Err(_) if slot.is_some() => None,
        Err(denied) => return Err(denied.into()),
    };
    let waits = state.semaphores.get(group).is_some_and(|semaphore| semaphore.waiters.contains(id));
    if holder.is_none() && slot.is_none() && !waits {
        return Err(SlotRefusal::NoHolder { group: group.clone(), id: id.clone() });
    }
    let mut facts = Vec::new();
    if let Some((host, _)) = slot {
        let in_run = state.run.as_ref().and_then(|run| Some((run, run.host(host)?)));
        if let Some((run, in_run)) = in_run.filter(|(_, in_run)| in_run.status.is_under_way()) {
            let (id, run) = (id.clone(), run.id.clone());
            return Err(SlotRefusal::HolderAtWork { id, status: in_run.status, run });
        }
        if let Some((index, _)) = state.entry_under_way(host) {
            return Err(SlotRefusal::HolderRebooting { id: id.clone(), index });
        }
        // A command may still appear, or is being retracted: its worker may still begin.
        if state.may_begin_late(host) {
            return Err(SlotRefusal::HolderUncertain { id: id.clone() });
        }
        facts.extend(state.release_slot(host, ReleaseCause::Operator));
    }
    let (group, id) = (group.clone(), id.clone());
    facts.push(Fact::Lock(LockFact::HolderReleased {
        group,
        id,
        actor: actor.to_owned(),
        reason: reason.map(str::to_owned),
    }));
    Ok(facts)
}

/// Releases the slot of a holder that has left the inventory. An unreachable host keeps its slot: it may be at work.
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
    // Clients that were never in the inventory cannot leave it, and an operator's hold stays.
    let holder = state.semaphores.get(group).and_then(|semaphore| semaphore.holders.get(id.as_str()));
    let has_hold = holder.is_some_and(|holder| holder.hold.is_some());
    if has_hold || !host.is_some_and(|host| view.left.contains(&host)) {
        return Err(SlotRefusal::NotLeft { id: id.clone() });
    }
    release(state, group, id, actor, None)
}
