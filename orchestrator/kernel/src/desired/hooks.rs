//! What providers of kind `hooks` are still to be told of hosts, and with which tokens they may call back.

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookEvent;
use serde::{Deserialize, Serialize};

use crate::left_out::is_default;

/// The most tokens with which a provider may call back. Of more, the oldest no longer count.
pub const CALLBACK_TOKENS_MAX: usize = 16;

/// What is known of a provider of kind `hooks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookProvider {
    /// SHA-256, in hex, of the tokens with which it may call back: the oldest first, [`CALLBACK_TOKENS_MAX`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<String>,
    /// The hosts with an approved key that it selects, or has selected since their key was approved.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub devices: OrdMap<HostName, HookDevice>,
}

/// What a provider is told of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookDevice {
    /// What it is to be told, with its cause, until it has answered.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub pending: OrdMap<HookEvent, u64>,
    /// The cause of the last `ON_DEVICE_SPEC_UPDATE`; 0 if there was none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spec: u64,
    /// The metadata that it was told last; absent until it has answered once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<ToldMetadata>,
    /// How often it wants to be asked, in seconds; absent until it has said that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
}

/// The metadata of a host that a provider was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToldMetadata {
    /// Their digest.
    pub digest: u64,
    /// When it was told, or when other metadata were found after that.
    pub since: DateTime<Utc>,
}

impl HookProvider {
    /// Whether it may call back with the token that has this `digest`.
    pub fn has_token(&self, digest: &str) -> bool {
        self.tokens.iter().any(|known| known == digest)
    }

    /// It may call back with the token that has this `digest`.
    pub(super) fn add_token(&mut self, digest: &str) {
        self.tokens.push(digest.to_owned());
        let surplus = self.tokens.len().saturating_sub(CALLBACK_TOKENS_MAX);
        self.tokens.drain(..surplus);
    }
}

impl HookDevice {
    /// The provider is to be told of `event`, because of `cause`.
    pub(super) fn tell(&mut self, event: HookEvent, cause: u64) {
        self.pending.insert(event, cause);
        if event == HookEvent::DeviceSpecUpdate {
            self.spec = cause;
        }
    }

    /// The provider has answered to `event`, of which it was told because of `cause`. What has become due since is still to be told.
    pub(super) fn answered(
        &mut self,
        (event, cause): (HookEvent, u64),
        told: ToldMetadata,
        poll_interval: Option<u64>,
    ) {
        if self.pending.get(&event) == Some(&cause) {
            self.pending.remove(&event);
        }
        self.told = Some(told);
        self.poll_interval = poll_interval.or(self.poll_interval);
    }

    /// The provider is no longer to be told of events, except of those that `is_kept`.
    pub(super) fn keep_pending(&mut self, is_kept: impl Fn(HookEvent) -> bool) {
        let pending = std::mem::take(&mut self.pending).into_iter();
        self.pending = pending.filter(|(event, _)| is_kept(*event)).collect();
    }
}
