//! Places for requests under way, of which there are so many, shared in such a way that no client keeps them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::Client;

/// Which part of the places is kept for this machine: one in so many.
pub(super) const KEPT_FOR_LOCAL: usize = 16;

/// Places, and who has how many. A client is given none while it has as many as are left. So one alone gets half of them,
/// and several that want all, whose requests end and are followed by others, come to have equal shares, with another share
/// left for whoever comes next. Clones are one.
#[derive(Debug, Clone)]
pub(super) struct Places {
    all: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    sum: usize,
    by: HashMap<Client, usize>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    of: Places,
    client: Client,
}

impl Places {
    pub(super) fn new(all: usize) -> Self {
        Self { all, taken: Arc::default() }
    }

    /// A place for `client`, if there is one for it.
    pub(super) fn take(&self, client: Client) -> Option<Place> {
        let mut taken = self.taken();
        let kept = if client == Client::Local { 0 } else { self.all / KEPT_FOR_LOCAL };
        let left = (self.all - kept).saturating_sub(taken.sum);
        if taken.by.get(&client).copied().unwrap_or_default() >= left {
            return None;
        }
        taken.sum += 1;
        *taken.by.entry(client).or_default() += 1;
        Some(Place { of: self.clone(), client })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
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

    /// As many places as `address` is given.
    fn take_all(places: &Places, address: &str) -> Vec<Place> {
        std::iter::from_fn(|| places.take(client(address))).collect()
    }

    #[test]
    fn one_alone_gets_half_of_them() {
        let places = Places::new(512);
        let first = take_all(&places, "192.0.2.1");
        let second = take_all(&places, "192.0.2.2");
        assert_eq!((first.len(), second.len()), (240, 120), "32 are kept");
        drop(first);
        let first = take_all(&places, "192.0.2.1");
        assert_eq!(first.len(), 180, "what one does not have is for others");
        drop((first, second));
        let taken = places.taken();
        assert_eq!((taken.sum, taken.by.len()), (0, 0));
    }

    /// Twenty clients take whatever they are given, and take again as soon as one of theirs has ended.
    #[test]
    fn those_who_want_all_leave_a_share() {
        let places = Places::new(256);
        let greedy: Vec<_> = (0..20).map(|number| format!("192.0.2.{number}")).collect();
        let mut taken: VecDeque<_> = greedy.iter().flat_map(|address| take_all(&places, address)).collect();
        assert_eq!(take_all(&places, "198.51.100.1").len(), 0, "it takes one turn");
        for _ in 0..256 {
            drop(taken.pop_front());
            for address in &greedy {
                taken.extend(take_all(&places, address));
            }
        }
        assert!(!take_all(&places, "198.51.100.1").is_empty());
        let taken = places.taken();
        assert!(taken.by.values().all(|own| (8..=16).contains(own)), "{:?}", taken.by);
    }

    #[test]
    fn this_machine_has_its_own() {
        let places = Places::new(256);
        let _taken: Vec<_> =
            (0..1_000).map(|number| take_all(&places, &format!("2001:db8:0:{number}::1"))).collect();
        assert_eq!(take_all(&places, "192.0.2.1").len(), 0);
        let mut local = vec![take_all(&places, "127.0.0.1")];
        assert_eq!(local[0].len(), 8);
        for number in 2..100 {
            local.push(take_all(&places, &format!("127.0.0.{number}")));
        }
        assert_eq!(local.iter().map(Vec::len).sum::<usize>(), 8, "and is one client, by whatever address");
    }

    #[test]
    fn a_single_place() {
        let places = Places::new(1);
        let taken = take_all(&places, "192.0.2.1");
        assert_eq!((taken.len(), take_all(&places, "127.0.0.1").len()), (1, 0));
    }
}
