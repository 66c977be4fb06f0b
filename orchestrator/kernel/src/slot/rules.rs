//! What others ask of slots: whether a host keeps its slot, or waits for a lock server.

use os_upgrade_protocol::{GroupName, HostName};

use super::semaphore::Uncounted;
use super::state::{Slot, SlotState};
use crate::config::LockProvider;
use crate::node::{Node, NodeStage};
use crate::run::{HostStatus, Run, RunHost};
use crate::state::State;
use crate::view::{Reachability, View};

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

    /// The slots of `group` that do not count against `host` of a run: of the hosts whose worker answered an error, and whose
    /// heartbeats arrive, as many as the settings say. Whether a silent host is at work nobody knows, so that its slot counts. Against
    /// FleetLock clients and entries of the reboot queue each slot counts.
    pub fn uncounted(&self, view: &View, group: &GroupName, host: &HostName) -> Uncounted {
        let limit = self.settings.failed.get(group).copied().unwrap_or(0);
        if limit == 0 {
            return Uncounted::default();
        }
        let is_heard = |host: &HostName| {
            view.hosts.get(host).map(|seen| seen.reachability) == Some(Reachability::Reachable)
        };
        // Its name may be another holder's, too.
        let is_alone = |host: &HostName| {
            let holder =
                self.semaphores.get(group).and_then(|semaphore| semaphore.holders.get(host.as_str()));
            holder.is_some_and(|holder| !holder.client && holder.hold.is_none())
        };
        let is_failed = |name: &HostName, slot: &Slot| {
            let is_held = slot.state == SlotState::Held && slot.fits(group, LockProvider::Embedded);
            is_held && slot.failed && is_heard(name) && is_alone(name)
        };
        let others = self.slots.iter().filter(|(name, slot)| *name != host && is_failed(name, slot));
        Uncounted {
            others: others.take(limit as usize).count(),
            own: self.slots.get(host).is_some_and(|slot| is_failed(host, slot)),
        }
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
