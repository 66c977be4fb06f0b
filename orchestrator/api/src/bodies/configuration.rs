//! How far configuration of hosts is, and what keeps it from them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::providers::{ConfigurationProgress, HostConfiguration, LeftOver};
use os_upgrade_api_types::routes::state::{AheadHosts, DeliveryTrouble, FailedConfiguration, FailedProvider};
use os_upgrade_api_types::word::{ItemStep, Word};
use os_upgrade_console::{OTHER_FILE, describe, what_becomes, without_key};
use os_upgrade_kernel::{ConfigProvider, FailedItem, ItemState, LeftOver as LeftOverItem, Poll, Withholding};
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::one_line;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_site::published_state::PublishedState;

/// The longest error of a worker that is shown, in characters.
pub(crate) const ERROR_CHARS_MAX: usize = 300;

/// The most names of configurations that are listed as left over. Hosts may report any name, so names of what hosts are to have come first.
const LEFT_OVER_MAX: usize = 32;

/// What `provider` said of `host` last, if this instance leads.
pub(crate) fn last_poll<'a>(
    published: &'a PublishedState,
    provider: &ConfigProvider,
    host: &HostName,
) -> Option<&'a Poll> {
    published.view.polls.as_ref()?.get(&provider.name)?.get(host)
}

/// The providers that select `host`, if it takes part, and how far what each gave is there; then what is left over of others.
pub(crate) fn of_host<'a>(published: &'a PublishedState, host: &HostName) -> Vec<HostConfiguration<'a>> {
    let PublishedState { state, view, .. } = published;
    let takes_part = state.enrolled(host).takes_part();
    let providers = state.config.iter().flat_map(|config| &config.config_providers);
    let selecting = providers.filter(|provider| takes_part && provider.selects(host));
    let given = selecting.map(|provider| HostConfiguration {
        provider: provider.name.as_str().into(),
        left_over: false,
        progress: progress(published, provider, host),
    });
    let left_over = state.left_over(view, host).into_iter().take(LEFT_OVER_MAX).map(left_over_of_host);
    given.chain(left_over).collect()
}

fn left_over_of_host<'a>(item: LeftOverItem<'_>) -> HostConfiguration<'a> {
    let LeftOverItem { provider, state, kept_since } = item;
    let (step, error) = step_of(state);
    let fate = what_becomes(state, kept_since.is_some());
    let detail = error.map_or_else(|| fate.to_owned(), |error| format!("{error}; {fate}"));
    HostConfiguration {
        provider: provider.to_string().into(),
        left_over: true,
        progress: ConfigurationProgress {
            state: Word::Known(step),
            detail: Some(detail),
            since: kept_since.map(Stamp),
            confirmed_at: None,
        },
    }
}

/// What hosts that this site knows have, or are to have, of providers that give it to them no more: first the names of what some host is to
/// have, then those that hosts only report.
pub(crate) fn left_over(published: &PublishedState) -> Vec<LeftOver<'_>> {
    let PublishedState { state, view, .. } = published;
    let hosts: BTreeSet<&HostName> = state.desired.hosts.keys().chain(view.applied.keys()).collect();
    let mut found: BTreeMap<ProviderName, NameLeftOver<'_>> = BTreeMap::new();
    for host in hosts.into_iter().filter(|host| state.concerns_host(host)) {
        for LeftOverItem { provider, state: _, kept_since } in state.left_over(view, host) {
            let known = found.entry(provider).or_insert(NameLeftOver {
                first: host,
                hosts: 0,
                is_only_reported: true,
            });
            known.hosts += 1;
            known.is_only_reported &= kept_since.is_none();
        }
    }
    let mut found: Vec<(ProviderName, NameLeftOver<'_>)> = found.into_iter().collect();
    found.sort_by_key(|(_, known)| known.is_only_reported);
    let shown = found.into_iter().take(LEFT_OVER_MAX).map(|(name, NameLeftOver { first, hosts, .. })| {
        LeftOver { name: name.to_string().into(), hosts, first: first.as_str().into() }
    });
    shown.collect()
}

/// What is left over of one name.
struct NameLeftOver<'a> {
    /// The first host that has it, by name.
    first: &'a HostName,
    /// How many hosts have it.
    hosts: usize,
    /// Whether no host is to have it.
    is_only_reported: bool,
}

