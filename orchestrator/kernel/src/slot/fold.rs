//! What facts about slots change in the state.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, HostName};

use super::fact::{LockFact, SlotFact};
use super::semaphore::Hold;
use super::state::{ReleaseCause, Slot, SlotState};
use crate::config::LockProvider;
use crate::node::Node;
use crate::owner::Owner;
use crate::state::{ApplyError, State};

impl State {
    /// Folds what became true of a host's slot.
    pub(crate) fn apply_slot(&mut self, fact: &SlotFact, at: DateTime<Utc>) -> Result<(), ApplyError> {
        match fact {
            SlotFact::Requested { host, group, owner } => {
                return self.apply_requested(host, group, owner, at);
            }
            SlotFact::ReleaseDue { host, why } => {
                self.apply_late_done(host, *why, at);
                self.slot(host)?.release_due(*why, at);
                self.node_keeps_no_slot(host);
            }
            SlotFact::Refused { host, refusal } | SlotFact::ReleaseRefused { host, refusal } => {
                self.slot(host)?.refusal = Some(refusal.clone());
            }
            SlotFact::InDoubt { host } => self.slot(host)?.doubted(),
            SlotFact::Unlocked { host } => self.slot(host)?.unlocked(at),
            SlotFact::Released { host, why } => return self.apply_released(host, *why, at),
        }
        Ok(())
    }

    /// Folds what became true of a slot that a client or an operator holds.
    pub(crate) fn apply_lock(&mut self, fact: &LockFact, at: DateTime<Utc>) {
        match fact {
            LockFact::Granted { group, id, .. } => self.semaphores.lock_for_client(group, id, at),
            LockFact::Awaited { group, id, .. } => self.semaphores.refused(group, id, at),
            LockFact::Released { group, id, .. } => self.semaphores.unlock_for_client(group, id),
            LockFact::WaitEnded { group, id, .. } => self.semaphores.stop_waiting(group, id),
            LockFact::HoldPlaced { group, id, actor, reason } => {
                let (actor, reason) = (actor.clone(), reason.clone());
                self.semaphores.hold(group, id, Hold { actor, reason, since: at });
            }
            LockFact::HolderReleased { group, id, .. } => self.semaphores.release(group, id),
        }
    }

    /// Records that `host` holds a slot for `owner`.
    pub(crate) fn hold_slot(
        &mut self,
        host: &HostName,
        group: &GroupName,
        provider: LockProvider,
        owner: &Owner,
        at: DateTime<Utc>,
    ) {
        let held = self.slots.get(host).filter(|slot| slot.state == SlotState::Held);
        let slot = Slot {
            group: group.clone(),
            provider,
            state: SlotState::Held,
            since: held.map_or(at, |slot| slot.since),
            held_since: None,
            refusal: None,
            in_doubt: self.slots.get(host).is_some_and(|slot| slot.in_doubt),
            unlocked_at: None,
            owner: owner.clone(),
            // The earlier command counts until the new one appears in the stream.
            command: held.and_then(|slot| slot.command),
            begun: held.is_some_and(|slot| slot.begun),
            failed: false,
            unsent_at_fence: None,
        };
        if provider == LockProvider::Embedded {
            self.semaphores.lock_for_owner(group, host.as_str(), owner, slot.since);
        }
        self.slots.insert(host.clone(), slot);
    }

    /// A host's slot may only be replaced by one of the same provider and group: otherwise nothing would record that the
    /// old one must be released.
    pub(crate) fn check_slot_free(
        &self,
        host: &HostName,
        group: &GroupName,
        provider: LockProvider,
    ) -> Result<(), ApplyError> {
        let differs = |slot: &Slot| {
            slot.provider != provider
                || slot.group != *group
                || matches!(slot.state, SlotState::Releasing { .. })
        };
        if self.slots.get(host).is_some_and(differs) {
            return Err(ApplyError::SlotTaken(host.clone()));
        }
        Ok(())
    }

    fn apply_requested(
        &mut self,
        host: &HostName,
        group: &GroupName,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        // Requesting a held slot again is not journaled.
        if self.slots.contains_key(host) {
            return Err(ApplyError::SlotTaken(host.clone()));
        }
        self.slots.insert(host.clone(), Slot::requested(group, owner, at));
        Ok(())
    }

    fn apply_released(
        &mut self,
        host: &HostName,
        why: ReleaseCause,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        self.apply_late_done(host, why, at);
        let slot = self.slots.remove(host).ok_or_else(|| ApplyError::NoSlot(host.clone()))?;
        if slot.provider == LockProvider::Embedded {
            self.semaphores.unlock_for_owner(&slot.group, host.as_str());
        }
        self.node_keeps_no_slot(host);
        Ok(())
    }

    /// The slot of `host` is held for something else than before: for a drain of its node, or for what needs none. If an earlier
    /// cordon is just being ended, that does not release the slot any more.
    pub(crate) fn slot_is_for(&mut self, host: &HostName, drain: bool, at: DateTime<Utc>) {
        if drain {
            self.nodes.insert(host.clone(), Node::checking(at));
        } else {
            self.node_keeps_no_slot(host);
        }
    }

    /// An operator may release the slot of `host` while its node is still being uncordoned.
    pub(crate) fn node_keeps_no_slot(&mut self, host: &HostName) {
        if let Some(node) = self.nodes.get_mut(host) {
            node.slot_released();
        }
    }

    pub(crate) fn slot(&mut self, host: &HostName) -> Result<&mut Slot, ApplyError> {
        self.slots.get_mut(host).ok_or_else(|| ApplyError::NoSlot(host.clone()))
    }
}
