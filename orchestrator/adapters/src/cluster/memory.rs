//! What is known of the pods of nodes from one round of a drain to the next: which were tried, and since when they stay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os_upgrade_protocol::HostName;
use tokio::sync::Mutex as AsyncMutex;

use crate::kubernetes::drain::Progress;

/// The most hosts that are remembered. More are not drained at once.
const HOSTS_MAX: usize = 1024;

/// What is known of pods, by host. It may be lost, which costs some requests.
#[derive(Debug, Default)]
pub(super) struct Memory {
    hosts: Mutex<BTreeMap<HostName, Arc<AsyncMutex<Progress>>>>,
}

impl Memory {
    fn hosts(&self) -> MutexGuard<'_, BTreeMap<HostName, Arc<AsyncMutex<Progress>>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the pods of a host's node. It stays known if the round is cut off.
    pub(super) fn of(&self, host: &HostName) -> Arc<AsyncMutex<Progress>> {
        let mut hosts = self.hosts();
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(host) {
            hosts.pop_first();
        }
        Arc::clone(hosts.entry(host.clone()).or_default())
    }

    /// Forgets a host: its drain is over, or begins anew.
    pub(super) fn forget(&self, host: &HostName) {
        self.hosts().remove(host);
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
            memory.of(&host(index));
        }
        assert_eq!(memory.hosts().len(), HOSTS_MAX);
        let last = host(2 * HOSTS_MAX - 1);
        assert!(Arc::ptr_eq(&memory.of(&last), &memory.of(&last)));
        memory.forget(&last);
        assert_eq!(memory.hosts().len(), HOSTS_MAX - 1);
    }
}
