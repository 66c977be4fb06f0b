//! What others ask of providers of kind `hooks`: what one is told of a host.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{ApplicationName, HostName};
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::{DeviceMetadata, HookEvent};

use super::fact::DesiredFact;
use super::hooks::HookDevice;
use crate::config::ConfigProvider;
use crate::enrolment::Enrolled;
use crate::state::State;
use crate::view::{SeenHost, View};

/// A provider is told of new metadata of a host at most this often.
const METADATA_PAUSE: TimeDelta = TimeDelta::minutes(10);
/// The most hosts of which a provider is to be told new metadata at once. The others follow.
const CHANGED_AT_ONCE_MAX: usize = 1000;

impl State {
    /// The provider `name`, if it is configured with the kind `hooks`.
    pub fn hook_provider(&self, name: &ProviderName) -> Option<&ConfigProvider> {
        self.config.as_ref()?.provider(name).filter(|provider| provider.is_hooks())
    }

    /// What `provider`, which is of kind `hooks`, is told of `host`; absent if that has not joined it.
    pub fn hook_device(&self, provider: &ProviderName, host: &HostName) -> Option<&HookDevice> {
        self.desired.hooks.get(provider)?.devices.get(host)
    }

    /// The metadata of `host` for `provider`, as far as they are known.
    pub fn hook_device_metadata(
        &self,
        view: &View,
        provider: &ConfigProvider,
        host: &HostName,
    ) -> DeviceMetadata {
        let seen = view.hosts.get(host);
        let spec = self.hook_device(&provider.name, host).map_or(0, |device| device.spec);
        DeviceMetadata {
            name: host.clone(),
            labels: labels(seen),
            owner: DeviceMetadata::owner_of(&provider.name),
            annotations: annotations(seen),
            generation: i64::try_from(spec).unwrap_or(i64::MAX),
            resource_version: format!("{spec}-{:x}", view.metadata_digest(host)),
            creation_timestamp: self.enrolled_since(view, host),
        }
    }

    /// When the key of `host` was approved, or the host itself; when it announced itself last, if neither was.
    fn enrolled_since(&self, view: &View, host: &HostName) -> DateTime<Utc> {
        let key = self.enrolment.keys.get(host).map(|pinned| pinned.since);
        let approval = match self.enrolled(host) {
            Enrolled::Approved(approval) => Some(approval.since),
            Enrolled::Auto | Enrolled::Pending | Enrolled::Withdrawn(_) => None,
        };
        let announced = || view.hosts.get(host).and_then(|seen| seen.announced_at);
        key.or(approval).or_else(announced).unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// The hosts that have other metadata at `now` than `provider` was told, if it is told of that. A host that is not seen, or announces a
    /// key that was not approved, says nothing.
    pub(super) fn find_changed_metadata(
        &self,
        view: &View,
        provider: &ConfigProvider,
        now: DateTime<Utc>,
    ) -> Option<DesiredFact> {
        let event = HookEvent::DeviceMetadataUpdate;
        if !provider.hears(event) {
            return None;
        }
        let known = self.desired.hooks.get(&provider.name)?;
        let is_changed = |host: &HostName, device: &HookDevice| {
            let told = device.told.filter(|told| now - told.since >= METADATA_PAUSE);
            told.is_some_and(|told| told.digest != view.metadata_digest(host))
        };
        let changed = known.devices.iter().filter(|&(host, device)| {
            !device.pending.contains_key(&event)
                && is_changed(host, device)
                && provider.selects(host)
                && self.enrolled(host).takes_part()
                && self.has_approved_key(view, host)
        });
        let hosts: Vec<HostName> = changed.take(CHANGED_AT_ONCE_MAX).map(|(host, _)| host.clone()).collect();
        let provider = provider.name.clone();
        (!hosts.is_empty()).then_some(DesiredFact::HookMetadataChanged { provider, hosts })
    }
}

/// The labels that a host announces.
fn labels(seen: Option<&SeenHost>) -> BTreeMap<String, String> {
    let labels = seen.into_iter().flat_map(|seen| &seen.labels);
    labels.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What else a host announces, as annotations.
fn annotations(seen: Option<&SeenHost>) -> BTreeMap<String, String> {
    let Some(seen) = seen else { return BTreeMap::new() };
    let applications: Vec<&str> = seen.applications.iter().map(ApplicationName::as_str).collect();
    let all = [
        ("os-upgrade/machine-id", seen.machine_id.clone()),
        ("os-upgrade/boot-id", seen.boot_id.clone()),
        ("os-upgrade/applications", (!applications.is_empty()).then(|| applications.join(","))),
        ("os-upgrade/group", seen.group.as_ref().map(ToString::to_string)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
