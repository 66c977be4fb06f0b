//! Limits of connections, per client and in total, and which one is closed to make room for another client.
//!
//! Idle timeouts and serving are in [`mod@super::serve`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::permits::RESERVED_FOR_LOCAL;

/// The open connections. Clones share one state.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    all: usize,
    each: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    /// Incremented when a connection is opened or becomes quiet. Orders connections, and numbers them.
    ticks: u64,
    connections: HashMap<u64, Entry>,
    clients: HashMap<Client, Held>,
    /// The clients with quiet connections; the first one makes room first.
    order: BTreeMap<Rank, Client>,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    /// The tick at which it was opened or its last answer was sent.
    since: u64,
    /// Requests whose answer is not completely sent.
    under_way: usize,
    close: CancellationToken,
}

/// The connections of one client.
#[derive(Debug, Default)]
struct Held {
    connections: usize,
    /// The numbers of its quiet connections, by the tick at which each became quiet.
    quiet: BTreeMap<u64, u64>,
}

/// Most connections first, then the longest quiet one.
type Rank = (Reverse<usize>, u64);

impl Held {
    fn rank(&self) -> Option<Rank> {
        let (since, _) = self.quiet.first_key_value()?;
        Some((Reverse(self.connections), *since))
    }
}

/// Whether an accepted connection is served.
#[derive(Debug)]
pub(super) enum Admission {
    /// It may be served.
    Admitted(Connection),
    /// It may be served, and another one was asked to close.
    Displacing(Connection),
    /// It must be closed.
    Refused,
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    of: Connections,
    number: u64,
    close: CancellationToken,
}

/// A request is under way on a connection until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Connection>);

impl Connections {
    /// At most `all` connections, and `each` per client.
    pub(super) fn new(all: usize, each: usize) -> Self {
        Self { all, each, open: Arc::default() }
    }

    /// Most requests under way that still leave a quiet connection, which can make room for a new client.
    pub(super) fn under_way_max(&self) -> usize {
        (self.all - self.reserved()).saturating_sub(1).max(1)
    }

    /// Admits a connection of `client`. At the limit, a quiet connection makes room: the longest quiet one of the
    /// client with the most connections, if it has more than this client. So a few clients with many connections shut
    /// nobody out.
    pub(super) fn admit(&self, client: Client) -> Admission {
        let mut open = self.open();
        let own = open.held(client);
        if own >= self.each {
            return Admission::Refused;
        }
        let is_full = self.is_full(&open, client);
        if is_full && !open.displace(own, self.reserved()) {
            return Admission::Refused;
        }
        let (number, close) = (open.tick(), CancellationToken::new());
        open.connections.insert(number, Entry { client, since: number, under_way: 0, close: close.clone() });
        open.change(client, |held| {
            held.connections += 1;
            held.quiet.insert(number, number);
        });
        let connection = Connection { of: self.clone(), number, close };
        if is_full { Admission::Displacing(connection) } else { Admission::Admitted(connection) }
    }

    /// How many connections are reserved for clients on this machine.
    fn reserved(&self) -> usize {
        self.all / RESERVED_FOR_LOCAL
    }

    fn is_full(&self, open: &Open, client: Client) -> bool {
        let sum = open.connections.len();
        let of_others = sum - open.held(Client::Local);
        sum >= self.all || (client != Client::Local && of_others >= self.all - self.reserved())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// How many connections `client` has.
    fn held(&self, client: Client) -> usize {
        self.clients.get(&client).map_or(0, |held| held.connections)
    }

    /// Closes a quiet connection of the client with the most, if it has more than `own`. Local connections are spared
    /// up to the `reserved` number.
    fn displace(&mut self, own: usize, reserved: usize) -> bool {
        let is_spared = |client: Client| client == Client::Local && self.held(client) <= reserved;
        let first = self.order.iter().find(|(_, client)| !is_spared(**client));
        let Some(((Reverse(most), since), client)) = first.filter(|((Reverse(most), _), _)| *most > own)
        else {
            return false;
        };
        let number = self.clients.get(client).and_then(|held| held.quiet.get(since)).copied();
        debug_assert!(number.is_some(), "{client:?} with {most}");
        number.is_some_and(|number| self.remove(number))
    }

    fn remove(&mut self, number: u64) -> bool {
        let Some(entry) = self.forget(number) else { return false };
        entry.close.cancel();
        true
    }

    /// No longer counts a connection, which may stay open.
    fn forget(&mut self, number: u64) -> Option<Entry> {
        let entry = self.connections.remove(&number)?;
        self.change(entry.client, |held| {
            held.connections -= 1;
            held.quiet.remove(&entry.since);
        });
        Some(entry)
    }

    /// Changes the connections of `client`, and updates its rank.
    fn change(&mut self, client: Client, change: impl FnOnce(&mut Held)) {
        let held = self.clients.entry(client).or_default();
        if let Some(rank) = held.rank() {
            self.order.remove(&rank);
        }
        change(held);
        if let Some(rank) = held.rank() {
            self.order.insert(rank, client);
        }
        if held.connections == 0 {
            self.clients.remove(&client);
        }
    }

    /// Counts a request on a connection. False when the connection is no longer open.
    fn begin(&mut self, number: u64) -> bool {
        let Some(entry) = self.connections.get_mut(&number) else { return false };
        entry.under_way += 1;
        let (client, since) = (entry.client, entry.since);
        self.change(client, |held| {
            held.quiet.remove(&since);
        });
        true
    }

    /// Ends a request; the last one makes the connection quiet.
    fn end(&mut self, number: u64) {
        let since = self.tick();
        let Some(entry) = self.connections.get_mut(&number) else { return };
        entry.under_way -= 1;
        if entry.under_way > 0 {
            return;
        }
        entry.since = since;
        let client = entry.client;
        self.change(client, |held| {
            held.quiet.insert(since, number);
        });
    }
}

impl Connection {
    /// Waits until the connection must be closed.
    pub(super) async fn close_requested(&self) {
        self.close.cancelled().await;
    }

