//! How often a provider may call back: a token bucket for each, of this instance.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use os_upgrade_provider_rules::ProviderName;

/// How many call-backs a provider may make at once. Each may name many hosts.
pub(crate) const BURST: NonZeroU32 = NonZeroU32::new(20).unwrap();
/// How many more it may make in each second.
const PER_SECOND: NonZeroU32 = NonZeroU32::MIN;
/// About how many hosts it may be asked again at once because of call-backs: of each, something is journaled.
const HOSTS_BURST: NonZeroU32 = NonZeroU32::new(20_000).unwrap();
/// About how many more in each second.
const HOSTS_PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
/// Beyond so many buckets, those that are full again are dropped: of providers that are no longer configured.
const BUCKETS_MAX: usize = 64;

type Buckets =
    RateLimiter<ProviderName, HashMapStateStore<ProviderName>, MonotonicClock, NoOpMiddleware<Instant>>;

/// The buckets of each provider. Clones share one state.
#[derive(Debug, Clone)]
pub(crate) struct CallBackRate {
    requests: Arc<Buckets>,
    hosts: Arc<Buckets>,
}

impl Default for CallBackRate {
    fn default() -> Self {
        let buckets = |per_second, burst| {
            let quota = Quota::per_second(per_second).allow_burst(burst);
            Arc::new(RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock))
        };
        Self { requests: buckets(PER_SECOND, BURST), hosts: buckets(HOSTS_PER_SECOND, HOSTS_BURST) }
    }
}

impl CallBackRate {
    /// Takes a token of `provider`, whose call-back token was valid; the error is how long until the next one.
    pub(crate) fn admit(&self, provider: &ProviderName) -> Result<(), Duration> {
        for buckets in [&self.requests, &self.hosts] {
            if buckets.len() >= BUCKETS_MAX {
                buckets.retain_recent();
            }
        }
        self.requests.check_key(provider).map_err(|until| until.wait_time_from(MonotonicClock.now()))
    }

    /// Takes tokens for so many hosts, about which the provider is asked again; the error is how long until there are enough.
    pub(crate) fn admit_hosts(&self, provider: &ProviderName, hosts: usize) -> Result<(), Duration> {
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX).min(HOSTS_BURST.get());
        let Some(hosts) = NonZeroU32::new(hosts) else { return Ok(()) };
        match self.hosts.check_key_n(provider, hosts) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(until)) => Err(until.wait_time_from(MonotonicClock.now())),
            Err(_) => unreachable!("no more than the bucket holds is taken"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_a_bucket() {
        let rate = CallBackRate::default();
        let [app, net] = ["app", "net"].map(|name| ProviderName::new(name).unwrap());
        let admitted = (0..BURST.get()).filter(|_| rate.admit(&app).is_ok()).count();
        assert_eq!(admitted, 20);
        let wait = std::iter::repeat_with(|| rate.admit(&app)).find_map(Result::err).unwrap();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(rate.admit(&net), Ok(()));
        assert_eq!(rate.admit_hosts(&app, 20_000), Ok(()));
        let wait = std::iter::repeat_with(|| rate.admit_hosts(&app, 1_000)).find_map(Result::err).unwrap();
        assert!((1..=20).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(rate.admit_hosts(&net, 1), Ok(()));
    }
}
