//! Connections: how many there may be, of one client and in all, and which one makes room for another's.
//!
//! How long each may lie idle, and what is served on it, is in [`mod@super::serve`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::limit::Client;

/// The connections that are open. Clones are one.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    all: usize,
    each: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    /// How often a connection was opened or has become quiet.
    turns: u64,
    connections: HashMap<u64, Entry>,
    by: HashMap<Client, usize>,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    /// The turn at which it was opened or its last request was answered; none while one is under way.
    quiet: Option<u64>,
    close: CancellationToken,
}

/// What became of a connection that was accepted.
#[derive(Debug)]
pub(super) enum Admission {
    /// It may be served.
    Free(Connection),
    /// The same, and another has to be closed, which knows of it.
    InPlace(Connection),
    /// It has to be closed.
    Full,
}

/// A connection, which is one of those that are open until this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    of: Connections,
    number: u64,
    close: CancellationToken,
}

/// A request is under way on a connection until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a Connection);

impl Connections {
    /// As many as `all`, of which one client may have `each`.
    pub(super) fn new(all: usize, each: usize) -> Self {
        Self { all, each, open: Arc::default() }
    }

    /// Takes in a connection of `client`'s. When there are as many as may be, the one that has been quiet for longest makes
    /// room, of those who have most and more than `client`: so nobody is shut out by few who have many.
    pub(super) fn admit(&self, client: Client) -> Admission {
        let mut open = self.open();
        let own = open.by.get(&client).copied().unwrap_or_default();
        if own >= self.each {
            return Admission::Full;
        }
        let is_full = open.connections.len() >= self.all;
        if is_full && !open.displace(own) {
            return Admission::Full;
        }
        let (number, close) = (open.turn(), CancellationToken::new());
        *open.by.entry(client).or_default() += 1;
        open.connections.insert(number, Entry { client, quiet: Some(number), close: close.clone() });
        let connection = Connection { of: self.clone(), number, close };
        if is_full { Admission::InPlace(connection) } else { Admission::Free(connection) }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Closes one of those who have most, if they have more than `own`. Requests under way are limited themselves.
    fn displace(&mut self, own: usize) -> bool {
        let most = self.by.values().copied().max().filter(|most| *most > own);
        let quiet = self.connections.iter().filter_map(|(number, entry)| {
            let since = entry.quiet.filter(|_| self.by.get(&entry.client).copied() == most)?;
            Some((since, *number))
        });
        let Some((_, number)) = quiet.min() else { return false };
        self.remove(number);
        true
    }

    fn remove(&mut self, number: u64) {
        let Some(entry) = self.connections.remove(&number) else { return };
        entry.close.cancel();
        if let Some(own) = self.by.get_mut(&entry.client) {
            *own -= 1;
            if *own == 0 {
                self.by.remove(&entry.client);
            }
        }
    }
}

impl Connection {
    /// Waits until it has to be closed.
    pub(super) async fn has_to_close(&self) {
        self.close.cancelled().await;
    }

    /// Takes note of a request.
    pub(super) fn request(&self) -> UnderWay<'_> {
        if let Some(entry) = self.of.open().connections.get_mut(&self.number) {
            entry.quiet = None;
        }
        UnderWay(self)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut open = self.0.of.open();
        let turn = open.turn();
        if let Some(entry) = open.connections.get_mut(&self.0.number) {
            entry.quiet = Some(turn);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.open().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(connections: &Connections, address: &str) -> Option<Connection> {
        match connections.admit(Client::of(address.parse().unwrap())) {
            Admission::Free(connection) | Admission::InPlace(connection) => Some(connection),
            Admission::Full => None,
        }
    }

    /// Those of `connections` that are to be closed.
    fn closed(connections: &[Connection]) -> Vec<usize> {
        let is_closed = |place: &usize| connections[*place].close.is_cancelled();
        (0..connections.len()).filter(is_closed).collect()
    }

    #[test]
    fn each_has_a_limit() {
        let connections = Connections::new(8, 3);
        let mut first: Vec<_> = std::iter::from_fn(|| admit(&connections, "192.0.2.1")).collect();
        assert_eq!(first.len(), 3);
        assert!(admit(&connections, "192.0.2.2").is_some());
        first.pop();
        assert!(admit(&connections, "192.0.2.1").is_some(), "what was closed makes room");
        drop(first);
        let open = connections.open();
        assert_eq!((open.connections.len(), open.by.len()), (0, 0));
    }

    #[test]
    fn whoever_has_most_makes_room() {
        let connections = Connections::new(8, 4);
        let all: Vec<_> = [1, 2, 2, 2, 3, 3, 3, 3]
            .iter()
            .map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap())
            .collect();
        // A request is under way on the first, and was on the second.
        let under_way = all[4].request();
        drop(all[5].request());
        let next = admit(&connections, "127.0.0.1").unwrap();
        assert_eq!(closed(&all), [6]);
        let another = admit(&connections, "127.0.0.1").unwrap();
        assert_eq!(
            closed(&all),
            [1, 6],
            "of those who have as many it is the one that was quiet for longest"
        );
        let third = admit(&connections, "127.0.0.1").unwrap();
        assert_eq!(closed(&all), [1, 6, 7]);
        assert!(admit(&connections, "127.0.0.1").is_none(), "nobody has more");
        drop(under_way);
        drop((next, another, third, all));
        let open = connections.open();
        assert_eq!((open.connections.len(), open.by.len()), (0, 0));
    }

    #[test]
    fn requests_under_way_are_seen_to_their_end() {
        let connections = Connections::new(2, 2);
        let all = [admit(&connections, "192.0.2.1").unwrap(), admit(&connections, "192.0.2.1").unwrap()];
        let under_way = [all[0].request(), all[1].request()];
        assert!(admit(&connections, "192.0.2.2").is_none());
        drop(under_way);
        assert!(admit(&connections, "192.0.2.2").is_some());
        assert_eq!(closed(&all), [0]);
    }

    /// However many clients there are: who comes with a short request gets in.
    #[test]
    fn one_connection_each() {
        let connections = Connections::new(4, 2);
        let others: Vec<_> =
            (0..100).map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap()).collect();
        assert_eq!(closed(&others), (0..96).collect::<Vec<_>>());
        assert!(admit(&connections, "192.0.2.99").is_none());
    }
}
