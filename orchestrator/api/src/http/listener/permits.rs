//! A limited number of permits for requests under way, shared so that no client can take them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::Client;

/// One permit in this many is reserved for clients on this machine.
pub(super) const RESERVED_FOR_LOCAL: usize = 16;

/// The permits, and how many each client has. A client gets another permit only while it has fewer than are left. A
/// single client therefore gets half of them. Several greedy clients converge to equal shares, with one more share
/// left for the next client. Clones share one state.
#[derive(Debug, Clone)]
pub(super) struct Permits {
    all: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    sum: usize,
    by: HashMap<Client, usize>,
}

/// A taken permit, freed on drop.
#[derive(Debug)]
pub(super) struct Permit {
    of: Permits,
    client: Client,
}

impl Permits {
    pub(super) fn new(all: usize) -> Self {
        Self { all, taken: Arc::default() }
    }

    /// Takes a permit for `client`; `None` when its share is used up.
    pub(super) fn take(&self, client: Client) -> Option<Permit> {
        let mut taken = self.taken();
        let reserved = if client == Client::Local { 0 } else { self.all / RESERVED_FOR_LOCAL };
        let left = (self.all - reserved).saturating_sub(taken.sum);
        if taken.by.get(&client).copied().unwrap_or_default() >= left {
            return None;
        }
        taken.sum += 1;
        *taken.by.entry(client).or_default() += 1;
        Some(Permit { of: self.clone(), client })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.sum -= 1;
        if let Some(own) = taken.by.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.by.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn client(address: &str) -> Client {
        Client::of(address.parse().unwrap())
    }

    /// Takes permits for `address` until it is refused.
    fn take_all(permits: &Permits, address: &str) -> Vec<Permit> {
        std::iter::from_fn(|| permits.take(client(address))).collect()
    }

    #[test]
    fn single_client_gets_half() {
        let permits = Permits::new(512);
        let first = take_all(&permits, "192.0.2.1");
        let second = take_all(&permits, "192.0.2.2");
        assert_eq!((first.len(), second.len()), (240, 120), "32 are reserved");
        drop(first);
        let first = take_all(&permits, "192.0.2.1");
        assert_eq!(first.len(), 180, "freed permits are available to others");
        drop((first, second));
        let taken = permits.taken();
        assert_eq!((taken.sum, taken.by.len()), (0, 0));
    }

    /// Twenty clients take every permit they can get, and another as soon as one is freed.
    #[test]
    fn greedy_clients_leave_a_share() {
        let permits = Permits::new(256);
        let greedy: Vec<_> = (0..20).map(|number| format!("192.0.2.{number}")).collect();
        let mut taken: VecDeque<_> = greedy.iter().flat_map(|address| take_all(&permits, address)).collect();
        assert_eq!(take_all(&permits, "198.51.100.1").len(), 0, "none is left until permits are freed");
        for _ in 0..256 {
            drop(taken.pop_front());
            for address in &greedy {
                taken.extend(take_all(&permits, address));
            }
        }
        assert!(!take_all(&permits, "198.51.100.1").is_empty());
        let taken = permits.taken();
        assert!(taken.by.values().all(|own| (8..=16).contains(own)), "{:?}", taken.by);
    }

    #[test]
    fn local_clients_have_reserved_places() {
        let permits = Permits::new(256);
        let _taken: Vec<_> =
            (0..1_000).map(|number| take_all(&permits, &format!("2001:db8:0:{number}::1"))).collect();
        assert_eq!(take_all(&permits, "192.0.2.1").len(), 0);
        let mut local = vec![take_all(&permits, "127.0.0.1")];
        assert_eq!(local[0].len(), 8);
        for number in 2..100 {
            local.push(take_all(&permits, &format!("127.0.0.{number}")));
        }
        assert_eq!(local.iter().map(Vec::len).sum::<usize>(), 8, "all local addresses are one client");
    }

    #[test]
    fn a_single_place() {
        let permits = Permits::new(1);
        let taken = take_all(&permits, "192.0.2.1");
        assert_eq!((taken.len(), take_all(&permits, "127.0.0.1").len()), (1, 0));
    }
}
