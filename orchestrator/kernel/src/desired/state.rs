//! What hosts are to have, as the state knows it.

use chrono::{DateTime, Utc};
use imbl::{OrdMap, OrdSet};
use os_upgrade_protocol::limits::ITEMS_MAX;
use os_upgrade_protocol::{HostName, ItemId, Revision};
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{Failure, ProviderName};
use os_upgrade_scheduler::{UnitName, UnitState};
use serde::{Deserialize, Serialize};

use super::hooks::{HookDevice, HookProvider};
use crate::config::ConfigProvider;
use crate::left_out::is_default;

/// The most items of which a host remembers that they are to be deleted: as many as a manifest may have, all of which may go at once. Of more,
/// the oldest are forgotten: they are deleted with whatever else is older than the fence of a later leader.
const REPLACED_MAX: usize = ITEMS_MAX;

/// What hosts are to have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Desired {
    /// How many times something has changed of what hosts are to have: of two manifests of one epoch, the one after more changes is newer.
    pub changes: u64,
    /// The hosts that are to have something, or had.
    pub hosts: OrdMap<HostName, DesiredHost>,
    /// The hosts whose manifest is not the stored one.
    #[serde(default, skip_serializing_if = "OrdSet::is_empty")]
    pub outdated: OrdSet<HostName>,
    /// The hosts without an entry in `hosts` whose empty manifest is stored, each with the number of changes after which it had nothing, until
    /// the host is purged: what a host reports of an earlier manifest says nothing of this one.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub emptied: OrdMap<HostName, u64>,
    /// After how many changes a provider was defined anew with another file: what was sealed before is for the file before. Left out for a
    /// provider that has always named the same file.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub files: OrdMap<ProviderName, u64>,
    /// The last restoration after which hosts were told again what they are to have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resumed: u64,
    /// The hosts that were found, since the last restoration, to have something of which the site knew nothing. They were told so, whether or not
    /// they have read it yet.
    #[serde(default, skip_serializing_if = "OrdSet::is_empty")]
    pub found: OrdSet<HostName>,
    /// The providers of which no host gets an answer any more.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub failed: OrdMap<ProviderName, FailedProvider>,
    /// What providers of kind `hooks` are to be told. One without hosts and tokens may be absent.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub hooks: OrdMap<ProviderName, HookProvider>,
    /// How many times a provider was to be told something of a host. Each time has its number, which is its cause.
    #[serde(default, skip_serializing_if = "is_default")]
    pub causes: u64,
}

/// A provider of which no host gets an answer any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailedProvider {
    /// A host about which it was asked.
    pub host: HostName,
    /// How that failed.
    pub failure: Failure,
    /// When that was found.
    pub since: DateTime<Utc>,
}

/// What a host is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DesiredHost {
    /// One item of each provider that gave something.
    pub items: OrdMap<ProviderName, DesiredItem>,
    /// The units that it is to run.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub units: OrdMap<UnitName, DesiredUnit>,
    /// After how many changes that became so.
    pub changed: u64,
    /// The manifest that is stored; absent until one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Revision>,
    /// Items to delete once the manifest is stored that does not name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ItemId>,
    /// The epoch of its manifests if an operator has resumed its delivery, unless that of the site is greater.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resumed: u64,
}

/// An item in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DesiredItem {
    pub id: ItemId,
    /// How many bytes it has, sealed.
    pub bytes: u64,
    /// What it was sealed for.
    pub sealed: Revision,
    /// A value that is the same for the same content, file and key of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The provider's hash of it, sealed under the strongbox key; absent without that key, and of kind `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Whether its provider names another file by now, and has given nothing for that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub other_file: bool,
    /// When it became what the host is to have.
    pub since: DateTime<Utc>,
}

impl DesiredItem {
    /// It is for another file than its provider names by now.
    fn outdate_file(&mut self) {
        self.fingerprint = None;
        self.other_file = true;
    }
}

/// A unit that a host is to run. Its contents are the unit's; other contents are another item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DesiredUnit {
    pub state: UnitState,
    /// The number of its placement on this host.
    pub placement: u64,
    /// After how many changes that became so: what its item is stored for.
    pub changed: u64,
}

