//! What other subjects ask of what hosts are to have.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Applied, AppliedItem, HostName, ItemKind, Revision};
use os_upgrade_provider_rules::ProviderName;

use super::fact::DesiredFact;
use super::wait::ConfigurationWait;
use crate::config::ConfigProvider;
use crate::state::State;
use crate::view::View;

/// The most hosts that are told at once that they are to have nothing.
const FOUND_AT_ONCE_MAX: usize = 1000;

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

impl State {
    /// How far what `provider` gave for `host` is, as far as the host has reported.
    pub fn item_state<'a>(&self, view: &'a View, host: &HostName, provider: &ProviderName) -> ItemState<'a> {
        let item = self.desired.item(host, provider);
        let applied = self.reported(view, host);
        let is_it = |it: &&AppliedItem| it.kind == ItemKind::Configuration && it.name == provider.as_str();
        let reported = applied.and_then(|applied| applied.items.iter().find(is_it));
        let has = reported.and_then(|reported| reported.id.as_ref());
        match (item, reported.and_then(|reported| reported.error.as_deref())) {
            (Some(item), None) if has == Some(&item.id) => ItemState::Applied,
            (None, None) if has.is_none() => ItemState::Nothing,
            (Some(_) | None, _) if !self.is_delivered(host) || self.is_ahead(view, host) => {
                ItemState::Withheld
            }
            (Some(_) | None, Some(error)) => ItemState::Failed { error },
            (Some(_), None) => ItemState::Pending,
            (None, None) => ItemState::Revoking,
        }
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
            if !is_told || !confirmed.is_some_and(is_fresh) {
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

    /// The last restoration as an epoch, in seconds since 1970; 0 if there was none.
    pub fn epoch(&self) -> u64 {
        u64::try_from(self.restored).unwrap_or_default()
    }

    /// The provider `name`, if `host` is to have what it gives.
    pub fn provider_for(&self, name: &ProviderName, host: &HostName) -> Option<&ConfigProvider> {
        let provider = self.config.as_ref()?.provider(name)?;
        let can_have = self.enrolled(host).takes_part() && self.enrolment.pinned(host).is_some();
        (can_have && provider.selects(host)).then_some(provider)
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

    /// How new the manifest of `host` is that follows from this state.
    pub fn desired_revision(&self, host: &HostName) -> Revision {
        let entry = self.desired.hosts.get(host);
        Revision { epoch: self.desired_epoch(host), sequence: entry.map_or(0, |entry| entry.changed) }
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
    pub(super) fn reported<'a>(&self, view: &'a View, host: &HostName) -> Option<&'a Applied> {
        view.applied(host).filter(|applied| applied.site == self.settings.site)
    }

    fn desired_epoch(&self, host: &HostName) -> u64 {
        self.epoch().max(self.desired.hosts.get(host).map_or(0, |host| host.resumed))
    }
}
