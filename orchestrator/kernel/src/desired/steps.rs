//! What follows from what hosts and providers have said, once time has passed.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use super::fact::DesiredFact;
use crate::fact::Fact;
use crate::state::State;
use crate::view::View;

/// Hosts that have something from before the last restoration, of which this site knows nothing, are to have nothing. They may have reported
/// that after the delivery was resumed.
pub(crate) fn find_unknown(state: &State, view: &View) -> Option<Fact> {
    let is_resumed = state.epoch() <= state.desired.resumed;
    is_resumed.then(|| state.find_unknown(view))?.map(Into::into)
}

/// Providers that fail for every host, and those that had failed so and answer again.
pub(crate) fn judge_providers<'a>(state: &'a State, view: &'a View) -> impl Iterator<Item = Fact> + 'a {
    let providers = state.config.iter().flat_map(|config| &config.config_providers);
    providers.filter_map(|provider| {
        let polls = view.polls.as_ref()?.get(&provider.name);
        let is_failed = state.desired.failed.contains_key(&provider.name);
        let recovered = || DesiredFact::ProviderRecovered { provider: provider.name.clone() };
        let is_answering = polls.is_some_and(|polls| polls.values().any(|poll| poll.failure.is_none()));
        if is_answering {
            return is_failed.then(|| recovered().into());
        }
        let mut hosts = state.hosts_of(view, provider).peekable();
        if hosts.peek().is_none() {
            return is_failed.then(|| recovered().into());
        }
        let failed = |host: &'a HostName| {
            let failure = polls?.get(host)?.failure.as_ref()?;
            failure.is_of_provider().then_some((host, failure))
        };
        let first = hosts.peek().copied().and_then(failed).filter(|_| !is_failed);
        let (host, failure) = first.filter(|_| hosts.all(|host| failed(host).is_some()))?;
        let (provider, host, failure) = (provider.name.clone(), host.clone(), failure.clone());
        Some(DesiredFact::ProviderFailed { provider, host, failure }.into())
    })
}

/// Hosts whose metadata are others than providers were told.
pub(crate) fn find_changed_metadata<'a>(
    state: &'a State,
    view: &'a View,
    now: DateTime<Utc>,
) -> impl Iterator<Item = Fact> + 'a {
    let providers = state.config.iter().flat_map(|config| config.hook_providers());
    providers.filter_map(move |provider| state.find_changed_metadata(view, provider, now).map(Into::into))
}
