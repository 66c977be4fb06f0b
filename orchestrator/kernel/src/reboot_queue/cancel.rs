//! Cancels entries of the reboot queue.

use os_upgrade_protocol::HostName;

use super::entry::{Entry, EntryEvent, EntryStatus};
use crate::fact::Fact;
use crate::state::State;

/// Who queues hosts that need a reboot.
pub(crate) const QUEUED_BY_ITSELF: &str = "[reboot] queue-required";

pub(crate) fn cancel(index: u64, entry: &Entry, actor: &str, reason: Option<&str>) -> Option<Fact> {
    let is_new = entry.status != EntryStatus::Cancelled && !entry.cancel_requested;
    is_new.then(|| {
        let (actor, reason) = (actor.to_owned(), reason.map(ToOwned::to_owned));
        Fact::of_entry(index, &entry.host, EntryEvent::Cancelled { actor, reason })
    })
}

/// Cancels the entries of a host that no longer takes part, unless they have begun.
pub(crate) fn cancel_queued(state: &State, host: &HostName, actor: &str, reason: &str) -> Vec<Fact> {
    let is_queued = |entry: &Entry| entry.host == *host && entry.status == EntryStatus::Queued;
    let queued = state.reboot_queue.entries.iter().filter(|(_, entry)| is_queued(entry));
    queued.filter_map(|(index, entry)| cancel(*index, entry, actor, Some(reason))).collect()
}
