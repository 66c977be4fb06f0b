//! Limits of connections and requests as a whole, before any endpoint: how many there are at once, and how many requests a
//! client may send.
//!
//! Sizes and times of single requests are limited where they are read.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::{HashMapStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};
use os_upgrade_api_types::health::{HEALTHY, READY};
use os_upgrade_settings as settings;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::Semaphore;

use super::client::Client;
use super::connections::{Admission, Connection, Connections};
use super::early::Refusal;
use super::places::Places;
use super::sending::until_sent;

/// Clients that are told apart at once; those who come then share one allowance. Whoever sends nothing for a second is
/// forgotten.
const CLIENTS_MAX: usize = 65_536;
/// How often those who can be forgotten are.
const FORGET_EVERY: Duration = Duration::from_secs(1);
/// Handshakes of TLS whose keys are worked out at once: with more, the cores would go to whoever connects, and a run needs
/// them too.
const HANDSHAKES_MAX: usize = 2;
/// How often it is logged that connections are closed, and that requests are refused.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// How many connections and requests were refused why: label `reason`, which is `connections`, `busy` or `rate`.
pub(crate) type Refused = Family<[(&'static str, &'static str); 1], Counter>;

/// The limits, and how far they are used up. Cheap to clone; clones are one.
#[derive(Debug, Clone)]
pub struct Limits {
    client_of: fn(IpAddr) -> Client,
    connections: Connections,
    handshakes: Arc<Semaphore>,
    in_flight: Places,
    rate: Option<Arc<Rate>>,
    refused: Refused,
    closed_told: Told,
    refused_told: Told,
}

impl Limits {
    /// The limits that `settings` ask for.
    pub fn of_settings(settings: &settings::Api) -> Self {
        let rate = NonZeroU32::new(settings.requests_per_second.get());
        let connections = Connections::new(
            settings.connections.get() as usize,
            settings.connections_per_address.get() as usize,
        );
        let in_flight = settings.requests_in_flight.get() as usize;
        Self {
            client_of: Client::of,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            in_flight: Places::new(in_flight.min(connections.under_way_max())),
            connections,
            rate: rate.map(|rate| Arc::new(Rate::new(rate, CLIENTS_MAX))),
            refused: Refused::default(),
            closed_told: Told::default(),
            refused_told: Told::default(),
        }
    }

    /// The same with several clients on this machine, by their addresses of loopback.
    #[cfg(test)]
    pub(crate) fn with_clients_on_loopback(self) -> Self {
        Self { client_of: Client::of_loopback, ..self }
    }

    /// Takes in a connection from `peer`, or none when it has to be closed. It takes a token as a request does.
    pub(super) fn connect(&self, peer: IpAddr) -> Option<Connection> {
        let client = (self.client_of)(peer);
        let is_too_often = self.rate.as_ref().is_some_and(|rate| rate.admit(client).is_err());
        let admission = if is_too_often { Admission::Full } else { self.connections.admit(client) };
        let (connection, of) = match admission {
            Admission::Free(connection) => return Some(connection),
            Admission::InPlace(connection) => (Some(connection), "whoever has most"),
            Admission::Full => (None, "the client"),
        };
        self.refused.get_or_create(&[("reason", "connections")]).inc();
        if self.closed_told.is_due() {
            tracing::warn!(client = %peer, of, "a connection is closed: a limit of [api] is reached");
        }
        connection
    }

    /// Turns of handshakes of TLS. Whoever has one waits for nobody.
    pub(crate) fn handshakes(&self) -> &Arc<Semaphore> {
        &self.handshakes
    }

    /// What has been refused so far.
    pub(crate) fn refused(&self) -> &Refused {
        &self.refused
    }

    fn refuse(&self, refusal: Refusal, method: &Method, path: &str) -> Response {
        self.refused.get_or_create(&[("reason", refusal.reason())]).inc();
        if self.refused_told.is_due() {
            tracing::warn!(
                reason = refusal.reason(),
                path,
                "requests are refused: a limit of [api] is reached"
            );
        }
        refusal.answer(method, path)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of_settings(&settings::Settings::default().api)
    }
}

/// When something was last logged: one line each time would be what fills the disk.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Option<Instant>>>);

impl Told {
    fn is_due(&self) -> bool {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        if is_due {
            *at = Some(Instant::now());
        }
        is_due
    }
}

/// Lets through what is within the limits. Whether this process lives can always be asked.
pub(crate) async fn within(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let client = peer.map(|ConnectInfo(peer)| (limits.client_of)(peer.ip()));
    if let (Some(rate), Some(client)) = (&limits.rate, client)
        && let Err(wait) = rate.admit(client)
    {
        return limits.refuse(Refusal::TooMany { wait }, request.method(), path);
    }
    if [HEALTHY.path(), READY.path()].contains(&path) {
        return next.run(request).await;
    }
    let Some(place) = limits.in_flight.take(client.unwrap_or(Client::Others)) else {
        return limits.refuse(Refusal::Busy, request.method(), path);
    };
    until_sent(next.run(request).await, place)
}

