//! Connections: how many there may be, of one client and in all, and which one makes room for another's.
//!
//! How long each may lie idle, and what is served on it, is in [`mod@super::serve`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::places::KEPT_FOR_LOCAL;

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
    clients: HashMap<Client, Held>,
    /// The clients that have quiet connections, in the order in which they make room.
    order: BTreeMap<Rank, Client>,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    /// The turn at which it was opened or its last answer was sent.
    since: u64,
    /// Requests that are not answered to the end.
    under_way: usize,
    close: CancellationToken,
}

/// What one client has.
#[derive(Debug, Default)]
struct Held {
    connections: usize,
    /// The numbers of those that are quiet, by the turn since when.
    quiet: BTreeMap<u64, u64>,
}

/// Whoever has most is first, then whoever has the one that has been quiet for longest.
type Rank = (Reverse<usize>, u64);

impl Held {
    fn rank(&self) -> Option<Rank> {
        let (since, _) = self.quiet.first_key_value()?;
        Some((Reverse(self.connections), *since))
    }
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
pub(super) struct UnderWay(Arc<Connection>);

impl Connections {
    /// As many as `all`, of which one client may have `each`.
    pub(super) fn new(all: usize, each: usize) -> Self {
        Self { all, each, open: Arc::default() }
    }

    /// With how many requests under way there is still a connection that can make room for somebody who has none.
    pub(super) fn under_way_max(&self) -> usize {
        (self.all - self.kept()).saturating_sub(1).max(1)
    }

    /// Takes in a connection of `client`'s. When there are as many as may be, a quiet one makes room, of a client that has
    /// more than this one: of whoever has most, the one that has been quiet for longest. So nobody is shut out by few who
    /// have many.
    pub(super) fn admit(&self, client: Client) -> Admission {
        let mut open = self.open();
        let own = open.held(client);
        if own >= self.each {
            return Admission::Full;
        }
        let is_full = self.is_full(&open, client);
        if is_full && !open.displace(own, self.kept()) {
            return Admission::Full;
        }
        let (number, close) = (open.turn(), CancellationToken::new());
        open.connections.insert(number, Entry { client, since: number, under_way: 0, close: close.clone() });
        open.change(client, |held| {
            held.connections += 1;
            held.quiet.insert(number, number);
        });
        let connection = Connection { of: self.clone(), number, close };
        if is_full { Admission::InPlace(connection) } else { Admission::Free(connection) }
    }

    /// How many are for this machine alone.
    fn kept(&self) -> usize {
        self.all / KEPT_FOR_LOCAL
    }

    fn is_full(&self, open: &Open, client: Client) -> bool {
        let sum = open.connections.len();
        let of_others = sum - open.held(Client::Local);
        sum >= self.all || (client != Client::Local && of_others >= self.all - self.kept())
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

    /// How many connections `client` has.
    fn held(&self, client: Client) -> usize {
        self.clients.get(&client).map_or(0, |held| held.connections)
    }

    /// Closes a quiet connection of whoever has most, if that is more than `own`. This machine's do not make room as long
    /// as it has no more than are `kept` for it.
    fn displace(&mut self, own: usize, kept: usize) -> bool {
        let is_spared = |client: Client| client == Client::Local && self.held(client) <= kept;
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
        let Some(entry) = self.connections.remove(&number) else { return false };
        entry.close.cancel();
        self.change(entry.client, |held| {
            held.connections -= 1;
            held.quiet.remove(&entry.since);
        });
        true
    }

    /// Changes what `client` has, and its place in the order with it.
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

    /// One more request is under way on a connection; whether the connection is still one.
    fn begin(&mut self, number: u64) -> bool {
        let Some(entry) = self.connections.get_mut(&number) else { return false };
        entry.under_way += 1;
        let (client, since) = (entry.client, entry.since);
        self.change(client, |held| {
            held.quiet.remove(&since);
        });
        true
    }

    /// One request less is.
    fn end(&mut self, number: u64) {
        let since = self.turn();
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
    /// Waits until it has to be closed.
    pub(super) async fn has_to_close(&self) {
        self.close.cancelled().await;
    }

    /// Takes note of a request. None when the connection has to be closed: then the request must not be begun.
    pub(super) fn request(self: &Arc<Self>) -> Option<UnderWay> {
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
            Admission::Free(connection) | Admission::InPlace(connection) => Some(Arc::new(connection)),
            Admission::Full => None,
        }
    }

    /// As many of `number` as `address` is given.
    fn admit_many(connections: &Connections, address: &str, number: usize) -> Vec<Arc<Connection>> {
        (0..number).filter_map(|_| admit(connections, address)).collect()
    }

    /// Nothing is open, and nothing is remembered of whoever had something.
    fn assert_empty(connections: &Connections) {
        let open = connections.open();
        assert_eq!((open.connections.len(), open.clients.len(), open.order.len()), (0, 0, 0));
    }

    /// Those of `connections` that are to be closed.
    fn closed(connections: &[Arc<Connection>]) -> Vec<usize> {
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
        assert_empty(&connections);
    }

    #[test]
    fn whoever_has_most_makes_room() {
        let connections = Connections::new(8, 4);
        let all: Vec<_> = [1, 2, 2, 2, 3, 3, 3, 3]
            .iter()
            .map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap())
            .collect();
        // A request is under way on the first, and was on the second.
        let under_way = all[4].request().unwrap();
        drop(all[5].request().unwrap());
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
        assert_empty(&connections);
    }

