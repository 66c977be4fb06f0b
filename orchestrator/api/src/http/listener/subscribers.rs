//! The places of clients that follow events: a pool of their own, because their answers do not end. They count neither as
//! requests under way nor as connections of other clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;

use super::client::network;

/// Most subscribers at once.
pub const SUBSCRIBERS_MAX: usize = 1_000;
/// Most of them from one address, or IPv6 network of 64 bits.
pub(crate) const SUBSCRIBERS_OF_ADDRESS_MAX: usize = 64;

/// Who has a place. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscribers {
    seats: Arc<Mutex<HashMap<Option<IpAddr>, usize>>>,
    counts: SubscriberCounts,
}

/// What is counted of subscribers. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct SubscriberCounts {
    /// Events that were sent, once for each subscriber.
    pub(crate) sent: Counter,
    /// Subscribers that were cut off, because they were too slow.
    pub(crate) cut_off: Counter,
}

/// The place of a subscriber, free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    of: Subscribers,
    address: Option<IpAddr>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The address has as many as it may.
    Address,
    /// There is none left for anybody.
    All,
}

impl Subscribers {
    /// Takes a place for `peer`; `None` is a client without an address.
    pub(crate) fn take(&self, peer: Option<IpAddr>) -> Result<Seat, Full> {
        let address = peer.map(network);
        let mut seats = self.seats();
        if seats.get(&address).is_some_and(|taken| *taken >= SUBSCRIBERS_OF_ADDRESS_MAX) {
            return Err(Full::Address);
        }
        if seats.values().sum::<usize>() >= SUBSCRIBERS_MAX {
            return Err(Full::All);
        }
        *seats.entry(address).or_default() += 1;
        Ok(Seat { of: self.clone(), address })
    }

    /// How many places are taken.
    pub(crate) fn count(&self) -> usize {
        self.seats().values().sum()
    }

    /// What is counted of them.
    pub(crate) const fn counts(&self) -> &SubscriberCounts {
        &self.counts
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, usize>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.of.seats();
        if let Some(taken) = seats.get_mut(&self.address) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_for_each_address_and_in_total() {
        let subscribers = Subscribers::default();
        let take = |address: String| subscribers.take(Some(address.parse().unwrap()));
        let mut seats: Vec<_> = (0..64).map(|_| take("192.0.2.1".to_owned()).unwrap()).collect();
        assert_eq!(take("192.0.2.1".to_owned()).unwrap_err(), Full::Address);
        assert_eq!(take("::ffff:192.0.2.1".to_owned()).unwrap_err(), Full::Address);
        seats.extend((0..64).map(|host| take(format!("2001:db8::{host:x}")).unwrap()));
        assert_eq!(take("2001:db8::ffff".to_owned()).unwrap_err(), Full::Address, "one network of 64 bits");
        let others = (0..).map(|number| take(format!("198.51.{}.{}", number / 256, number % 256)));
        seats.extend(others.map_while(Result::ok));
        assert_eq!((seats.len(), subscribers.count()), (SUBSCRIBERS_MAX, SUBSCRIBERS_MAX));
        assert_eq!(take("203.0.113.1".to_owned()).unwrap_err(), Full::All);
        seats.pop();
        seats.push(take("203.0.113.1".to_owned()).unwrap());
        drop(seats);
        assert!(subscribers.seats().is_empty(), "no address is remembered");
    }
}
