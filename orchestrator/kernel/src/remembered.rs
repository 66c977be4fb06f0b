//! What is remembered of each host beyond the history of runs, which is pruned.

use imbl::OrdMap;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

/// The most hosts of which something is remembered.
pub(crate) const HOSTS_MAX: usize = 100_000;

/// A value for each host, such as a time, of at most 100 000 hosts: beyond that, the oldest is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Remembered<T: Clone>(OrdMap<HostName, T>);

impl<T: Clone> Default for Remembered<T> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<T: Clone> Remembered<T> {
    /// The value of `host`, if it has one.
    pub fn of(&self, host: &HostName) -> Option<&T> {
        self.0.get(host)
    }

    /// Whether no host has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the value of `host`; `age` is less for older values.
    pub(crate) fn record<A: Ord>(&mut self, host: &HostName, value: T, age: impl Fn(&T) -> A) {
        if self.0.len() >= HOSTS_MAX
            && !self.0.contains_key(host)
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, value)| age(value)).map(|(host, _)| host.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(host.clone(), value);
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
        let mut remembered = Remembered::default();
        for number in 0..HOSTS_MAX {
            remembered.record(&host(number), number, |number| *number);
        }
        remembered.record(&host(0), HOSTS_MAX, |number| *number);
        assert_eq!(remembered.of(&host(1)), Some(&1), "a host that is known takes no further room");
        remembered.record(&host(HOSTS_MAX), HOSTS_MAX + 1, |number| *number);
        assert_eq!(remembered.of(&host(1)), None);
        assert_eq!(remembered.of(&host(0)), Some(&HOSTS_MAX));
        assert_eq!(remembered.0.len(), HOSTS_MAX);
        remembered.remove(&host(0));
        assert_eq!(remembered.of(&host(0)), None);
    }
}
