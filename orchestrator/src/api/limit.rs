//! Limits of requests as a whole, before any endpoint: how many are under way at once, and how many a client may send.
//!
//! Sizes and times of single requests are limited where they are read.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::Semaphore;

use super::early::Refusal;
use crate::config;

/// Clients that are told apart at once; more than those share one allowance. Whoever sends nothing for a second is
/// forgotten.
const CLIENTS_MAX: usize = 65_536;
/// How often those who can be forgotten are.
const FORGET_EVERY: Duration = Duration::from_secs(1);
/// How often it is logged that requests are refused.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// How many requests were refused why: label `reason`, which is `busy` or `rate`.
pub(super) type Refused = Family<[(&'static str, &'static str); 1], Counter>;

/// The limits, and how far they are used up. Cheap to clone; clones are one.
#[derive(Debug, Clone)]
pub struct Limits {
    in_flight: Arc<Semaphore>,
    rate: Option<Arc<Rate>>,
    refused: Refused,
    told_at: Arc<Mutex<Option<Instant>>>,
}

impl Limits {
    /// The limits that `settings` ask for.
    pub fn of_settings(settings: &config::Api) -> Self {
        let rate = NonZeroU32::new(settings.requests_per_second.get());
        Self {
            in_flight: Arc::new(Semaphore::new(settings.requests_in_flight.get() as usize)),
            rate: rate.map(|rate| Arc::new(Rate::new(rate, CLIENTS_MAX))),
            refused: Refused::default(),
            told_at: Arc::default(),
        }
    }

    /// What has been refused so far.
    pub(super) fn refused(&self) -> &Refused {
        &self.refused
    }

    fn refuse(&self, refusal: Refusal, path: &str) -> Response {
        self.refused.get_or_create(&[("reason", refusal.reason())]).inc();
        // One line a request would be what fills the disk.
        let mut told_at = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        if told_at.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            *told_at = Some(Instant::now());
            tracing::warn!(
                reason = refusal.reason(),
                path,
                "requests are refused: a limit of [api] is reached"
            );
        }
        refusal.answer(path)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of_settings(&config::Settings::default().api)
    }
}

/// Lets through what is within the limits. Whether this process lives can always be asked.
pub(super) async fn within(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    if let (Some(rate), Some(peer)) = (&limits.rate, peer)
        && let Err(wait) = rate.admit(peer)
    {
        return limits.refuse(Refusal::TooMany { wait }, path);
    }
    if matches!(path, "/healthz" | "/readyz") {
        return next.run(request).await;
    }
    let Ok(_permit) = limits.in_flight.try_acquire() else {
        return limits.refuse(Refusal::Busy, path);
    };
    next.run(request).await
}

/// Who shares one allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Client {
    Address(IpAddr),
    /// Everybody for whom there is no place any more.
    Others,
}

impl Client {
    /// None for this machine itself, which is not limited: a proxy in front, a benchmark.
    fn of(peer: IpAddr) -> Option<Self> {
        match peer.to_canonical() {
            local if local.is_loopback() => None,
            IpAddr::V4(address) => Some(Self::Address(address.into())),
            // Whoever has one IPv6 address has the 2^64 of its network.
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                Some(Self::Address(Ipv6Addr::from_bits(network).into()))
            }
        }
    }
}

/// A bucket of tokens for each client, which holds those of one second.
#[derive(Debug)]
struct Rate {
    limiter: RateLimiter<Client, HashMapStateStore<Client>, MonotonicClock, NoOpMiddleware<Instant>>,
    clients_max: usize,
    forgot_at: Mutex<Instant>,
}

impl Rate {
    fn new(per_second: NonZeroU32, clients_max: usize) -> Self {
        let quota = Quota::per_second(per_second);
        Self {
            limiter: RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock),
            clients_max,
            forgot_at: Mutex::new(Instant::now()),
        }
    }

    /// Takes a token of `peer`'s; on error, how long until there is one.
    fn admit(&self, peer: IpAddr) -> Result<(), Duration> {
        let Some(client) = Client::of(peer) else { return Ok(()) };
        self.forget();
        let client = if self.limiter.len() < self.clients_max { client } else { Client::Others };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn who_shares_an_allowance() {
        for (peer, expected) in [
            ("127.0.0.1", None),
            ("127.3.2.1", None),
            ("::1", None),
            ("::ffff:127.0.0.1", None),
            ("192.0.2.1", Some("192.0.2.1")),
            ("::ffff:192.0.2.1", Some("192.0.2.1")),
            ("2001:db8:1:2:3:4:5:6", Some("2001:db8:1:2::")),
        ] {
            assert_eq!(Client::of(ip(peer)), expected.map(|text| Client::Address(ip(text))), "{peer}");
        }
    }

    #[test]
    fn an_allowance_is_used_up_and_comes_back() {
        let rate = Rate::new(NonZeroU32::new(20).unwrap(), 4);
        let one = ip("192.0.2.1");
        let spent = std::iter::repeat_with(|| rate.admit(one)).take(100).filter(Result::is_err).count();
        assert!(spent > 50, "{spent}");
        let wait = std::iter::repeat_with(|| rate.admit(one)).find_map(Result::err).unwrap();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
        assert_eq!(rate.admit(ip("192.0.2.2")), Ok(()), "everybody has their own");
        assert_eq!(rate.admit(ip("127.0.0.1")), Ok(()));
    }

    #[test]
    fn many_clients_take_bounded_memory() {
        let rate = Rate::new(NonZeroU32::new(1).unwrap(), 100);
        let admitted = (0..10_000_u32).filter(|number| {
            rate.admit(Ipv6Addr::from_bits(u128::from(*number) << 64 | 1 << 120).into()).is_ok()
        });
        assert_eq!(admitted.count(), 101, "what is over shares one allowance");
        assert_eq!(rate.limiter.len(), 101);
    }
}
