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
struct ByHost<T>(Mutex<BTreeMap<HostName, T>>);

impl<T: Clone + Default> ByHost<T> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<HostName, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, host: &HostName) -> T {
        let mut all = self.all();
        if all.len() >= HOSTS_MAX && !all.contains_key(host) {
            all.pop_first();
        }
        all.entry(host.clone()).or_default().clone()
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
        self.drains.all().remove(host);
    }

    /// Forgets the end of a cordon: the node is cordoned.
    pub(super) fn forget_uncordon(&self, host: &HostName) {
        self.uncordons.all().remove(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let memory = Memory::default();
        let host = |index: usize| HostName::new(&format!("h{index:05}")).unwrap();
        for index in 0..2 * HOSTS_MAX {
            memory.drain(&host(index));
            memory.uncordon(&host(index));
        }
        assert_eq!((memory.drains.all().len(), memory.uncordons.all().len()), (HOSTS_MAX, HOSTS_MAX));
        let last = host(2 * HOSTS_MAX - 1);
        assert!(Arc::ptr_eq(&memory.drain(&last), &memory.drain(&last)));
        memory.forget_drain(&last);
        memory.forget_uncordon(&last);
        assert_eq!((memory.drains.all().len(), memory.uncordons.all().len()), (HOSTS_MAX - 1, HOSTS_MAX - 1));
    }
}
