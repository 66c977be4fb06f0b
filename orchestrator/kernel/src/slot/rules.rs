//! What others ask of slots: whether a host keeps its slot, and what releases it.

use os_upgrade_protocol::{GroupName, HostName};

use super::state::{ReleaseCause, Slot, SlotState};
use crate::config::{LockProvider, OnFailure};
use crate::fact::{Fact, SlotFact};
use crate::node::{Node, NodeStage, uncordon_due};
use crate::owner::Owner;
use crate::reason::Reason;
use crate::run::{HostStatus, Run, RunHost};
use crate::state::State;
use crate::step::{StepEvent, of_step};

impl State {
    /// Whether `host` keeps its slot though nothing is under way there: after a failure, or since it was given up. Only a late `done` of
    /// its worker, the next run or reboot of the host, or an operator goes on with it.
    pub fn keeps_slot(&self, host: &HostName) -> bool {
        let is_released_later =
            |node: &Node| matches!(node.stage, NodeStage::Uncordoning { release: Some(_), .. });
        self.slots.get(host).is_some_and(|slot| slot.state == SlotState::Held)
            && !self.nodes.get(host).is_some_and(is_released_later)
            && !self.is_in_run(host)
            && self.entry_under_way(host).is_none()
    }

    /// The fact that `owner` has got a slot of `group` for `host`, whose node is drained first if it has one.
    pub(crate) fn slot_granted(
        &self,
        owner: &Owner,
        host: &HostName,
        group: &GroupName,
        provider: LockProvider,
    ) -> Fact {
        let (group, drain) = (group.clone(), self.has_node(host));
        of_step(owner, host, StepEvent::Granted { group, provider, drain })
    }

    /// The facts that a slot of `group` is requested from the lock server, for `owner` and `host`.
    pub(crate) fn slot_requested(&self, owner: Owner, host: &HostName, group: &GroupName) -> Vec<Fact> {
        let waiting = StepEvent::Waiting { reason: Reason::AskingForSlot { group: group.clone() } };
        let waiting = of_step(&owner, host, waiting);
        let (host, group) = (host.clone(), group.clone());
        let is_new = !self.slots.contains_key(&host);
        let requested = is_new.then(|| Fact::Slot(SlotFact::Requested { host, group, owner }));
        requested.into_iter().chain([waiting]).collect()
    }

    /// The fact that releases the slot of `host`, if it has one: once its node is uncordoned, if that is cordoned and does not stay
    /// so. An embedded slot is released at once, an external one when its server confirms.
    pub(crate) fn release_slot(&self, host: &HostName, why: ReleaseCause) -> Option<Fact> {
        let slot = self.slots.get(host)?;
        // One that is only requested has not begun a drain: a cordon there is an earlier one.
        let is_for_slot = slot.state == SlotState::Held && !self.keeps_cordon(why);
        let Some(node) = self.nodes.get(host).filter(|_| is_for_slot) else {
            return release(host, slot, why);
        };
        let is_due = matches!(node.stage, NodeStage::Uncordoning { release: Some(_), .. });
        (!is_due).then(|| uncordon_due(host, Some(why), None))
    }

    /// What follows for the slot and the node of a host that failed.
    pub(crate) fn after_failure(&self, host: &HostName) -> Option<Fact> {
        match self.settings.on_failure {
            OnFailure::Release => self.release_slot(host, ReleaseCause::Failed),
            OnFailure::Hold => self.uncordon_failed(host),
        }
    }

    /// Cancels the slot request of `run` for a host that will not be upgraded, or gives back the slot that it holds for its drain. A
    /// slot that the host held before the run stays held: what it is held for has not ended.
    pub(crate) fn cancel_slot_request(&self, run: &Run, host: &HostName) -> Option<Fact> {
        let slot = self.slots.get(host)?;
        let is_draining = run.host(host).is_some_and(|in_run| in_run.status == HostStatus::Draining);
        if is_draining && slot.begun {
            return self.uncordon_failed(host);
        }
        let is_unused = slot.owner.is_run(&run.id) && (slot.state == SlotState::Requested || is_draining);
        is_unused.then(|| self.release_slot(host, ReleaseCause::NotNeeded)).flatten()
    }

    /// Whether to request a slot for `host` from the lock server: the host waits for that answer and nothing else.
    pub(crate) fn needs_external_lock(&self, run: &Run, host: &HostName) -> bool {
        let waits = |in_run: &&RunHost| {
            in_run.status == HostStatus::Waiting && !matches!(in_run.reason, Some(Reason::Clock(_)))
        };
        let slot = self.slots.get(host).filter(|slot| !matches!(slot.state, SlotState::Releasing { .. }));
        match (run.host(host).filter(waits), slot) {
            (Some(in_run), Some(slot)) => {
                // One that is held already is left alone until its host may start.
                let is_bound = slot.state == SlotState::Held
                    && in_run.reason.as_ref().is_some_and(Reason::is_of_other_nodes);
                slot.provider == LockProvider::External
                    && slot.fits(&in_run.group, self.settings.provider)
                    && !is_bound
            }
            (None, _) | (_, None) => false,
        }
    }
}

/// The fact that releases `slot`, whatever its node is.
pub(crate) fn release(host: &HostName, slot: &Slot, why: ReleaseCause) -> Option<Fact> {
    match (slot.provider, slot.state) {
        (LockProvider::Embedded, SlotState::Requested | SlotState::Held | SlotState::Releasing { .. }) => {
            Some(Fact::Slot(SlotFact::Released { host: host.clone(), why }))
        }
        (LockProvider::External, SlotState::Requested | SlotState::Held) => {
            Some(Fact::Slot(SlotFact::ReleaseDue { host: host.clone(), why }))
        }
        (LockProvider::External, SlotState::Releasing { .. }) => None,
    }
}
