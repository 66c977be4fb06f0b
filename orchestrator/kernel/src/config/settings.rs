//! The settings from the orchestrator's file on which decisions depend.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

use crate::left_out::is_default;
use crate::node::KubernetesSettings;
use crate::reboot_queue::RebootSettings;

/// Settings from the orchestrator's file on which decisions depend. Changes are journaled, so that a replay leads to the
/// same state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// The site's name. It determines the jitter of starts, which differs among sites with the same windows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
    /// The timezone that `site-local` means in windows.
    #[serde(default, skip_serializing_if = "is_utc")]
    pub timezone: Tz,
    /// Who grants slots.
    pub provider: LockProvider,
    /// The group of a host that announces no group.
    pub default_group: GroupName,
    /// What happens to the slot of a host that failed or did not answer.
    pub on_failure: OnFailure,
    /// The number of slots of the embedded semaphores, by group.
    pub groups: BTreeMap<GroupName, u32>,
    /// How many slots of failed hosts do not count against hosts of runs, by group: see [`State::uncounted`](crate::State::uncounted).
    /// Groups in which each counts are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<GroupName, u32>,
    /// Which slots may be released because their holders are gone.
    #[serde(default, skip_serializing_if = "Reclaim::is_default")]
    pub reclaim: Reclaim,
    /// How long a slot may be held before it is shown as stuck. It has no other effect.
    #[serde(default = "stuck_after", skip_serializing_if = "is_stuck_after")]
    pub stuck_after: Duration,
    /// Whether every host that announces itself takes part, without an operator's approval.
    #[serde(default, skip_serializing_if = "is_default")]
    pub auto_approve: bool,
    /// How hosts reboot on request.
    #[serde(default, skip_serializing_if = "RebootSettings::is_default")]
    pub reboot: RebootSettings,
    /// How nodes are drained; absent without a Kubernetes cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesSettings>,
}

impl Settings {
    /// Whether a slot that has been held since `since` is stuck at `now`.
    pub fn is_stuck(&self, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        since + self.stuck_after.to_delta() <= now
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_utc(timezone: &Tz) -> bool {
    *timezone == Tz::UTC
}

/// Longer than an upgrade takes, and short enough to react in the same night.
const fn stuck_after() -> Duration {
    Duration::from_secs(2 * 3_600)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_stuck_after(duration: &Duration) -> bool {
    *duration == stuck_after()
}

impl Default for Settings {
    /// One embedded semaphore, `default`, with one slot.
    fn default() -> Self {
        let default_group = GroupName::new("default").expect("a valid name");
        Self {
            site: String::new(),
            timezone: Tz::UTC,
            provider: LockProvider::Embedded,
            groups: BTreeMap::from([(default_group.clone(), 1)]),
            failed: BTreeMap::new(),
            default_group,
            on_failure: OnFailure::Hold,
            reclaim: Reclaim::Never,
            stuck_after: stuck_after(),
            auto_approve: false,
            reboot: RebootSettings::default(),
            kubernetes: None,
        }
    }
}

/// Who grants slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum LockProvider {
    /// The embedded semaphores.
    Embedded,
    /// An external FleetLock server.
    External,
}

/// What happens to the slot of a host that failed or did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It stays held: the host may be down, or still at work.
    Hold,
    /// It is released at once.
    Release,
}

impl OnFailure {
    /// The word in the settings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Which slots may be released because their holders are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Reclaim {
    /// None: an operator releases each one, with a reason.
    #[default]
    Never,
    /// Slots of hosts that have left the inventory.
    Inventory,
}

impl Reclaim {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The word in the settings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
