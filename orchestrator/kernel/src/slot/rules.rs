//! What others ask of slots: whether a host keeps its slot, or waits for a lock server.

use os_upgrade_protocol::HostName;

use super::state::SlotState;
use crate::config::LockProvider;
use crate::node::{Node, NodeStage};
use crate::run::{HostStatus, Run, RunHost};
use crate::state::State;

impl State {
    /// Whether `host` keeps its slot though nothing is under way there: after a failure, or since it was given up. Only a late `done` of
    /// its worker, the next run or reboot of the host, or an operator goes on with it.
    pub fn keeps_slot(&self, host: &HostName) -> bool {
        let is_released_later =
            |node: &Node| matches!(node.stage, NodeStage::Uncordoning { release: Some(_), .. });
        self.slots.get(host).is_some_and(|slot| slot.state == SlotState::Held)
            && !self.nodes.get(host).is_some_and(is_released_later)
            && !self.is_in_run(host)
            && !self.is_at_work(host)
    }

    /// Whether to request a slot for `host` from the lock server: the host waits for that answer and nothing else.
    pub(crate) fn needs_external_lock(&self, run: &Run, host: &HostName) -> bool {
        let waits = |in_run: &&RunHost| in_run.status == HostStatus::Waiting;
        let slot = self.slots.get(host).filter(|slot| !matches!(slot.state, SlotState::Releasing { .. }));
        match (run.host(host).filter(waits), slot) {
            (Some(in_run), Some(slot)) => {
                slot.provider == LockProvider::External && slot.fits(&in_run.group, self.settings.provider)
            }
            (None, _) | (_, None) => false,
        }
    }
}