impl DesiredUnit {
    /// What its item is stored for, on a host whose manifests are of this epoch.
    pub fn sealed(&self, epoch: u64) -> Revision {
        Revision { epoch, sequence: self.changed }
    }

    /// The id of its item, on a host whose manifests are of this epoch.
    pub fn id(&self, epoch: u64) -> ItemId {
        ItemId::new(&format!("unit-{epoch}-{}", self.changed)).expect("a word of letters, digits and hyphens")
    }
}

impl Desired {
    /// Whether no host was ever to have something.
    pub fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// The item of `provider` that `host` is to have.
    pub fn item(&self, host: &HostName, provider: &ProviderName) -> Option<&DesiredItem> {
        self.hosts.get(host)?.items.get(provider)
    }

    /// `host` is to have `item` of `provider`. The provider may have been asked before it was defined anew with another file.
    pub(super) fn store(&mut self, host: &HostName, provider: &ProviderName, mut item: DesiredItem) {
        if self.files.get(provider).is_some_and(|since| item.sealed.sequence <= *since) {
            item.outdate_file();
        }
        let before = self.change(host).items.insert(provider.clone(), item);
        self.replace(host, before.map(|item| item.id));
    }

    /// `provider` names another file by now: what it gave before is sealed and stored anew once it gives it again, even if it is the same.
    pub(super) fn outdate_items(&mut self, provider: &ProviderName) {
        let having = self.hosts.iter().filter(|(_, host)| host.items.contains_key(provider));
        let having: Vec<HostName> = having.map(|(name, _)| name.clone()).collect();
        for name in having {
            if let Some(item) = self.hosts.get_mut(&name).and_then(|host| host.items.get_mut(provider)) {
                item.outdate_file();
            }
        }
    }

    /// `provider`, which may be asked just now, is defined anew with another file.
    pub(super) fn name_other_file(&mut self, provider: &ProviderName) {
        self.changes += 1;
        self.files.insert(provider.clone(), self.changes);
    }

    /// `host` is to have nothing of `provider`.
    pub(super) fn revoke(&mut self, host: &HostName, provider: &ProviderName) {
        if self.item(host, provider).is_some() {
            let before = self.change(host).items.remove(provider);
            self.replace(host, before.map(|item| item.id));
        }
    }

    /// The unit `name` that `host` is to run.
    pub fn unit(&self, host: &HostName, name: &UnitName) -> Option<&DesiredUnit> {
        self.hosts.get(host)?.units.get(name)
    }

    /// `host`, whose manifests are of this epoch, is to run the unit `name`, or to run it otherwise than before.
    pub(crate) fn run_unit(
        &mut self,
        host: &HostName,
        epoch: u64,
        name: &UnitName,
        (state, placement): (UnitState, u64),
    ) {
        let entry = self.change(host);
        let unit = DesiredUnit { state, placement, changed: entry.changed };
        let before = entry.units.insert(name.clone(), unit);
        self.replace(host, before.map(|unit| unit.id(epoch)));
    }

    /// `host`, whose manifests are of this epoch, is no longer to run the unit `name`.
    pub(crate) fn stop_unit(&mut self, host: &HostName, epoch: u64, name: &UnitName) {
        if self.unit(host, name).is_some() {
            let before = self.change(host).units.remove(name);
            self.replace(host, before.map(|unit| unit.id(epoch)));
        }
    }

    /// `host`, whose manifests are of this epoch, takes no part any more: it is to have nothing, and providers are told nothing of it.
    pub(crate) fn forget(&mut self, host: &HostName, epoch: u64) {
        self.revoke_all(host, epoch);
        self.forget_device(host);
    }

    /// `host` is to have nothing.
    fn revoke_all(&mut self, host: &HostName, epoch: u64) {
        if self.hosts.contains_key(host) {
            let entry = self.change(host);
            let items = std::mem::take(&mut entry.items);
            let units = std::mem::take(&mut entry.units);
            let units = units.into_iter().map(|(_, unit)| unit.id(epoch));
            self.replace(host, items.into_iter().map(|(_, item)| item.id).chain(units));
        }
    }

