//! What others ask of the reboot queue: which entry is under way on a host, and which have a slot.

use chrono::TimeDelta;
use os_upgrade_protocol::HostName;

use super::attempt::Attempt;
use super::entry::{Entry, EntryStatus};
use crate::config::{LockProvider, Rollout};
use crate::slot::{Slot, SlotState};
use crate::state::State;
use crate::view::View;

impl State {
    /// Whether the nodes of the cluster are not known, though there is one.
    pub(crate) fn is_cluster_unseen(&self, view: &View) -> bool {
        self.settings.kubernetes.is_some() && view.nodes.is_none()
    }

    /// How long after the outcome of an attempt got lost it is repeated: once the command has ended by itself for sure, and a host
    /// that reboots would be back. Absent without a command.
    pub(crate) fn repeats_attempt_after(&self) -> Option<TimeDelta> {
        let within = self.settings.reboot.command?.within;
        let boot_timeout = self
            .config
            .as_ref()
            .map_or_else(|| Rollout::default().boot_timeout, |config| config.rollout.boot_timeout);
        Some(within.to_delta() + boot_timeout.to_delta())
    }

    /// The entry of the reboot queue for which the slot of `host` is held or requested, with its index.
    pub fn entry_of_slot(&self, host: &HostName) -> Option<(u64, &Entry)> {
        let slot = self.slots.get(host)?;
        self.reboot_queue.of_owner(&slot.owner).filter(|(_, entry)| entry.host == *host)
    }

    /// The entries whose hosts the operator's command reboots. After a restoration a slot may be held for something else than its
    /// entry: nothing is done for such an entry.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = (u64, &Entry, &Attempt)> {
        let under_way = self.reboot_queue.under_way();
        let attempts = under_way.filter_map(|(index, entry)| Some((index, entry, entry.attempt.as_ref()?)));
        attempts.filter(|(index, entry, _)| self.owns_slot(*index, &entry.host))
    }

    /// Whether the slot of `host` is held for the entry at `index`.
    pub(crate) fn owns_slot(&self, index: u64, host: &HostName) -> bool {
        self.entry_of_slot(host).is_some_and(|(of_slot, _)| of_slot == index)
    }

    /// The entry that is under way on `host`: it is drained or reboots.
    pub fn entry_under_way(&self, host: &HostName) -> Option<(u64, &Entry)> {
        self.entry_of_slot(host).filter(|(_, entry)| entry.status.is_under_way())
    }

    /// Whether `host` reboots for an entry, and has not answered yet.
    pub fn has_unanswered_reboot(&self, host: &HostName) -> bool {
        self.entry_under_way(host).is_some_and(|(_, entry)| !entry.has_failed() && !entry.has_booted())
    }

    /// The entries that wait for the answer of the lock server, and nothing else.
    pub(crate) fn requesting_entries(&self) -> impl Iterator<Item = (u64, &Entry, &Slot)> {
        let requested = self.slots.iter().filter(|(_, slot)| {
            slot.state == SlotState::Requested && slot.provider == LockProvider::External
        });
        requested.filter_map(|(host, slot)| {
            let (index, entry) = self.entry_of_slot(host)?;
            (entry.status == EntryStatus::Queued).then_some((index, entry, slot))
        })
    }
}