    /// Leaves its place to another connection, and stays open. Its next request is not begun.
    pub(super) fn leave(&self) {
        drop(self.of.open().forget(self.number));
    }

    /// Registers a request. `None` when the connection must be closed: then the request must not be begun.
    pub(super) fn begin_request(self: &Arc<Self>) -> Option<UnderWay> {
        self.of.open().begin(self.number).then(|| UnderWay(Arc::clone(self)))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.of.open().end(self.0.number);
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

    fn admit(connections: &Connections, address: &str) -> Option<Arc<Connection>> {
        match connections.admit(Client::of(address.parse().unwrap())) {
            Admission::Admitted(connection) | Admission::Displacing(connection) => Some(Arc::new(connection)),
            Admission::Refused => None,
        }
    }

    /// Requests `number` connections, and returns those that are admitted.
    fn admit_many(connections: &Connections, address: &str, number: usize) -> Vec<Arc<Connection>> {
        (0..number).filter_map(|_| admit(connections, address)).collect()
    }

    /// No connection is open, and no client is remembered.
    fn assert_empty(connections: &Connections) {
        let open = connections.open();
        assert_eq!((open.connections.len(), open.clients.len(), open.order.len()), (0, 0, 0));
    }

    /// The indices of the `connections` that were asked to close.
    fn closed(connections: &[Arc<Connection>]) -> Vec<usize> {
        let is_closed = |index: &usize| connections[*index].close.is_cancelled();
        (0..connections.len()).filter(is_closed).collect()
    }

    #[test]
    fn clients_have_a_limit() {
        let connections = Connections::new(8, 3);
        let mut first: Vec<_> = std::iter::from_fn(|| admit(&connections, "192.0.2.1")).collect();
        assert_eq!(first.len(), 3);
        assert!(admit(&connections, "192.0.2.2").is_some());
        first.pop();
        assert!(admit(&connections, "192.0.2.1").is_some(), "a closed connection makes room");
        drop(first);
        assert_empty(&connections);
    }

    #[test]
    fn connection_that_leaves_stays_open() {
        let connections = Connections::new(8, 1);
        let first = admit(&connections, "192.0.2.1").unwrap();
        let under_way = first.begin_request().unwrap();
        first.leave();
        let second = admit(&connections, "192.0.2.1").unwrap();
        drop(under_way);
        assert!(first.begin_request().is_none());
        assert_eq!(closed(&[first, second]), [0; 0]);
        assert_empty(&connections);
    }

    #[test]
    fn client_with_most_makes_room() {
        let connections = Connections::new(8, 4);
        let all: Vec<_> = [1, 2, 2, 2, 3, 3, 3, 3]
            .iter()
            .map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap())
            .collect();
        // Of the last client, a request is under way on the first connection, and one has ended on the second.
        let under_way = all[4].begin_request().unwrap();
        drop(all[5].begin_request().unwrap());
        let next = admit(&connections, "127.0.0.1").unwrap();
        assert_eq!(closed(&all), [6]);
        let another = admit(&connections, "127.0.0.1").unwrap();
        assert_eq!(closed(&all), [1, 6], "among equal clients the longest quiet connection is closed");
        let third = admit(&connections, "127.0.0.1").unwrap();
        assert_eq!(closed(&all), [1, 6, 7]);
        assert!(admit(&connections, "127.0.0.1").is_none(), "no client has more");
        drop(under_way);
        drop((next, another, third, all));
        assert_empty(&connections);
    }

