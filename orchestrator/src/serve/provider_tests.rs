//! Tests of providers for the API, by the adapter that also asks them for the site.

use std::time::Instant;

use os_upgrade_adapters::providers::Providers;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::ConfigProvider;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookOutcome;
use os_upgrade_provider_rules::{Failure, Outcome};
use os_upgrade_site::provider_tests::{ProviderTests, Test, TestOutcome, Tested, TestsProviders};

/// The longest wait: a request to the API takes 20 seconds at most.
const TIMEOUT_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
struct OfAdapter(Providers);

/// The tests that `providers` makes.
pub(super) fn of(providers: &Providers) -> ProviderTests {
    ProviderTests::new(OfAdapter(providers.clone()))
}

impl TestsProviders for OfAdapter {
    fn test<'a>(&'a self, provider: &'a ConfigProvider, host: &'a HostName) -> Test<'a> {
        Box::pin(async move {
            let start = Instant::now();
            let timeout = provider.timeout.min(TIMEOUT_MAX);
            let provider = ConfigProvider { timeout, ..provider.clone() };
            // Nothing is kept of it, neither connections nor secrets.
            let providers = self.0.apart();
            let outcome = if provider.is_hooks() {
                outcome_of_hook(providers.poll_once(&provider, host).await)
            } else {
                outcome_of_file(providers.get(&provider, host, None).await.outcome)
            };
            Tested { outcome, took: start.elapsed() }
        })
    }
}

fn outcome_of_file(outcome: Outcome) -> TestOutcome {
    match outcome {
        Outcome::Content { content, .. } => TestOutcome::Content { bytes: content.as_slice().len() },
        Outcome::Removed => TestOutcome::Nothing,
        // It was not asked under a condition.
        Outcome::Unchanged { .. } => TestOutcome::Failed(Failure::UnexpectedStatus { status: 304 }),
        Outcome::Failed(failure) => TestOutcome::Failed(failure),
    }
}

fn outcome_of_hook(outcome: HookOutcome) -> TestOutcome {
    match outcome {
        HookOutcome::Content(given) => TestOutcome::Content { bytes: given.bytes.as_slice().len() },
        HookOutcome::Unchanged => TestOutcome::Unchanged,
        HookOutcome::Revoked => TestOutcome::Nothing,
        HookOutcome::Failed(failure) => TestOutcome::Failed(failure),
    }
}
