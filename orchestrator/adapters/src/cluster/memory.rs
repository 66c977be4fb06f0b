//! What is known of nodes from one job to the next: which pods were tried, and since when they stay; and whether a cordon may have been
//! ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os_upgrade_protocol::HostName;
use tokio::sync::Mutex as AsyncMutex;

use crate::kubernetes::drain::Progress;
use crate::kubernetes::node::Sent;

/// The most hosts that are remembered. More are not drained at once.
const HOSTS_MAX: usize = 1024;

/// What is known of nodes, by host. It ends with the process: what another leader has marked is not ended without its mark.
#[derive(Debug, Default)]
pub(super) struct Memory {
    drains: ByHost<Arc<AsyncMutex<Progress>>>,
    uncordons: ByHost<Sent>,
}

#[derive(Debug, Default)]
struct ByHost<T>(Mutex<Hosts<T>>);

#[derive(Debug, Default)]
struct Hosts<T> {
    /// What is known, each with the number of the look at it that was the last.
    known: BTreeMap<HostName, (u64, T)>,
    looks: u64,
}

impl<T: Clone + Default> ByHost<T> {
    fn hosts(&self) -> MutexGuard<'_, Hosts<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of `host`. If there are too many, the one that nobody has looked at for longest is forgotten.
    fn of(&self, host: &HostName) -> T {
        let mut hosts = self.hosts();
        hosts.looks += 1;
        let Hosts { known, looks } = &mut *hosts;
        if known.len() >= HOSTS_MAX && !known.contains_key(host) {
            let oldest = known.iter().min_by_key(|(_, (look, _))| *look).map(|(host, _)| host.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        let (look, what) = known.entry(host.clone()).or_default();
        *look = *looks;
        what.clone()
    }

    fn forget(&self, host: &HostName) {
        self.hosts().known.remove(host);
    }
}

impl Memory {
    /// What is known of the pods of a host's node. It stays known if the round is cut off.
    pub(super) fn drain(&self, host: &HostName) -> Arc<AsyncMutex<Progress>> {
        self.drains.of(host)
    }

    /// Whether the end of the cordon of a host's node was sent. It stays known if the job is cut off, or repeated.
    pub(super) fn uncordon(&self, host: &HostName) -> Sent {
        self.uncordons.of(host)
    }

    /// Forgets the pods: the drain is over, or begins anew.
    pub(super) fn forget_drain(&self, host: &HostName) {
        self.drains.forget(host);
    }

    /// Forgets the end of a cordon: the node is cordoned.
    pub(super) fn forget_uncordon(&self, host: &HostName) {
        self.uncordons.forget(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let memory = Memory::default();
        let host = |index: usize| HostName::new(&format!("h{index:05}")).unwrap();
        let known = || (memory.drains.hosts().known.len(), memory.uncordons.hosts().known.len());
        let first = memory.drain(&host(0));
        for index in 1..2 * HOSTS_MAX {
            memory.drain(&host(index));
            memory.uncordon(&host(index));
            // What is in use stays.
            assert!(Arc::ptr_eq(&memory.drain(&host(0)), &first));
        }
        assert_eq!(known(), (HOSTS_MAX, HOSTS_MAX));
        let last = host(2 * HOSTS_MAX - 1);
        assert!(Arc::ptr_eq(&memory.drain(&last), &memory.drain(&last)));
        memory.forget_drain(&last);
        memory.forget_uncordon(&last);
        assert_eq!(known(), (HOSTS_MAX - 1, HOSTS_MAX - 1));
    }
}
