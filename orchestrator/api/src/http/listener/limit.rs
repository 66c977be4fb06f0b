//! Limits before any endpoint: how many connections and requests there may be at once, and each client's request rate.
//!
//! Size and duration of a single request are limited where it is read.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::{HashMapStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};
use os_upgrade_api_types::route::Dialect;
use os_upgrade_api_types::routes::health::{HEALTHY, READY};
use os_upgrade_settings as settings;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::Semaphore;

use super::client::{Client, Peer};
use super::connections::{Admission, Connection, Connections};
use super::permits::Permits;
use super::sending::hold_until_sent;
use super::subscribers::{CutOff, Full, Seat, Subscribers};
use crate::http::refusal::Refusal;

/// Most clients with a token bucket of their own; further ones share a bucket. A bucket that is full again, within a
/// second, is dropped.
const CLIENTS_MAX: usize = 65_536;
/// How often full buckets are dropped.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(1);
/// How many TLS handshakes compute keys at once. More could take all cores from the run.
const HANDSHAKES_MAX: usize = 2;
/// Shortest time between two log lines about closed connections, and about refused requests.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Refused connections and requests: label `reason`, which is `connections`, `busy`, `rate` or `subscribers`.
pub(crate) type Refused = Family<[(&'static str, &'static str); 1], Counter>;

/// The limits and their current use. Cheap to clone; clones share one state.
#[derive(Debug, Clone)]
pub struct Limits {
    client_of: fn(IpAddr) -> Client,
    connections: Connections,
    handshakes: Arc<Semaphore>,
    in_flight: Permits,
    rate: Option<Arc<Rate>>,
    subscribers: Subscribers,
    refused: Refused,
    closed_log: LogThrottle,
    refused_log: LogThrottle,
}

impl Limits {
    /// The limits configured in `settings`.
    pub fn from_settings(settings: &settings::Api) -> Self {
        let rate = NonZeroU32::new(settings.requests_per_second.get());
        let connections = Connections::new(
            settings.connections.get() as usize,
            settings.connections_per_address.get() as usize,
        );
        let in_flight = settings.requests_in_flight.get() as usize;
        Self {
            client_of: Client::of,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            in_flight: Permits::new(in_flight.min(connections.under_way_max())),
            connections,
            rate: rate.map(|rate| Arc::new(Rate::new(rate, CLIENTS_MAX))),
            subscribers: Subscribers::default(),
            refused: Refused::default(),
            closed_log: LogThrottle::default(),
            refused_log: LogThrottle::default(),
        }
    }

    /// The same, but loopback addresses other than 127.0.0.1 are separate clients.
    #[cfg(test)]
    pub(crate) fn with_clients_on_loopback(self) -> Self {
        Self { client_of: Client::of_loopback, ..self }
    }

    /// Admits a connection from `peer`, at the price of a token, as for a request. `None` means close it.
    pub(super) fn connect(&self, peer: Peer) -> Option<Connection> {
        let client = match peer {
            Peer::Address(address) => (self.client_of)(address.ip()),
            Peer::User(_) => Client::Local,
        };
        let is_over_rate = self.rate.as_ref().is_some_and(|rate| rate.admit(client).is_err());
        let admission = if is_over_rate { Admission::Refused } else { self.connections.admit(client) };
        let (connection, closed_of) = match admission {
            Admission::Admitted(connection) => return Some(connection),
            Admission::Displacing(connection) => (Some(connection), "the client with the most connections"),
            Admission::Refused => (None, "the client"),
        };
        self.refused.get_or_create(&[("reason", "connections")]).inc();
        if self.closed_log.is_due() {
            tracing::warn!(client = %peer, of = closed_of, "closed a connection: a limit of [api] is reached");
        }
        connection
    }

    /// Permits for computing the keys of a TLS handshake. They are not held while waiting for the client.
    pub(crate) fn handshakes(&self) -> &Arc<Semaphore> {
        &self.handshakes
    }

    /// A place for a client that follows events from `peer`.
    pub(crate) fn subscribe(&self, peer: Option<IpAddr>) -> Result<Seat, Full> {
        self.subscribers.take(peer.map_or(Client::Others, self.client_of)).inspect_err(|_| {
            self.refused.get_or_create(&[("reason", "subscribers")]).inc();
            if self.refused_log.is_due() {
                tracing::warn!("streams of events are refused: there are too many");
            }
        })
    }

    /// The clients that follow events.
    pub(crate) const fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    /// Counts of refused connections and requests.
    pub(crate) fn refused(&self) -> &Refused {
        &self.refused
    }

    fn refuse(&self, refusal: Refusal, request: &Request, dialect: Dialect) -> Response {
        self.refused.get_or_create(&[("reason", refusal.reason())]).inc();
        if self.refused_log.is_due() {
            tracing::warn!(
                reason = refusal.reason(),
                path = request.uri().path(),
                "requests are refused: a limit of [api] is reached"
            );
        }
        refusal.answer(request.method(), dialect)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::from_settings(&settings::Settings::default().api)
    }
}

