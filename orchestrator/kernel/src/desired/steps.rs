//! What follows from what hosts and providers have said, once time has passed.

use imbl::OrdMap;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::Failure;

use super::fact::DesiredFact;
use crate::fact::Fact;
use crate::state::State;
use crate::view::{Poll, View};

/// The most hosts that are told at once that they are to have nothing.
const FOUND_AT_ONCE_MAX: usize = 1000;

/// Hosts that have something from before the last restoration, of which this site knows nothing, are to have nothing. They may have reported
/// that after the delivery was resumed, or take no part any more.
pub(crate) fn find_unknown(state: &State, view: &View) -> Option<Fact> {
    let epoch = state.epoch();
    // Without a restoration, the manifest that ends what a host has is known until it is stored.
    if epoch == 0 || epoch > state.desired.resumed {
        return None;
    }
    let is_unknown = |host: &&HostName| {
        let is_old = state
            .told(view, host)
            .is_some_and(|applied| applied.revision.epoch < epoch && !applied.items.is_empty());
        is_old && !state.desired.hosts.contains_key(*host) && !state.desired.found.contains(*host)
    };
    let hosts: Vec<_> = view.applied.keys().filter(is_unknown).take(FOUND_AT_ONCE_MAX).cloned().collect();
    (!hosts.is_empty()).then(|| DesiredFact::UnknownItemsFound { hosts }.into())
}

/// Providers of which no host gets an answer any more, and those that had failed so and answer again.
pub(crate) fn judge_providers<'a>(state: &'a State, view: &'a View) -> impl Iterator<Item = Fact> + 'a {
    let providers = state.config.iter().flat_map(|config| &config.config_providers);
    providers.filter_map(|provider| {
        let polls = view.polls.as_ref()?.get(&provider.name)?;
        let is_failed = state.desired.failed.contains_key(&provider.name);
        let provider = provider.name.clone();
        match first_failure(polls) {
            Some((host, failure)) if !is_failed => {
                Some(DesiredFact::ProviderFailed { provider, host, failure }.into())
            }
            None if is_failed && !polls.is_empty() => {
                Some(DesiredFact::ProviderRecovered { provider }.into())
            }
            Some(_) | None => None,
        }
    })
}

/// The first host about which asking failed, and how, if it failed for each that was asked about.
fn first_failure(polls: &OrdMap<HostName, Poll>) -> Option<(HostName, Failure)> {
    let mut failures = polls.iter().map(|(host, poll)| Some((host, poll.failure.as_ref()?)));
    let (host, failure) = failures.next()??;
    failures.all(|it| it.is_some()).then(|| (host.clone(), failure.clone()))
}