    #[test]
    fn requests_under_way_are_seen_to_their_end() {
        let connections = Connections::new(2, 2);
        let all = [admit(&connections, "192.0.2.1").unwrap(), admit(&connections, "192.0.2.1").unwrap()];
        let under_way = all.each_ref().map(|connection| connection.request().unwrap());
        assert!(admit(&connections, "192.0.2.2").is_none());
        drop(under_way);
        assert!(admit(&connections, "192.0.2.2").is_some());
        assert_eq!(closed(&all), [0]);
    }

    #[test]
    fn what_has_to_be_closed_begins_no_request() {
        let connections = Connections::new(2, 2);
        let all = admit_many(&connections, "192.0.2.1", 2);
        let newcomer = admit(&connections, "192.0.2.2").unwrap();
        assert!(all[0].request().is_none(), "whoever sent it hears that it was not begun");
        assert!(all[1].request().is_some());
        drop((all, newcomer));
        assert_empty(&connections);
    }

    /// Of two requests on a connection the second may begin before the answer to the first is sent.
    #[test]
    fn a_connection_is_quiet_when_all_is_answered() {
        let connections = Connections::new(1, 1);
        let only = admit(&connections, "192.0.2.1").unwrap();
        let requests = [only.request().unwrap(), only.request().unwrap()];
        for request in requests {
            assert!(admit(&connections, "192.0.2.2").is_none());
            drop(request);
        }
        assert!(admit(&connections, "192.0.2.2").is_some());
    }

    /// Whoever has most is busy on all of theirs, and hundreds of others lie idle.
    #[test]
    fn five_that_have_them_all_shut_nobody_out() {
        let connections = Connections::new(512, 128);
        let busiest = admit_many(&connections, "192.0.2.1", 120);
        let under_way: Vec<_> = busiest.iter().map(|connection| connection.request().unwrap()).collect();
        let mut idle = Vec::new();
        for (last, number) in [(2, 119), (3, 119), (4, 119), (5, 35)] {
            idle.extend(admit_many(&connections, &format!("192.0.2.{last}"), number));
        }
        assert_eq!(idle.len(), 119 * 3 + 35, "the last had most of theirs from others");
        let newcomer = admit_many(&connections, "198.51.100.1", 40);
        assert_eq!(newcomer.len(), 40);
        let local = admit_many(&connections, "127.0.0.1", 40);
        assert_eq!(local.len(), 40);
        assert_eq!(closed(&busiest), [0; 0], "requests are seen to their end");
        assert_eq!(connections.open().connections.len(), 512);
        drop((under_way, busiest, idle, newcomer, local));
        assert_empty(&connections);
    }

    #[test]
    fn this_machine_has_its_own() {
        let connections = Connections::new(64, 64);
        let others: Vec<_> =
            (0..100).map(|last| admit(&connections, &format!("192.0.2.{last}")).unwrap()).collect();
        let under_way: Vec<_> = others.iter().filter_map(Connection::request).collect();
        assert_eq!(under_way.len(), 60);
        assert!(admit(&connections, "198.51.100.1").is_none());
        let local: Vec<_> =
            (0..64).filter_map(|last| admit(&connections, &format!("127.0.0.{last}"))).collect();
        assert_eq!(local.len(), 4, "and is one client, by whatever address");
        drop(under_way);
        let newcomer = admit_many(&connections, "198.51.100.1", 1);
        assert_eq!((newcomer.len(), closed(&local)), (1, Vec::new()), "they make no room for others");
    }

    /// As many requests as may be under way leave a connection for whoever comes.
    #[test]
    fn requests_under_way_leave_a_connection() {
        for all in [1, 2, 16, 512] {
            let connections = Connections::new(all, all);
            let others = admit_many(&connections, "192.0.2.1", all);
            let under_way: Vec<_> =
                others.iter().take(connections.under_way_max()).map(Connection::request).collect();
            assert!(all == 1 || admit(&connections, "198.51.100.1").is_some(), "{all}");
            drop(under_way);
        }
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
