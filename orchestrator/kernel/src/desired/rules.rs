//! What other subjects ask of what hosts are to have.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{Applied, AppliedItem, HostName, ItemKind, Revision};
use os_upgrade_provider_rules::ProviderName;

use super::fact::DesiredFact;
use super::wait::ConfigurationWait;
use crate::config::ConfigProvider;
use crate::state::State;
use crate::view::View;

/// The most hosts that are told at once that they are to have nothing.
const FOUND_AT_ONCE_MAX: usize = 1000;

/// A configuration that fails on a host is a matter for a person once the host is to have it for so long: by then a worker that is there has
/// tried it about ten times.
const FAILED_AFTER: TimeDelta = TimeDelta::minutes(10);

/// How far what a provider gave for a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState<'a> {
    /// The host is to have nothing, and says nothing else.
    Nothing,
    /// The host has what it is to have.
    Applied,
    /// The host has not said yet that it has what it is to have.
    Pending,
    /// The host still has what it is not to have.
    Revoking,
    /// The host could not do as it was told, as its worker says.
    Failed { error: &'a str },
    /// The host is not told, until an operator resumes the delivery.
    Withheld,
}

/// A configuration that a host could not apply, or not revoke, and that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedItem<'a> {
    pub host: &'a HostName,
    /// The provider that gave it, which may be gone.
    pub provider: ProviderName,
    /// Whether the provider is there, and gives something to the host.
    pub is_given: bool,
    /// Why, as the worker says.
    pub error: &'a str,
    /// Since when the host is to have it; absent if it is not to have it any more.
    pub since: Option<DateTime<Utc>>,
}

/// What a host has, or is to have, of a provider that gives it nothing any more: it is gone, does not select the host, or the host takes no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOver<'a> {
    pub provider: ProviderName,
    pub state: ItemState<'a>,
    /// Since when the host is to have it and keeps it, as `on-removal` said; absent if it is revoked.
    pub kept_since: Option<DateTime<Utc>>,
}

