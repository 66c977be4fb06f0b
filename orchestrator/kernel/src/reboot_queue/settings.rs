//! The settings of reboots on request.

use os_upgrade_calendar::Duration;
use serde::{Deserialize, Serialize};

use super::api_server_order::ApiServerOrder;
use super::backoff::Backoff;
use crate::left_out::is_default;

/// How hosts of the reboot queue reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RebootSettings {
    /// How many hosts of the queue may be under way at once.
    pub max_concurrent: u32,
    /// How many hosts that are not under way may be unreachable for one to start.
    pub unreachable_max: u32,
    /// Whether hosts start only while a maintenance window is open.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_windows: bool,
    /// Whether hosts that need a reboot are queued when a maintenance window is open.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue_required: bool,
    /// Whether API servers of the cluster reboot before other nodes or after them.
    #[serde(default, skip_serializing_if = "ApiServerOrder::is_default")]
    pub api_servers: ApiServerOrder,
    /// The pauses after drains that were given up, of runs' hosts too.
    #[serde(default, skip_serializing_if = "Backoff::is_default")]
    pub backoff: Backoff,
    /// The operator's command that reboots hosts; absent if their workers do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<RebootCommandSettings>,
}

/// What decisions need to know of the operator's command that reboots hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RebootCommandSettings {
    /// How long it takes at most, with all its retries.
    pub within: Duration,
    /// Whether another command says whether a host has booted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks_boot: bool,
}

impl Default for RebootSettings {
    /// CKE's.
    fn default() -> Self {
        Self {
            max_concurrent: 1,
            unreachable_max: 0,
            in_windows: false,
            queue_required: false,
            api_servers: ApiServerOrder::First,
            backoff: Backoff::DEFAULT,
            command: None,
        }
    }
}

impl RebootSettings {
    /// Whether nothing differs from the defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a command says whether a host has booted that another one has rebooted.
    pub(crate) fn checks_boot(&self) -> bool {
        self.command.is_some_and(|command| command.checks_boot)
    }
}
