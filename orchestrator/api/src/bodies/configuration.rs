//! How far configuration of hosts is, and what keeps it from them.

use std::borrow::Cow;

use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::providers::{ConfigurationProgress, HostConfiguration};
use os_upgrade_api_types::routes::state::{AheadHosts, DeliveryTrouble, FailedProvider};
use os_upgrade_api_types::word::{ItemStep, Word};
use os_upgrade_console::{describe, without_key};
use os_upgrade_kernel::{ConfigProvider, ItemState, Poll, Withholding};
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::one_line;
use os_upgrade_site::published_state::PublishedState;

/// The longest error of a worker that is shown, in characters.
pub(crate) const ERROR_CHARS_MAX: usize = 300;

/// What `provider` said of `host` last, if this instance leads.
pub(crate) fn last_poll<'a>(
    published: &'a PublishedState,
    provider: &ConfigProvider,
    host: &HostName,
) -> Option<&'a Poll> {
    published.view.polls.as_ref()?.get(&provider.name)?.get(host)
}

/// The providers that select `host`, which takes part, and how far what each gave is there.
pub(crate) fn of_host<'a>(published: &'a PublishedState, host: &HostName) -> Vec<HostConfiguration<'a>> {
    if !published.state.enrolled(host).takes_part() {
        return Vec::new();
    }
    let providers = published.state.config.iter().flat_map(|config| &config.config_providers);
    let selecting = providers.filter(|provider| provider.selects(host));
    let configuration = |provider: &'a ConfigProvider| HostConfiguration {
        provider: provider.name.as_str().into(),
        progress: progress(published, provider, host),
    };
    selecting.map(configuration).collect()
}

/// What keeps configuration from hosts.
pub(crate) fn trouble(published: &PublishedState) -> Option<DeliveryTrouble<'_>> {
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
        withheld: Some(restored.len()).filter(|hosts| *hosts > 0),
        ahead: ahead
            .first()
            .map(|(first, _)| AheadHosts { hosts: ahead.len(), first: first.as_str().into() }),
        crossed_site: published.crossed_site.as_deref().map(Cow::from),
    };
    let is_none = trouble.failed_providers.is_empty()
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
    let (step, error) = match state.item_state(view, host, &provider.name) {
        ItemState::Failed { error } => (ItemStep::Failed, Some(one_line(error, ERROR_CHARS_MAX))),
        ItemState::Applied => (ItemStep::Applied, None),
        ItemState::Withheld => (ItemStep::Withheld, None),
        ItemState::Nothing | ItemState::Pending | ItemState::Revoking if !has_key => {
            let key = state.enrolment.key_state(host, view.announced_key(host));
            (ItemStep::NoKey, Some(without_key(key).to_owned()))
        }
        ItemState::Nothing => (ItemStep::Nothing, None),
        ItemState::Pending => (ItemStep::Pending, None),
        ItemState::Revoking => (ItemStep::Revoking, None),
    };
    let failure = poll.and_then(|poll| poll.failure.as_ref());
    ConfigurationProgress {
        state: Word::Known(step),
        detail: error.or_else(|| failure.map(|how| describe(how).to_string())),
        since: item.map(|item| Stamp(item.since)),
        confirmed_at: poll.and_then(|poll| poll.confirmed_at).map(Stamp),
    }
}