/// The configurations that hosts fail to apply or revoke at `now`: one of each provider, and one of those that give it no more, since hosts may
/// report any name.
fn failed_configurations(published: &PublishedState, now: DateTime<Utc>) -> Vec<FailedConfiguration<'_>> {
    let mut found: BTreeMap<Option<ProviderName>, FailedConfiguration<'_>> = BTreeMap::new();
    for FailedItem { host, provider, is_given, error, since } in
        published.state.failed_items(&published.view, now)
    {
        let first = || FailedConfiguration {
            provider: provider.to_string().into(),
            host: host.as_str().into(),
            error: one_line(error, ERROR_CHARS_MAX),
            since: since.map(Stamp),
            count: 0,
        };
        found.entry(is_given.then(|| provider.clone())).or_insert_with(first).count += 1;
    }
    found.into_values().collect()
}

/// What keeps configuration from hosts at `now`.
pub(crate) fn trouble(published: &PublishedState, now: DateTime<Utc>) -> Option<DeliveryTrouble<'_>> {
    let failed = published.state.desired.failed.iter().map(|(name, failed)| FailedProvider {
        name: name.as_str().into(),
        host: failed.host.as_str().into(),
        failure: describe(&failed.failure).to_string(),
        since: Stamp(failed.since),
    });
    let (ahead, restored): (Vec<_>, Vec<_>) = published
        .state
        .withheld_hosts(&published.view)
        .partition(|(_, why)| matches!(why, Withholding::Ahead));
    let trouble = DeliveryTrouble {
        failed_providers: failed.collect(),
        failed_configurations: failed_configurations(published, now),
        withheld: Some(restored.len()).filter(|hosts| *hosts > 0),
        ahead: ahead
            .first()
            .map(|(first, _)| AheadHosts { hosts: ahead.len(), first: first.as_str().into() }),
        crossed_site: published.crossed_site.as_deref().map(Cow::from),
    };
    let is_none = trouble.failed_providers.is_empty()
        && trouble.failed_configurations.is_empty()
        && trouble.withheld.is_none()
        && trouble.ahead.is_none()
        && trouble.crossed_site.is_none();
    (!is_none).then_some(trouble)
}

/// How far what `provider` gave for `host` is.
pub(crate) fn progress(
    published: &PublishedState,
    provider: &ConfigProvider,
    host: &HostName,
) -> ConfigurationProgress {
    let (state, view) = (&published.state, &published.view);
    let poll = last_poll(published, provider, host);
    let item = state.desired.item(host, &provider.name);
    let has_key = state.has_approved_key(view, host);
    let of_item = state.item_state(view, host, &provider.name);
    let says_more_than_key = match of_item {
        ItemState::Failed { .. } | ItemState::Applied | ItemState::Withheld => true,
        ItemState::Nothing | ItemState::Pending | ItemState::Revoking => false,
    };
    let (step, error) = if has_key || says_more_than_key {
        step_of(of_item)
    } else {
        let key = state.enrolment.key_state(host, view.announced_key(host));
        (ItemStep::NoKey, Some(without_key(key).to_owned()))
    };
    let failure = poll.and_then(|poll| poll.failure.as_ref()).map(|how| describe(how).to_string());
    let other_file = || item.is_some_and(|item| item.other_file).then(|| OTHER_FILE.to_owned());
    ConfigurationProgress {
        state: Word::Known(step),
        detail: error.or(failure).or_else(other_file),
        since: item.map(|item| Stamp(item.since)),
        confirmed_at: poll.and_then(|poll| poll.confirmed_at).map(Stamp),
    }
}

/// The word for `state`, and why the host could not do as it was told.
fn step_of(state: ItemState<'_>) -> (ItemStep, Option<String>) {
    match state {
        ItemState::Failed { error } => (ItemStep::Failed, Some(one_line(error, ERROR_CHARS_MAX))),
        ItemState::Applied => (ItemStep::Applied, None),
        ItemState::Withheld => (ItemStep::Withheld, None),
        ItemState::Nothing => (ItemStep::Nothing, None),
        ItemState::Pending => (ItemStep::Pending, None),
        ItemState::Revoking => (ItemStep::Revoking, None),
    }
}
