//! What facts change in what providers of kind `hooks` are to be told.
//!
//! Most of it follows from facts about something else: a host's key was approved, the configuration was replaced, a run started. A host
//! joins a provider once for each approval of its key: one that is no longer selected, and then selected again, has a new spec.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::HookEvent;

use super::hooks::ToldMetadata;
use crate::config::{Config, ConfigProvider};
use crate::run::Enlisted;
use crate::state::State;

impl State {
    pub(super) fn apply_token_drawn(&mut self, provider: &ProviderName, digest: &str) {
        self.desired.hooks.entry(provider.clone()).or_default().add_token(digest);
    }

    pub(super) fn apply_tokens_revoked(&mut self, provider: &ProviderName) {
        if let Some(known) = self.desired.hooks.get_mut(provider) {
            known.tokens.clear();
        }
    }

    pub(super) fn apply_metadata_changed(
        &mut self,
        provider: &ProviderName,
        hosts: &[HostName],
        at: DateTime<Utc>,
    ) {
        for host in hosts {
            self.desired.tell(provider, host, HookEvent::DeviceMetadataUpdate);
            let device = self.desired.hook_device_mut(provider, host);
            if let Some(told) = device.and_then(|device| device.told.as_mut()) {
                told.since = at;
            }
        }
    }

    pub(super) fn apply_answered(
        &mut self,
        (provider, host): (&ProviderName, &HostName),
        (event, cause): (HookEvent, u64),
        told: ToldMetadata,
        poll_interval: Option<u64>,
    ) {
        if let Some(device) = self.desired.hook_device_mut(provider, host) {
            device.answered((event, cause), told, poll_interval);
        }
    }

    /// The provider has called back: whichever events it is told of otherwise, it is told of a new spec, and answers with that.
    pub(super) fn apply_callback(&mut self, name: &ProviderName, hosts: &[HostName]) {
        let Some(config) = self.config.clone() else { return };
        let Some(provider) = config.hook_providers().find(|provider| provider.name == *name) else { return };
        for host in hosts.iter().filter(|host| provider.selects(host)) {
            self.desired.tell(name, host, HookEvent::DeviceSpecUpdate);
        }
    }

    /// An operator wants the provider, if it is of kind `hooks`, to be asked about `host`, or about all: it is told of a new spec.
    pub(super) fn apply_poll(&mut self, provider: &ProviderName, host: Option<&HostName>) {
        let devices = self.desired.hooks.get(provider).map(|known| known.devices.clone()).unwrap_or_default();
        let hosts: Vec<HostName> =
            devices.keys().filter(|&it| host.is_none_or(|host| host == it)).cloned().collect();
        self.apply_callback(provider, &hosts);
    }

    /// A key of `host` was approved: it joins the providers that select it, whatever they were told of it before.
    pub(crate) fn join_providers(&mut self, host: &HostName) {
        self.desired.forget_device(host);
        let Some(config) = self.config.clone() else { return };
        for provider in config.hook_providers().filter(|provider| provider.selects(host)) {
            self.desired.join(provider, host);
        }
    }

    /// A run starts with `hosts`: what those of them that take part are to have is said anew.
    pub(crate) fn tell_of_run(&mut self, hosts: &[Enlisted]) {
        let Some(config) = self.config.clone() else { return };
        for provider in config.hook_providers().filter(|it| it.hears(HookEvent::DeviceSpecUpdate)) {
            let hosts = hosts.iter().filter(|entry| entry.skipped.is_none()).map(|entry| &entry.host);
            for host in hosts.filter(|host| provider.selects(host)) {
                self.desired.tell(&provider.name, host, HookEvent::DeviceSpecUpdate);
            }
        }
    }

    /// The configuration is no longer `before`.
    pub(crate) fn follow_providers(&mut self, before: Option<&Config>) {
        let now = self.config.clone();
        let is_configured = |name: &ProviderName| {
            now.as_ref().is_some_and(|now| now.hook_providers().any(|provider| provider.name == *name))
        };
        let known = std::mem::take(&mut self.desired.hooks).into_iter();
        self.desired.hooks = known.filter(|(name, _)| is_configured(name)).collect();
        for provider in now.iter().flat_map(|now| now.hook_providers()) {
            let earlier = before.and_then(|before| before.provider(&provider.name));
            self.follow_provider(provider, earlier.filter(|earlier| earlier.is_hooks()));
        }
    }

    fn follow_provider(&mut self, provider: &ConfigProvider, earlier: Option<&ConfigProvider>) {
        let name = &provider.name;
        let devices = self.desired.hooks.get(name).map(|known| known.devices.clone()).unwrap_or_default();
        let is_other = earlier.is_some_and(|earlier| !earlier.is_same_question(provider));
        // Another server must not call back with what the one before was sent, nor that one any more.
        if earlier.is_some_and(|earlier| earlier.url.origin() != provider.url.origin()) {
            self.apply_tokens_revoked(name);
        }
        for host in devices.keys() {
            let is_selected = provider.selects(host);
            if let Some(device) = self.desired.hook_device_mut(name, host) {
                // A call-back leads to a new spec, whether or not the provider is told of others.
                let is_told =
                    |event: HookEvent| event == HookEvent::DeviceSpecUpdate || provider.hears(event);
                device.keep_pending(|event| is_selected && is_told(event));
            }
            let is_new = is_other || earlier.is_some_and(|earlier| !earlier.selects(host));
            if is_selected && is_new && provider.hears(HookEvent::DeviceSpecUpdate) {
                self.desired.tell(name, host, HookEvent::DeviceSpecUpdate);
            }
        }
        let keys = self.enrolment.keys.clone();
        for host in keys.keys().filter(|host| provider.selects(host) && !devices.contains_key(*host)) {
            self.desired.join(provider, host);
        }
    }
}
