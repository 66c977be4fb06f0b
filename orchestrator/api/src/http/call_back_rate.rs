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
/// Beyond so many buckets, those that are full again are dropped: of providers that are no longer configured.
const BUCKETS_MAX: usize = 64;

type Buckets =
    RateLimiter<ProviderName, HashMapStateStore<ProviderName>, MonotonicClock, NoOpMiddleware<Instant>>;

/// The bucket of each provider. Clones share one state.
#[derive(Debug, Clone)]
pub(crate) struct CallBackRate(Arc<Buckets>);

impl Default for CallBackRate {
    fn default() -> Self {
        let quota = Quota::per_second(PER_SECOND).allow_burst(BURST);
        Self(Arc::new(RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock)))
    }
}

impl CallBackRate {
    /// Takes a token of `provider`, whose call-back token was valid; the error is how long until the next one.
    pub(crate) fn admit(&self, provider: &ProviderName) -> Result<(), Duration> {
        if self.0.len() >= BUCKETS_MAX {
            self.0.retain_recent();
        }
        self.0.check_key(provider).map_err(|until| until.wait_time_from(MonotonicClock.now()))
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
    }
}
