//! Refused requests: counted, and logged at most once a minute for each address.
//!
//! Nobody is locked out: secrets cannot be guessed, and a lock-out could be used against others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Shortest time between two log lines about one address.
const INTERVAL: Duration = Duration::from_mins(1);

/// Most addresses that are remembered; the one logged longest ago is forgotten first.
const ADDRESSES_MAX: usize = 1_024;

/// Refused requests: label `reason`.
pub type DenialCounts = Family<[(&'static str, &'static str); 1], Counter>;

/// Counts and logs refused requests. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Denials {
    counts: DenialCounts,
    addresses: Arc<Mutex<HashMap<Option<IpAddr>, Address>>>,
}

#[derive(Debug, Clone, Copy)]
struct Address {
    logged: Instant,
    since: u64,
}

impl Denials {
    /// The counts, for the metrics.
    pub fn counts(&self) -> &DenialCounts {
        &self.counts
    }

    /// Records a request from `peer` that was refused for `reason`.
    pub fn record(&self, reason: &'static str, peer: Option<IpAddr>, now: Instant) {
        self.counts.get_or_create(&[("reason", reason)]).inc();
        if let Some(more) = self.due(peer, now) {
            let from = peer.map_or_else(|| "an unknown address".to_owned(), |peer| peer.to_string());
            tracing::warn!(from, reason, more, "a request was refused");
        }
    }

    /// The number of requests since the last log line about `peer`, if another line is due.
    fn due(&self, peer: Option<IpAddr>, now: Instant) -> Option<u64> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = addresses.get_mut(&peer) {
            if now.duration_since(address.logged) < INTERVAL {
                address.since += 1;
                return None;
            }
            let more = address.since;
            *address = Address { logged: now, since: 0 };
            return Some(more);
        }
        if addresses.len() >= ADDRESSES_MAX {
            let oldest = addresses.iter().min_by_key(|(_, address)| address.logged).map(|(peer, _)| *peer);
            oldest.and_then(|oldest| addresses.remove(&oldest));
        }
        addresses.insert(peer, Address { logged: now, since: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_for_each_address() {
        let denials = Denials::default();
        let start = Instant::now();
        let [one, other] = [1, 2].map(|last| Some(IpAddr::from([10, 0, 0, last])));
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(denials.due(one, after(0)), Some(0));
        assert_eq!(denials.due(one, after(1)), None);
        assert_eq!(denials.due(other, after(2)), Some(0));
        assert_eq!(denials.due(one, after(59)), None);
        assert_eq!(denials.due(one, after(60)), Some(2));
        assert_eq!(denials.due(one, after(61)), None);
    }

    #[test]
    fn addresses_are_bounded() {
        let denials = Denials::default();
        let start = Instant::now();
        for number in 0..3 * u32::try_from(ADDRESSES_MAX).unwrap() {
            let now = start + Duration::from_millis(number.into());
            assert_eq!(denials.due(Some(IpAddr::from(number.to_be_bytes())), now), Some(0));
        }
        assert_eq!(denials.addresses.lock().unwrap().len(), ADDRESSES_MAX);
    }
}
