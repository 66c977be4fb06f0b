//! Which ignored replies are journaled: the first of a host and minute. A host can send any number, and the journal is kept.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

/// The most hosts of a minute of which an ignored reply is journaled.
const HOSTS_MAX: usize = 1_000;

/// The hosts of which an ignored reply was journaled within the present minute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IgnoredReplies {
    /// Minutes since 1970.
    minute: i64,
    hosts: OrdSet<HostName>,
}

impl IgnoredReplies {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Whether an ignored reply of `host` is journaled now.
    pub(crate) fn is_due(&self, host: &HostName, now: DateTime<Utc>) -> bool {
        self.minute != minute(now) || (!self.hosts.contains(host) && self.hosts.len() < HOSTS_MAX)
    }

    /// Records that an ignored reply of `host` was journaled.
    pub(crate) fn record(&mut self, host: &HostName, at: DateTime<Utc>) {
        let minute = minute(at);
        if self.minute != minute {
            *self = Self { minute, hosts: OrdSet::new() };
        }
        self.hosts.insert(host.clone());
    }
}

const fn minute(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_host_and_minute_is_due() {
        let host = |number: usize| HostName::new(&format!("h{number}")).unwrap();
        let at = |secs| DateTime::from_timestamp(secs, 0).unwrap();
        let mut ignored = IgnoredReplies::default();
        assert!(ignored.is_due(&host(1), at(60)));
        ignored.record(&host(1), at(60));
        assert!(!ignored.is_due(&host(1), at(119)) && ignored.is_due(&host(2), at(119)));
        assert!(ignored.is_due(&host(1), at(120)));
        for number in 0..2 * HOSTS_MAX {
            if ignored.is_due(&host(number), at(120)) {
                ignored.record(&host(number), at(120));
            }
        }
        assert_eq!(ignored.hosts.len(), HOSTS_MAX, "strangers may have any number of names");
        // The clock may step back.
        assert!(ignored.is_due(&host(1), at(60)));
    }
}
