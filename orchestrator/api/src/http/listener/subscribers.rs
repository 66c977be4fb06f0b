//! The places of clients that follow events: a pool of their own, because their answers do not end. They count neither as
//! requests under way nor as connections of other clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;

use super::client::Client;
use super::permits::RESERVED_FOR_LOCAL;

/// Most subscribers at once.
pub const SUBSCRIBERS_MAX: usize = 1_000;
/// Most of them from one address, or IPv6 network of 64 bits. Clients on this machine are limited by the number of all alone,
/// because a proxy may be one of them.
pub(crate) const SUBSCRIBERS_OF_ADDRESS_MAX: usize = 64;

/// Who has a place. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscribers {
    seats: Arc<Mutex<HashMap<Client, usize>>>,
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
    client: Client,
    cut_off: CutOff,
}

/// Counts a subscriber that is cut off, once, whoever notices it first. Clones share one state.
#[derive(Debug, Clone)]
pub(crate) struct CutOff {
    is_counted: Arc<AtomicBool>,
    counter: Counter,
}

impl CutOff {
    /// The subscriber is too slow.
    pub(crate) fn count(&self) {
        if !self.is_counted.swap(true, Ordering::Relaxed) {
            self.counter.inc();
            tracing::debug!("a subscriber was too slow");
        }
    }
}

impl Seat {
    /// Counts the subscriber once it is cut off.
    pub(crate) const fn cut_off(&self) -> &CutOff {
        &self.cut_off
    }
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
    /// Takes a place for `client`. Some are reserved for clients on this machine.
    pub(super) fn take(&self, client: Client) -> Result<Seat, Full> {
        let mut seats = self.seats();
        let is_local = client == Client::Local;
        if !is_local && seats.get(&client).is_some_and(|taken| *taken >= SUBSCRIBERS_OF_ADDRESS_MAX) {
            return Err(Full::Address);
        }
        let own = seats.get(&Client::Local).copied().unwrap_or_default();
        let all = seats.values().sum::<usize>();
        let reserved = SUBSCRIBERS_MAX / RESERVED_FOR_LOCAL;
        if all >= SUBSCRIBERS_MAX || !is_local && all - own >= SUBSCRIBERS_MAX - reserved {
            return Err(Full::All);
        }
        *seats.entry(client).or_default() += 1;
        let cut_off = CutOff { is_counted: Arc::default(), counter: self.counts.cut_off.clone() };
        Ok(Seat { of: self.clone(), client, cut_off })
    }

    /// How many places are taken.
    pub(crate) fn count(&self) -> usize {
        self.seats().values().sum()
    }

    /// What is counted of them.
    pub(crate) const fn counts(&self) -> &SubscriberCounts {
        &self.counts
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<Client, usize>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.of.seats();
        if let Some(taken) = seats.get_mut(&self.client) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(&self.client);
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
        let take = |address: String| subscribers.take(Client::of(address.parse().unwrap()));
        let mut seats: Vec<_> = (0..64).map(|_| take("192.0.2.1".to_owned()).unwrap()).collect();
        assert_eq!(take("192.0.2.1".to_owned()).unwrap_err(), Full::Address);
        assert_eq!(take("::ffff:192.0.2.1".to_owned()).unwrap_err(), Full::Address);
        seats.extend((0..64).map(|host| take(format!("2001:db8::{host:x}")).unwrap()));
        assert_eq!(take("2001:db8::ffff".to_owned()).unwrap_err(), Full::Address, "one network of 64 bits");
        let others = (0..).map(|number| take(format!("198.51.{}.{}", number / 256, number % 256)));
        seats.extend(others.map_while(Result::ok));
        let reserved = SUBSCRIBERS_MAX / RESERVED_FOR_LOCAL;
        assert_eq!(seats.len(), SUBSCRIBERS_MAX - reserved);
        assert_eq!(take("203.0.113.1".to_owned()).unwrap_err(), Full::All);
        let mut local: Vec<_> = (1..=reserved).map(|last| take(format!("127.0.0.{last}")).unwrap()).collect();
        assert_eq!(take("::1".to_owned()).unwrap_err(), Full::All, "all loopback addresses are one client");
        assert_eq!(subscribers.count(), SUBSCRIBERS_MAX);
        local.clear();
        seats.pop();
        seats.push(take("203.0.113.1".to_owned()).unwrap());
        drop(seats);
        assert!(subscribers.seats().is_empty(), "no address is remembered");
    }
}
