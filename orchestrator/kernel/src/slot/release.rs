//! When the slot of a host is given back: because the host is back, has failed, or does not need it.

use os_upgrade_protocol::HostName;

use super::state::{ReleaseCause, Slot, SlotState};
use crate::config::{LockProvider, OnFailure};
use crate::fact::{Fact, SlotFact};
use crate::node::{NodeStage, uncordon_due};
use crate::owner::Owner;
use crate::run::{HostStatus, Run};
use crate::state::State;
use crate::step::{StepEvent, of_step};

impl State {
    /// The facts that `host` is back, which was under way for `owner`: its slot is released for `why`, once its node, if it has one, is
    /// uncordoned. `checked`: the operator's command says so.
    pub(crate) fn host_is_back(
        &self,
        owner: &Owner,
        host: &HostName,
        checked: bool,
        why: ReleaseCause,
    ) -> Vec<Fact> {
        let is_cordoned = self.nodes.contains_key(host);
        let event = if is_cordoned { StepEvent::Returned { checked } } else { StepEvent::Done };
        [of_step(owner, host, event)].into_iter().chain(self.release_slot(host, why)).collect()
    }

    /// The fact that releases the slot of `host`, if it has one: once its node is uncordoned, if that is cordoned and does not stay
    /// so. An embedded slot is released at once, an external one when its server confirms.
    pub(crate) fn release_slot(&self, host: &HostName, why: ReleaseCause) -> Option<Fact> {
        let slot = self.slots.get(host)?;
        // One that is only requested has not begun a drain: a cordon there is an earlier one.
        let is_for_slot = slot.state == SlotState::Held && !self.settings.keeps_cordon(why);
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