    #[test]
    fn requests_under_way_are_completed() {
        let connections = Connections::new(2, 2);
        let all = [admit(&connections, "192.0.2.1").unwrap(), admit(&connections, "192.0.2.1").unwrap()];
        let under_way = all.each_ref().map(|connection| connection.begin_request().unwrap());
        assert!(admit(&connections, "192.0.2.2").is_none());
        drop(under_way);
        assert!(admit(&connections, "192.0.2.2").is_some());
        assert_eq!(closed(&all), [0]);
    }

    #[test]
    fn closing_connection_begins_no_request() {
        let connections = Connections::new(2, 2);
        let all = admit_many(&connections, "192.0.2.1", 2);
        let newcomer = admit(&connections, "192.0.2.2").unwrap();
        assert!(all[0].begin_request().is_none(), "the client learns that it was not begun");
        assert!(all[1].begin_request().is_some());
        drop((all, newcomer));
        assert_empty(&connections);
    }

    /// A second request may begin before the answer to the first is sent.
    #[test]
    fn quiet_once_all_answers_are_sent() {
        let connections = Connections::new(1, 1);
        let only = admit(&connections, "192.0.2.1").unwrap();
        let requests = [only.begin_request().unwrap(), only.begin_request().unwrap()];
        for request in requests {
            assert!(admit(&connections, "192.0.2.2").is_none());
            drop(request);
        }
        assert!(admit(&connections, "192.0.2.2").is_some());
    }

    /// The client with the most connections is busy on all of them, and hundreds of others are idle.
    #[test]
    fn greedy_clients_shut_nobody_out() {
        let connections = Connections::new(512, 128);
        let busiest = admit_many(&connections, "192.0.2.1", 120);
        let under_way: Vec<_> =
            busiest.iter().map(|connection| connection.begin_request().unwrap()).collect();
        let mut idle = Vec::new();
        for (last, number) in [(2, 119), (3, 119), (4, 119), (5, 35)] {
            idle.extend(admit_many(&connections, &format!("192.0.2.{last}"), number));
        }
        assert_eq!(idle.len(), 119 * 3 + 35, "most of the last client's connections displaced others");
        let newcomer = admit_many(&connections, "198.51.100.1", 40);
        assert_eq!(newcomer.len(), 40);
        let local = admit_many(&connections, "127.0.0.1", 40);
        assert_eq!(local.len(), 40);
        assert_eq!(closed(&busiest), [0; 0], "requests are completed");
        assert_eq!(connections.open().connections.len(), 512);
        drop((under_way, busiest, idle, newcomer, local));
        assert_empty(&connections);
    }

    #[test]
    fn local_clients_have_reserved_connections() {
        let connections = Connections::new(64, 64);
        let others: Vec<_> =
            (0..100).map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap()).collect();
        let under_way: Vec<_> = others.iter().filter_map(Connection::begin_request).collect();
        assert_eq!(under_way.len(), 60);
        assert!(admit(&connections, "198.51.100.1").is_none());
        let local: Vec<_> =
            (0..64).filter_map(|last| admit(&connections, &format!("127.0.0.{last}"))).collect();
        assert_eq!(local.len(), 4, "all local addresses are one client");
        drop(under_way);
        let newcomer = admit_many(&connections, "198.51.100.1", 1);
        assert_eq!((newcomer.len(), closed(&local)), (1, Vec::new()), "local connections are spared");
    }

    /// At the limit of requests under way, a new client still gets a connection.
    #[test]
    fn requests_under_way_leave_a_connection() {
        for all in [1, 2, 16, 512] {
            let connections = Connections::new(all, all);
            let others = admit_many(&connections, "192.0.2.1", all);
            let under_way: Vec<_> =
                others.iter().take(connections.under_way_max()).map(Connection::begin_request).collect();
            assert!(all == 1 || admit(&connections, "198.51.100.1").is_some(), "{all}");
            drop(under_way);
        }
    }

    /// Among any number of clients, a new one with a short request is admitted.
    #[test]
    fn new_client_displaces_oldest() {
        let connections = Connections::new(4, 2);
        let others: Vec<_> =
            (0..100).map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap()).collect();
        assert_eq!(closed(&others), (0..96).collect::<Vec<_>>());
        assert!(admit(&connections, "192.0.2.99").is_none());
    }
}
