//! What facts change in what hosts are to have.

use chrono::{DateTime, Utc};
use os_upgrade_provider_rules::ProviderName;

use super::fact::DesiredFact;
use super::hooks::ToldMetadata;
use super::state::{DesiredItem, FailedProvider};
use crate::config::{Config, OnRemoval};
use crate::state::State;

impl State {
    pub(crate) fn apply_desired(&mut self, fact: &DesiredFact, at: DateTime<Utc>) {
        match fact {
            DesiredFact::ItemStored { host, provider, item, bytes, sealed, fingerprint, hash } => {
                let item = DesiredItem {
                    id: item.clone(),
                    bytes: *bytes,
                    sealed: *sealed,
                    fingerprint: fingerprint.clone(),
                    hash: hash.clone(),
                    other_file: false,
                    since: at,
                };
                self.desired.store(host, provider, item);
            }
            DesiredFact::ItemRevoked { host, provider } => self.desired.revoke(host, provider),
            DesiredFact::ManifestStored { host, revision } => self.desired.stored(host, *revision),
            // A file server is asked by the leader, which has no need to know of this later.
            DesiredFact::PollRequested { provider, host, .. } => self.apply_poll(provider, host.as_ref()),
            DesiredFact::DeliveryResumed { host: Some(host), epoch, .. } => self.desired.resume(host, *epoch),
            DesiredFact::DeliveryResumed { host: None, epoch, .. } => self.desired.resumed = *epoch,
            DesiredFact::UnknownItemsFound { hosts } => self.desired.unknown_found(hosts),
            DesiredFact::ProviderFailed { provider, host, failure } => {
                let failed = FailedProvider { host: host.clone(), failure: failure.clone(), since: at };
                self.desired.failed.insert(provider.clone(), failed);
            }
            DesiredFact::ProviderRecovered { provider } => {
                self.desired.failed.remove(provider);
            }
            DesiredFact::HookTokenDrawn { provider, digest } => self.apply_token_drawn(provider, digest),
            DesiredFact::HookTokensRevoked { provider, .. } => self.apply_tokens_revoked(provider),
            DesiredFact::HookAnswered { provider, host, event, cause, metadata, poll_interval } => {
                let told = ToldMetadata { digest: *metadata, since: at };
                self.apply_answered((provider, host), (*event, *cause), told, *poll_interval);
            }
            DesiredFact::HookMetadataChanged { provider, hosts } => {
                self.apply_metadata_changed(provider, hosts, at);
            }
            DesiredFact::CallbackReceived { provider, hosts } => self.apply_callback(provider, hosts),
        }
    }

    /// The configuration is no longer `before`: providers may name other files. Which file a provider named that was gone is not known: what
    /// hosts have kept of it is given anew.
    pub(crate) fn outdate_files(&mut self, before: Option<&Config>) {
        let Some(config) = self.config.clone() else { return };
        let known = std::mem::take(&mut self.desired.files).into_iter();
        self.desired.files = known.filter(|(name, _)| config.provider(name).is_some()).collect();
        for provider in &config.config_providers {
            let earlier = before.and_then(|before| before.provider(&provider.name));
            if earlier.is_some_and(|earlier| earlier.is_same_file(provider)) {
                continue;
            }
            self.desired.outdate_items(&provider.name);
            // Nobody is asking a provider that is new.
            if earlier.is_some() {
                self.desired.name_other_file(&provider.name);
            }
        }
    }

    /// The configuration is no longer `before`: what providers gave to hosts that they select no longer is revoked, if they say so. Of a
    /// provider that is gone, that it said last counts.
    pub(crate) fn revoke_unselected(&mut self, before: Option<&Config>) {
        let now = self.config.clone();
        let find = |config: Option<&Config>, name: &ProviderName| {
            config.and_then(|config| config.provider(name).cloned())
        };
        // That a provider fails says nothing of it once it is defined otherwise.
        let is_same = |name: &ProviderName| {
            find(before, name)
                .zip(find(now.as_deref(), name))
                .is_some_and(|(one, other)| one.is_same_question(&other))
        };
        let failed = std::mem::take(&mut self.desired.failed).into_iter();
        self.desired.failed = failed.filter(|(name, _)| is_same(name)).collect();
        let mut unselected = Vec::new();
        for (host, desired) in &self.desired.hosts {
            for name in desired.items.keys() {
                let provider = find(now.as_deref(), name);
                let is_selected = provider.as_ref().is_some_and(|provider| provider.selects(host));
                let said = provider.or_else(|| find(before, name));
                if !is_selected && said.is_some_and(|provider| provider.on_removal == OnRemoval::Remove) {
                    unselected.push((host.clone(), name.clone()));
                }
            }
        }
        for (host, provider) in unselected {
            self.desired.revoke(&host, &provider);
        }
    }
}