impl State {
    /// How far what `provider` gave for `host` is, as far as the host has reported. A report names no item that failed, so its error counts only
    /// if it is about the manifest that counts. An item for another file than the provider names is not what the host is to have in the end.
    pub fn item_state<'a>(&self, view: &'a View, host: &HostName, provider: &ProviderName) -> ItemState<'a> {
        let item = self.desired.item(host, provider);
        let applied = self.reported(view, host);
        let is_it = |it: &&AppliedItem| it.kind == ItemKind::Configuration && it.name == provider.as_str();
        let reported = applied.and_then(|applied| applied.items.iter().find(is_it));
        let has = reported.and_then(|reported| reported.id.as_ref());
        let is_of_manifest = applied.is_some_and(|it| it.revision >= self.desired_revision(host));
        let names_other_file = self.names_other_file(host, provider);
        match (item, reported.and_then(|reported| reported.error.as_deref())) {
            (Some(item), None) if has == Some(&item.id) && !names_other_file => ItemState::Applied,
            (None, None) if has.is_none() => ItemState::Nothing,
            (Some(_) | None, _) if !self.is_delivered(host) || self.is_ahead(view, host) => {
                ItemState::Withheld
            }
            (Some(_) | None, Some(error)) if is_of_manifest && !names_other_file => {
                ItemState::Failed { error }
            }
            (Some(_), Some(_) | None) => ItemState::Pending,
            (None, Some(_) | None) => ItemState::Revoking,
        }
    }

    /// Whether `provider` gives something to `host`, and names another file by now than what the host is to have of it is for.
    fn names_other_file(&self, host: &HostName, provider: &ProviderName) -> bool {
        let item = self.desired.item(host, provider);
        item.is_some_and(|item| item.other_file) && self.provider_of(provider, host).is_some()
    }

    /// Whether `host` takes part, was decided about, or is to have something. Whoever can publish reports can make up names of others.
    pub fn concerns_host(&self, host: &HostName) -> bool {
        self.enrolled(host).takes_part()
            || self.enrolment.knows(host)
            || self.desired.hosts.contains_key(host)
    }

    /// The configurations that hosts that this site knows cannot apply or revoke at `now`, as their workers say, and that somebody should look at.
    /// Workers try again, and do not say since when they fail: what a host is to have for less than ten minutes is left out.
    pub fn failed_items<'a>(
        &'a self,
        view: &'a View,
        now: DateTime<Utc>,
    ) -> impl Iterator<Item = FailedItem<'a>> {
        let of_host = move |host: &'a HostName| {
            let names = self.reported_names(view, host);
            names.into_iter().filter_map(move |name| self.failed_item(view, host, name, now))
        };
        let has_error = |applied: &Applied| applied.items.iter().any(|item| item.error.is_some());
        let failing = view.applied.iter().filter(move |(_, applied)| has_error(applied));
        let failing = failing.filter(move |(host, _)| self.concerns_host(host));
        failing.flat_map(move |(host, _)| of_host(host))
    }

    fn failed_item<'a>(
        &'a self,
        view: &'a View,
        host: &'a HostName,
        provider: ProviderName,
        now: DateTime<Utc>,
    ) -> Option<FailedItem<'a>> {
        let ItemState::Failed { error } = self.item_state(view, host, &provider) else { return None };
        let since = self.desired.item(host, &provider).map(|item| item.since);
        let is_given = self.provider_of(&provider, host).is_some();
        let is_old = since.is_none_or(|since| now - since >= FAILED_AFTER);
        is_old.then_some(FailedItem { host, provider, is_given, error, since })
    }

    /// What `host` has, or is to have, of providers that give it nothing any more: first what it is to have, then what it only reports, each by
    /// name.
    pub fn left_over<'a>(&'a self, view: &'a View, host: &HostName) -> Vec<LeftOver<'a>> {
        let desired = self.desired.hosts.get(host).into_iter();
        let desired = desired.flat_map(|desired| desired.items.keys().cloned());
        let mut reported = self.reported_names(view, host);
        reported.retain(|name| self.desired.item(host, name).is_none());
        let gone = desired.chain(reported).filter(|name| self.provider_of(name, host).is_none());
        let left_over = gone.map(|provider| LeftOver {
            state: self.item_state(view, host, &provider),
            kept_since: self.desired.item(host, &provider).map(|item| item.since),
            provider,
        });
        left_over.filter(|it| it.state != ItemState::Nothing).collect()
    }

    /// The configurations of which `host` says something. Names that no provider can have are left out.
    fn reported_names(&self, view: &View, host: &HostName) -> BTreeSet<ProviderName> {
        let items = self.reported(view, host).into_iter().flat_map(|applied| &applied.items);
        let items = items.filter(|item| item.kind == ItemKind::Configuration);
        items.filter_map(|item| ProviderName::new(&item.name).ok()).collect()
    }

    /// The provider `name`, if it selects `host` and that takes part.
    fn provider_of(&self, name: &ProviderName, host: &HostName) -> Option<&ConfigProvider> {
        let provider = self.config.as_ref()?.provider(name)?;
        (self.enrolled(host).takes_part() && provider.selects(host)).then_some(provider)
    }

    /// Which required configuration `host` lacks, and what it waits for; absent if it lacks none.
    pub(crate) fn unconfigured(
        &self,
        view: &View,
        host: &HostName,
        now: DateTime<Utc>,
    ) -> Option<(&ProviderName, ConfigurationWait)> {
        let providers = self.config.iter().flat_map(|config| &config.config_providers);
        let mut required = providers.filter(|provider| provider.required && provider.selects(host));
        required.find_map(|provider| Some((&provider.name, self.waits_for(view, provider, host, now)?)))
    }

    fn waits_for(
        &self,
        view: &View,
        provider: &ConfigProvider,
        host: &HostName,
        now: DateTime<Utc>,
    ) -> Option<ConfigurationWait> {
        if !self.has_approved_key(view, host) {
            return Some(ConfigurationWait::Key);
        }
        // Only the leader has asked, and only it decides.
        if let Some(polls) = &view.polls {
            let poll = polls.get(&provider.name).and_then(|polls| polls.get(host));
            let confirmed = poll.and_then(|poll| poll.confirmed_at);
            let is_fresh = |at: DateTime<Utc>| now - at <= provider.max_age.to_delta();
            // It may have said so before the run, or before it called back.
            let device = self.hook_device(&provider.name, host);
            let is_told = device.is_none_or(|device| device.pending.is_empty());
            let names_other_file = self.names_other_file(host, &provider.name);
            if !is_told || names_other_file || !confirmed.is_some_and(is_fresh) {
                let failure = poll.and_then(|poll| poll.failure.clone());
                return Some(ConfigurationWait::Provider { failure });
            }
        }
        match self.item_state(view, host, &provider.name) {
            ItemState::Applied | ItemState::Nothing => None,
            ItemState::Pending | ItemState::Revoking => Some(ConfigurationWait::Host { error: None }),
            ItemState::Failed { error } => Some(ConfigurationWait::Host { error: Some(error.to_owned()) }),
            ItemState::Withheld => Some(ConfigurationWait::Resumption),
        }
    }

    /// Whether `host` announces the key that was approved, to which what it is to have is sealed.
    pub fn has_approved_key(&self, view: &View, host: &HostName) -> bool {
        let pinned = self.enrolment.pinned(host);
        pinned.is_some() && view.announced_key(host) == pinned
    }

    /// The hosts about which `provider` is asked: they take part, it selects them, and something can be sealed to them.
    pub fn hosts_of<'a>(
        &'a self,
        view: &'a View,
        provider: &'a ConfigProvider,
    ) -> impl Iterator<Item = &'a HostName> {
        let hosts = self.enrolment.keys.keys().filter(|host| provider.selects(host));
        hosts.filter(|host| self.enrolled(host).takes_part() && self.has_approved_key(view, host))
    }

    /// The provider `name`, if `host` is to have what it gives.
    pub fn provider_for(&self, name: &ProviderName, host: &HostName) -> Option<&ConfigProvider> {
        self.enrolment.pinned(host)?;
        self.provider_of(name, host)
    }

    /// Whether `host` is told what it is to have: not after a restoration until an operator says so.
    pub fn is_delivered(&self, host: &HostName) -> bool {
        let resumed = self.desired.hosts.get(host).map_or(0, |host| host.resumed);
        self.epoch() <= resumed.max(self.desired.resumed)
    }

    /// Hosts that have something from before the last restoration, of which this site knows nothing, are to have nothing, unless they were told so.
    pub(super) fn find_unknown(&self, view: &View) -> Option<DesiredFact> {
        let epoch = self.epoch();
        // Without a restoration, the manifest that ends what a host has is known until it is stored.
        if epoch == 0 {
            return None;
        }
        let is_old = |host: &HostName| {
            let reported = self.reported(view, host);
            reported.is_some_and(|applied| applied.revision.epoch < epoch && !applied.items.is_empty())
        };
        let is_known =
            |host: &HostName| self.desired.hosts.contains_key(host) || self.desired.found.contains(host);
        let unknown = view.applied.keys().filter(|host| is_old(host) && !is_known(host));
        let hosts: Vec<_> = unknown.take(FOUND_AT_ONCE_MAX).cloned().collect();
        (!hosts.is_empty()).then_some(DesiredFact::UnknownItemsFound { hosts })
    }

    /// Whether the manifest of `host` with `revision` is still to be published.
    pub(super) fn is_manifest_due(&self, host: &HostName, revision: Revision) -> bool {
        self.desired.outdated.contains(host)
            && self.is_delivered(host)
            && self.desired_revision(host) == revision
    }

    /// What an item of `host` is sealed for that is sealed now.
    pub fn next_sealed(&self, host: &HostName) -> Revision {
        Revision { epoch: self.desired_epoch(host), sequence: self.desired.changes + 1 }
    }

    /// Whether `host` has reported a manifest that is newer than this site's for it, which its worker would refuse. It is left alone until an
    /// operator says what is to become of it.
    pub fn is_ahead(&self, view: &View, host: &HostName) -> bool {
        let changed = self.desired.hosts.get(host).map_or(self.desired.changes, |host| host.changed);
        let newest = Revision { epoch: self.desired_epoch(host), sequence: changed };
        self.reported(view, host).is_some_and(|applied| applied.revision > newest)
    }

    /// What `host` reports to have of this site.
    pub(crate) fn reported<'a>(&self, view: &'a View, host: &HostName) -> Option<&'a Applied> {
        view.applied(host).filter(|applied| applied.site == self.settings.site)
    }
}
