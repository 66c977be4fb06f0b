//! What a provider would say about a host, asked on demand by this instance. It is neither journaled nor in the published state, and nobody gets the
//! content.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use os_upgrade_kernel::ConfigProvider;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::Failure;
use tokio::sync::Semaphore;

/// What a provider says about a host, and how long that took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    pub outcome: TestOutcome,
    pub took: Duration,
}

/// What a provider says about a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    /// A content of so many bytes.
    Content { bytes: usize },
    /// That the host is to have nothing.
    Nothing,
    /// What it said before, which only who was told that knows.
    Unchanged,
    /// Nothing that counts.
    Failed(Failure),
}

/// What asking a provider returns.
pub type Test<'a> = Pin<Box<dyn Future<Output = Tested> + Send + 'a>>;

/// Who can ask providers.
pub trait TestsProviders: fmt::Debug + Send + Sync {
    /// What `provider` says about `host`.
    fn test<'a>(&'a self, provider: &'a ConfigProvider, host: &'a HostName) -> Test<'a>;
}

/// How many tests there are at once: each is a request to a server that may not answer.
const TESTS_MAX: usize = 2;

/// Asks providers for the API; without somebody who can ask, nobody is asked. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProviderTests(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    providers: Box<dyn TestsProviders>,
    turns: Semaphore,
}

impl ProviderTests {
    /// The tests that `providers` makes.
    pub fn new(providers: impl TestsProviders + 'static) -> Self {
        Self(Some(Arc::new(Limited { providers: Box::new(providers), turns: Semaphore::new(TESTS_MAX) })))
    }

    /// What `provider` says about `host`; `None` if nobody can ask, or as many are being asked as allowed.
    pub async fn test(&self, provider: &ConfigProvider, host: &HostName) -> Option<Tested> {
        let tests = self.0.as_ref()?;
        let _turn = tests.turns.try_acquire().ok()?;
        Some(tests.providers.test(provider, host).await)
    }
}