/// When something was last logged. A line for each refusal could fill the disk.
#[derive(Debug, Clone, Default)]
struct LogThrottle(Arc<Mutex<Option<Instant>>>);

impl LogThrottle {
    fn is_due(&self) -> bool {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = at.is_none_or(|at| at.elapsed() >= LOG_INTERVAL);
        if is_due {
            *at = Some(Instant::now());
        }
        is_due
    }
}

/// Passes on requests within the limits. The health endpoints need no permit, only a token.
pub(crate) async fn enforce(
    State((limits, dialect)): State<(Limits, Dialect)>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    // Programs on this machine have no address, at the Unix socket.
    let client = peer.map_or(Client::Local, |ConnectInfo(peer)| (limits.client_of)(peer.ip()));
    if let Some(rate) = &limits.rate
        && let Err(wait) = rate.admit(client)
    {
        return limits.refuse(Refusal::TooMany { wait }, &request, dialect);
    }
    if [HEALTHY.path(), READY.path()].contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let Some(permit) = limits.in_flight.take(client) else {
        return limits.refuse(Refusal::Busy, &request, dialect);
    };
    let response = next.run(request).await;
    if response.extensions().get::<Endless>().is_some() {
        return response;
    }
    hold_until_sent(response, permit)
}

/// Marks an answer without an end, whose client has a [`Seat`]. Neither the limits of requests and connections nor the time
/// for sending an answer apply to it.
#[derive(Debug, Clone)]
pub(crate) struct Endless(pub(crate) CutOff);

/// A token bucket for each client, which holds the tokens of one second.
#[derive(Debug)]
struct Rate {
    limiter: RateLimiter<Client, Buckets, MonotonicClock, NoOpMiddleware<Instant>>,
    cleaned_at: Mutex<Instant>,
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
            cleaned_at: Mutex::new(Instant::now()),
        }
    }

    /// Takes a token of `client`; the error is how long until the next one. Local clients, such as a proxy or a
    /// benchmark, are not limited.
    fn admit(&self, client: Client) -> Result<(), Duration> {
        if client == Client::Local {
            return Ok(());
        }
        self.clean_up();
        let admitted = self.limiter.check_key(&client);
        admitted.map_err(|until| until.wait_time_from(MonotonicClock.now()))
    }

    fn clean_up(&self) {
        let mut cleaned_at = self.cleaned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if cleaned_at.elapsed() >= CLEANUP_INTERVAL {
            *cleaned_at = Instant::now();
            drop(cleaned_at);
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
    }
}

/// The buckets of up to `clients_max` clients, and one for all others.
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
        let has_own_bucket = {
            let buckets = self.of.lock();
            buckets.len() < self.clients_max || buckets.contains_key(client)
        };
        self.of.measure_and_replace(if has_own_bucket { client } else { &Client::Others }, measure)
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
    fn bucket_empties_and_refills() {
        let rate = Rate::new(NonZeroU32::new(20).unwrap(), 4);
        let one = client("192.0.2.1");
        let spent = std::iter::repeat_with(|| rate.admit(one)).take(100).filter(Result::is_err).count();
        assert!(spent > 50, "{spent}");
        let wait = std::iter::repeat_with(|| rate.admit(one)).find_map(Result::err).unwrap();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
        assert_eq!(rate.admit(client("192.0.2.2")), Ok(()), "each client has its own bucket");
        assert_eq!(rate.admit(client("127.0.0.1")), Ok(()));
    }

    #[test]
    fn connections_take_tokens() {
        let settings =
            settings::load(None, [("OS_UPGRADE_API__REQUESTS_PER_SECOND".into(), "2".into())]).unwrap();
        let limits = Limits::from_settings(&settings.api);
        let connect = |peer: &str| {
            let address = SocketAddr::new(peer.parse().unwrap(), 1);
            limits.connect(Peer::Address(address)).is_some()
        };
        let served = (0..20).filter(|_| connect("192.0.2.1")).count();
        assert!((2..10).contains(&served), "{served}");
        assert!(connect("192.0.2.2"));
        assert!((0..20).all(|_| connect("127.0.0.1")));
    }

    #[test]
    fn memory_for_clients_is_bounded() {
        let rate = Rate::new(NonZeroU32::new(1).unwrap(), 100);
        let admitted = (0..10_000_u32).filter(|number| {
            rate.admit(Client::of(Ipv6Addr::from_bits(u128::from(*number) << 64 | 1 << 120).into())).is_ok()
        });
        assert_eq!(admitted.count(), 101, "further clients share one bucket");
        assert_eq!(rate.limiter.len(), 101);
    }

    #[test]
    fn known_client_keeps_its_bucket() {
        let rate = Rate::new(NonZeroU32::new(100).unwrap(), 4);
        let known = client("192.0.2.0");
        assert_eq!(rate.admit(known), Ok(()));
        let mut others = (1..=200_u8).map(|last| Client::of([192, 0, 2, last].into()));
        assert!(others.any(|other| rate.admit(other).is_err()), "further clients share one bucket");
        assert_eq!(rate.admit(known), Ok(()));
    }
}
