//! The hosts of a run by status: an index beside the hosts, so that no decision has to scan all of them.

use std::collections::BTreeMap;

use imbl::{OrdMap, OrdSet};
use os_upgrade_protocol::{GroupName, HostName};

use super::host::{CountedAs, HostStatus, RunHost};
use super::place::Place;

/// Sets and counts of hosts; always equal to [`Index::of`] the hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Index {
    pub(super) unsent: OrdSet<HostName>,
    pub(super) under_way: OrdSet<HostName>,
    pub(super) overdue: OrdSet<HostName>,
    pub(super) ready: OrdMap<GroupName, OrdSet<Place>>,
    pub(super) waiting: OrdSet<HostName>,
    pub(super) unprepared: OrdSet<HostName>,
    /// Hosts whose turn to be prepared has not come, by group, in the order of turns.
    pub(super) untold: OrdMap<GroupName, OrdSet<Place>>,
    /// How many hosts were told to prepare, or are about to be, and have not answered, by group.
    pub(super) told: OrdMap<GroupName, usize>,
    /// Hosts that have not answered `prepare` and whose heartbeat was awaited when the run started.
    pub(super) unheard: OrdSet<HostName>,
    counts: [usize; HostStatus::ALL.len()],
    counted: OrdMap<CountedAs, usize>,
}

impl Index {
    pub(super) fn of(hosts: &OrdMap<HostName, RunHost>) -> Self {
        let mut index = Self::default();
        for (name, host) in hosts {
            index.insert(name, host);
        }
        index
    }

    pub(super) fn count(&self, status: HostStatus) -> usize {
        self.counts[status as usize]
    }

    pub(super) fn counted(&self) -> BTreeMap<CountedAs, usize> {
        self.counted.iter().map(|(counted, count)| (*counted, *count)).collect()
    }

    pub(super) fn insert(&mut self, name: &HostName, host: &RunHost) {
        self.counts[host.status as usize] += 1;
        *self.counted.entry(host.counted_as()).or_default() += 1;
        if host.is_unsent() {
            self.unsent.insert(name.clone());
        }
        match host.status {
            HostStatus::Pending | HostStatus::Preparing => {
                self.unprepared.insert(name.clone());
                if host.is_untold() {
                    insert(&mut self.untold, name, host);
                } else {
                    *self.told.entry(host.group.clone()).or_default() += 1;
                }
                if host.unheard {
                    self.unheard.insert(name.clone());
                }
            }
            HostStatus::Prepared => insert(&mut self.ready, name, host),
            HostStatus::Waiting => {
                insert(&mut self.ready, name, host);
                self.waiting.insert(name.clone());
            }
            HostStatus::Draining | HostStatus::Upgrading | HostStatus::Rebooting | HostStatus::Recovering => {
                self.under_way.insert(name.clone());
                if host.overdue_since.is_some() {
                    self.overdue.insert(name.clone());
                }
            }
            HostStatus::Upgraded
            | HostStatus::Failed
            | HostStatus::TimedOut
            | HostStatus::Skipped
            | HostStatus::Cancelled
            | HostStatus::NotReached => {}
        }
    }

    pub(super) fn remove(&mut self, name: &HostName, host: &RunHost) {
        self.counts[host.status as usize] -= 1;
        decrease(&mut self.counted, &host.counted_as());
        self.unsent.remove(name);
        self.under_way.remove(name);
        self.overdue.remove(name);
        self.waiting.remove(name);
        self.unheard.remove(name);
        if self.unprepared.remove(name).is_some() && !host.is_untold() {
            decrease(&mut self.told, &host.group);
        }
        remove(&mut self.ready, name, host);
        remove(&mut self.untold, name, host);
    }
}

fn insert(places: &mut OrdMap<GroupName, OrdSet<Place>>, name: &HostName, host: &RunHost) {
    places.entry(host.group.clone()).or_default().insert(host.place(name));
}

fn remove(places: &mut OrdMap<GroupName, OrdSet<Place>>, name: &HostName, host: &RunHost) {
    if let Some(group) = places.get_mut(&host.group) {
        group.remove(&host.place(name));
        if group.is_empty() {
            places.remove(&host.group);
        }
    }
}

/// Takes one off the count of `key`, which goes with its last one.
fn decrease<K: Ord + Clone>(counts: &mut OrdMap<K, usize>, key: &K) {
    debug_assert!(counts.contains_key(key), "what is taken off was counted");
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