/// A bucket of tokens for each client, which holds those of one second.
#[derive(Debug)]
struct Rate {
    limiter: RateLimiter<Client, Buckets, MonotonicClock, NoOpMiddleware<Instant>>,
    forgot_at: Mutex<Instant>,
}

impl Rate {
    fn new(per_second: NonZeroU32, clients_max: usize) -> Self {
        let quota = Quota::per_second(per_second);
        Self {
            limiter: RateLimiter::new(
                quota,
                Buckets { of: HashMapStateStore::default(), clients_max },
                MonotonicClock,
            ),
            forgot_at: Mutex::new(Instant::now()),
        }
    }

    /// Takes a token of `client`'s; on error, how long until there is one. This machine itself is not limited: a proxy in
    /// front, a benchmark.
    fn admit(&self, client: Client) -> Result<(), Duration> {
        if client == Client::Local {
            return Ok(());
        }
        self.forget();
        let admitted = self.limiter.check_key(&client);
        admitted.map_err(|until| until.wait_time_from(MonotonicClock.now()))
    }

    fn forget(&self) {
        let mut forgot_at = self.forgot_at.lock().unwrap_or_else(PoisonError::into_inner);
        if forgot_at.elapsed() >= FORGET_EVERY {
            *forgot_at = Instant::now();
            drop(forgot_at);
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
    }
}

/// The buckets of so many clients, and one for all others.
#[derive(Debug)]
struct Buckets {
    of: HashMapStateStore<Client>,
    clients_max: usize,
}

impl StateStore for Buckets {
    type Key = Client;

    fn measure_and_replace<T, F, E>(&self, client: &Client, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let has_its_own = {
            let buckets = self.of.lock();
            buckets.len() < self.clients_max || buckets.contains_key(client)
        };
        self.of.measure_and_replace(if has_its_own { client } else { &Client::Others }, measure)
    }
}

impl ShrinkableKeyedStateStore<Client> for Buckets {
    fn retain_recent(&self, drop_below: Nanos) {
        self.of.retain_recent(drop_below);
    }

    fn shrink_to_fit(&self) {
        ShrinkableKeyedStateStore::shrink_to_fit(&self.of);
    }

    fn len(&self) -> usize {
        self.of.len()
    }

    fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn client(text: &str) -> Client {
        Client::of(text.parse().unwrap())
    }

    #[test]
    fn an_allowance_is_used_up_and_comes_back() {
        let rate = Rate::new(NonZeroU32::new(20).unwrap(), 4);
        let one = client("192.0.2.1");
        let spent = std::iter::repeat_with(|| rate.admit(one)).take(100).filter(Result::is_err).count();
        assert!(spent > 50, "{spent}");
        let wait = std::iter::repeat_with(|| rate.admit(one)).find_map(Result::err).unwrap();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
        assert_eq!(rate.admit(client("192.0.2.2")), Ok(()), "everybody has their own");
        assert_eq!(rate.admit(client("127.0.0.1")), Ok(()));
    }

    #[test]
    fn connections_take_tokens_too() {
        let settings =
            settings::load(None, [("OS_UPGRADE_API__REQUESTS_PER_SECOND".into(), "2".into())]).unwrap();
        let limits = Limits::of_settings(&settings.api);
        let connect = |peer: &str| limits.connect(peer.parse().unwrap()).is_some();
        let served = (0..20).filter(|_| connect("192.0.2.1")).count();
        assert!((2..10).contains(&served), "{served}");
        assert!(connect("192.0.2.2"));
        assert!((0..20).all(|_| connect("127.0.0.1")));
    }

    #[test]
    fn many_clients_take_bounded_memory() {
        let rate = Rate::new(NonZeroU32::new(1).unwrap(), 100);
        let admitted = (0..10_000_u32).filter(|number| {
            rate.admit(Client::of(Ipv6Addr::from_bits(u128::from(*number) << 64 | 1 << 120).into())).is_ok()
        });
        assert_eq!(admitted.count(), 101, "what is over shares one allowance");
        assert_eq!(rate.limiter.len(), 101);
    }

    #[test]
    fn who_is_known_keeps_an_own_allowance() {
        let rate = Rate::new(NonZeroU32::new(100).unwrap(), 4);
        let known = client("192.0.2.0");
        assert_eq!(rate.admit(known), Ok(()));
        let mut others = (1..=200_u8).map(|last| Client::of([192, 0, 2, last].into()));
        assert!(others.any(|other| rate.admit(other).is_err()), "many share one");
        assert_eq!(rate.admit(known), Ok(()));
    }
}
