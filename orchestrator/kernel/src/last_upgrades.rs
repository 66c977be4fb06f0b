//! When each host was last upgraded. It outlives the history of runs, which is pruned.

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use crate::enrolment::ENROLLED_MAX;

/// The last upgrade of each host, of at most [`ENROLLED_MAX`] hosts: beyond that, the oldest is forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastUpgrades(OrdMap<HostName, DateTime<Utc>>);

impl LastUpgrades {
    /// When `host` was last upgraded, if it was.
    pub fn of(&self, host: &HostName) -> Option<DateTime<Utc>> {
        self.0.get(host).copied()
    }

    /// Whether no host has been upgraded.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records that `host` was upgraded `at`.
    pub(crate) fn record(&mut self, host: &HostName, at: DateTime<Utc>) {
        if self.0.len() >= ENROLLED_MAX
            && !self.0.contains_key(host)
            && let Some(oldest) = self.0.iter().min_by_key(|(_, at)| **at).map(|(host, _)| host.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(host.clone(), at);
    }

    /// Forgets `host`.
    pub(crate) fn remove(&mut self, host: &HostName) {
        self.0.remove(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_when_there_are_too_many() {
        let host = |number: usize| HostName::new(&format!("h{number}")).unwrap();
        let at = |secs: usize| DateTime::from_timestamp(i64::try_from(secs).unwrap(), 0).unwrap();
        let mut upgrades = LastUpgrades::default();
        for number in 0..ENROLLED_MAX {
            upgrades.record(&host(number), at(number));
        }
        upgrades.record(&host(0), at(ENROLLED_MAX));
        assert_eq!(upgrades.of(&host(1)), Some(at(1)), "a host that is known takes no further room");
        upgrades.record(&host(ENROLLED_MAX), at(ENROLLED_MAX + 1));
        assert_eq!(upgrades.of(&host(1)), None);
        assert_eq!(upgrades.of(&host(0)), Some(at(ENROLLED_MAX)));
        assert_eq!(upgrades.0.len(), ENROLLED_MAX);
        upgrades.remove(&host(0));
        assert_eq!(upgrades.of(&host(0)), None);
    }
}