    /// The manifest of `host` that follows from the state is stored as `revision`. Of a host that is to have nothing, it is enough to know since
    /// when: the next manifest is newer, since changes are counted for all hosts.
    pub(super) fn stored(&mut self, host: &HostName, revision: Revision) {
        self.outdated.remove(host);
        let Some(entry) = self.hosts.get_mut(host) else { return };
        entry.manifest = Some(revision);
        entry.replaced.clear();
        if entry.items.is_empty() && entry.units.is_empty() && entry.resumed <= self.resumed {
            self.emptied.insert(host.clone(), entry.changed);
            self.hosts.remove(host);
        }
    }

    /// `host` was removed, and what was stored of it is deleted, its reports included.
    pub(crate) fn purged(&mut self, host: &HostName) {
        self.emptied.remove(host);
    }

    /// What hosts have may be newer than this state: each is told anew what it is to have, once an operator says so. The items may be gone, so
    /// what providers give is sealed and stored anew even if it is the same, and units have items of the new epoch. Call-back tokens that were
    /// revoked since must not count again.
    pub(crate) fn restored(&mut self) {
        let unsealed = |(provider, item)| (provider, DesiredItem { fingerprint: None, ..item });
        let hosts = std::mem::take(&mut self.hosts).into_iter();
        let hosts = hosts.map(|(name, host)| {
            let items = host.items.into_iter().map(unsealed).collect();
            (name, DesiredHost { items, ..host })
        });
        self.hosts = hosts.collect();
        self.outdated = self.hosts.keys().cloned().collect();
        self.found = OrdSet::new();
        let providers: Vec<ProviderName> = self.hooks.keys().cloned().collect();
        for name in providers {
            if let Some(provider) = self.hooks.get_mut(&name) {
                provider.tokens.clear();
            }
        }
    }

    /// Delivery to `host` goes on in `epoch`.
    pub(super) fn resume(&mut self, host: &HostName, epoch: u64) {
        self.change(host).resumed = epoch;
    }

    /// `hosts`, which are to have nothing, are told so.
    pub(super) fn unknown_found(&mut self, hosts: &[HostName]) {
        for host in hosts {
            self.change(host);
            self.found.insert(host.clone());
        }
    }

    /// What `provider`, which is of kind `hooks`, is told of `host`.
    pub(super) fn hook_device_mut(
        &mut self,
        provider: &ProviderName,
        host: &HostName,
    ) -> Option<&mut HookDevice> {
        self.hooks.get_mut(provider)?.devices.get_mut(host)
    }

    /// `host` joins `provider`, which is of kind `hooks`: it is told that, unless it is not told of such events.
    pub(super) fn join(&mut self, provider: &ConfigProvider, host: &HostName) {
        let known = self.hooks.entry(provider.name.clone()).or_default();
        known.devices.insert(host.clone(), HookDevice::default());
        if provider.hears(HookEvent::FleetJoin) {
            self.tell(&provider.name, host, HookEvent::FleetJoin);
        }
    }

    /// `provider` is to be told of an `event` of `host`, if that has joined it.
    pub(super) fn tell(&mut self, provider: &ProviderName, host: &HostName, event: HookEvent) {
        let cause = self.causes + 1;
        if let Some(device) = self.hook_device_mut(provider, host) {
            device.tell(event, cause);
            self.causes = cause;
        }
    }

    /// No provider is told anything of `host` any more.
    pub(super) fn forget_device(&mut self, host: &HostName) {
        let knowing = self.hooks.iter().filter(|(_, provider)| provider.devices.contains_key(host));
        let knowing: Vec<ProviderName> = knowing.map(|(name, _)| name.clone()).collect();
        for name in knowing {
            if let Some(provider) = self.hooks.get_mut(&name) {
                provider.devices.remove(host);
            }
        }
    }

    /// What `host` is to have changes, or it is told anew.
    pub(crate) fn change(&mut self, host: &HostName) -> &mut DesiredHost {
        self.changes += 1;
        self.outdated.insert(host.clone());
        self.emptied.remove(host);
        let entry = self.hosts.entry(host.clone()).or_default();
        entry.changed = self.changes;
        entry
    }

    /// Items of `host` are no longer named.
    fn replace(&mut self, host: &HostName, items: impl IntoIterator<Item = ItemId>) {
        let Some(entry) = self.hosts.get_mut(host) else { return };
        entry.replaced.extend(items);
        let surplus = entry.replaced.len().saturating_sub(REPLACED_MAX);
        entry.replaced.drain(..surplus);
    }
}
