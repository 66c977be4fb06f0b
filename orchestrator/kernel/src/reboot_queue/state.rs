//! The queue itself: its entries by index.

use chrono::{DateTime, Utc};
use imbl::{OrdMap, OrdSet};
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::entry::{Entry, EntryEvent, EntryStatus, IllegalEntryEvent};
use crate::left_out::is_default;
use crate::owner::Owner;

/// The most entries that the queue holds: some for each host of a large site.
pub const ENTRIES_MAX: usize = 20_000;

/// The entries by index, and whether they may start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RebootQueue {
    /// Whether no entry may start. What is under way is finished all the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// The index of the next entry: an index is never used twice.
    pub next_index: u64,
    /// The entries. A host may have several; only the first may start, and the others follow it.
    pub entries: OrdMap<u64, Entry>,
    /// The hosts that were queued last because they need a reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<Required>,
    /// What operators asked for, by the index of the first entry that came of it, while an entry of it is there.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub requests: OrdMap<u64, Asked>,
}

/// Who queued entries, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Asked {
    pub actor: String,
    /// Why, as the operator says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Hosts that were queued without an operator, because they need a reboot: each once in an occurrence of the maintenance windows. A
/// host that goes on saying so does not reboot again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Required {
    /// When the occurrence began.
    pub window: DateTime<Utc>,
    pub hosts: OrdSet<HostName>,
}

impl RebootQueue {
    /// Whether `more` entries fit.
    pub fn has_room_for(&self, more: usize) -> bool {
        self.entries.len() + more <= ENTRIES_MAX
    }

    /// Appends an entry for each host, in this order, as an operator asked.
    pub fn add(&mut self, hosts: impl IntoIterator<Item = HostName>, asked: Asked, at: DateTime<Utc>) {
        self.requests.insert(self.next_index, asked);
        for host in hosts {
            self.entries.insert(self.next_index, Entry::queued(host, at));
            self.next_index += 1;
        }
    }

    /// Appends an entry for each host because it needs a reboot, in the occurrence that began at `window`.
    pub fn add_required(&mut self, hosts: &[HostName], window: DateTime<Utc>, at: DateTime<Utc>) {
        for host in hosts {
            self.entries.insert(self.next_index, Entry { required: true, ..Entry::queued(host.clone(), at) });
            self.next_index += 1;
        }
        let known = self.required.take().filter(|required| required.window == window);
        let earlier = known.map(|required| required.hosts).unwrap_or_default();
        let hosts = earlier.into_iter().chain(hosts.iter().cloned()).collect();
        self.required = Some(Required { window, hosts });
    }

    /// Whether `host` was queued in the occurrence that began at `window` because it needs a reboot.
    pub fn was_required(&self, host: &HostName, window: DateTime<Utc>) -> bool {
        let known = self.required.as_ref().filter(|required| required.window == window);
        known.is_some_and(|required| required.hosts.contains(host))
    }

    /// Folds `event` into the entry at `index`, and removes an entry that has ended.
    ///
    /// # Errors
    /// There is no such entry, or the event is illegal in its status. The queue is unchanged.
    pub fn apply(&mut self, index: u64, event: &EntryEvent, at: DateTime<Utc>) -> Result<(), QueueError> {
        let entry = self.entries.get(&index).ok_or(QueueError::Unknown(index))?;
        let next = entry.after(event, at).map_err(|source| QueueError::Illegal(index, source))?;
        if *event == EntryEvent::Rebooted {
            self.boot_left(&entry.clone());
        }
        match next {
            Some(next) => self.entries.insert(index, next),
            None => self.entries.remove(&index),
        };
        self.forget_request_of(index);
        Ok(())
    }

    /// Who queued the entry at `index`, and why; `None` if it was queued by itself.
    pub fn asked(&self, index: u64) -> Option<&Asked> {
        self.entries.get(&index).filter(|entry| !entry.required)?;
        self.requests.get_prev(&index).map(|(_, asked)| asked)
    }

    /// Forgets the request of which the entry at `index` came, unless entries of it are there.
    fn forget_request_of(&mut self, index: u64) {
        let Some(first) = self.requests.get_prev(&index).map(|(first, _)| *first) else { return };
        let next =
            first.checked_add(1).and_then(|after| self.requests.get_next(&after)).map(|(next, _)| *next);
        let end = next.unwrap_or(self.next_index);
        let mut left = self.entries.range(first..end).filter(|(_, entry)| !entry.required);
        if left.next().is_none() {
            self.requests.remove(&first);
        }
    }

    /// The host of `entry` has left its boot. Its other entries do not leave that boot once more: until the worker has announced
    /// the new one, they would end without a reboot.
    fn boot_left(&mut self, entry: &Entry) {
        let others: Vec<(u64, Entry)> = self
            .entries
            .iter()
            .filter(|(_, other)| {
                other.host == entry.host && other.command.is_none() && other.attempt.is_none()
            })
            .map(|(index, other)| {
                (
                    *index,
                    Entry {
                        boot_id: entry.boot_id.clone().or_else(|| other.boot_id.clone()),
                        ..other.clone()
                    },
                )
            })
            .collect();
        self.entries.extend(others);
    }

    /// Lets every entry that has backed off start again at once.
    pub fn reset_backoff(&mut self) {
        let reset = self.entries.iter().map(|(index, entry)| (*index, entry.without_backoff()));
        self.entries = reset.collect();
    }

    /// After a restoration from data that may be old: nothing starts until an operator says so, and what was sent is sent again.
    pub(crate) fn restored(&mut self, at: DateTime<Utc>) {
        if self.entries.is_empty() {
            return;
        }
        self.disabled = true;
        let again = self.entries.iter().map(|(index, entry)| (*index, entry.restored(at)));
        self.entries = again.collect();
    }

    /// Whether there is nothing to remember.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// The entry that is this owner, with its index.
    pub fn of_owner(&self, owner: &Owner) -> Option<(u64, &Entry)> {
        let index = owner.entry()?;
        let entry = self.entries.get(&index)?;
        (entry.owner(index) == *owner).then_some((index, entry))
    }

    /// Whether an entry waits for its turn.
    pub fn has_queued(&self) -> bool {
        self.entries.values().any(|entry| entry.status == EntryStatus::Queued)
    }

    /// The entry of `host` that waits for its turn, if there is one.
    pub fn queued(&self, host: &HostName) -> Option<u64> {
        let is_it = |entry: &Entry| entry.host == *host && entry.status == EntryStatus::Queued;
        self.entries.iter().find(|(_, entry)| is_it(entry)).map(|(index, _)| *index)
    }

    /// The entries under way, in order.
    pub fn under_way(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let entries = self.entries.iter().map(|(index, entry)| (*index, entry));
        entries.filter(|(_, entry)| entry.status.is_under_way())
    }
}

/// An event does not apply to the queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The queue has no such entry.
    #[error("the reboot queue has no entry {0}")]
    Unknown(u64),
    /// The event is illegal in the entry's status.
    #[error("entry {0} of the reboot queue")]
    Illegal(u64, #[source] IllegalEntryEvent),
}
