//! Configuration: the site's upgrade configuration, which operators change over the API, and the settings from the
//! orchestrator's file.

pub mod difference;
mod integer;
pub mod tag;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::{CalendarError, Duration, Window, deserialize, from_objects_only};
use os_upgrade_protocol::{ApplicationName, GroupName, HostName};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api_server_order::ApiServerOrder;
use crate::backoff::Backoff;
use crate::left_out::is_default;

/// The configuration of a site's upgrades: the resource `/v1/config/os-upgrade`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Hosts on which one of these applications has announced itself take part; if several have, the first in the list
    /// counts.
    #[serde(default, deserialize_with = "deserialize::list")]
    pub worker_applications: Vec<WorkerApplication>,
    /// Runs start automatically while one of these windows is open; without windows none does.
    #[serde(default, deserialize_with = "deserialize::list", skip_serializing_if = "Vec::is_empty")]
    pub maintenance_windows: Vec<Window>,
    /// No run starts automatically while one of these windows is open. An extension of the specification, like the next
    /// two fields.
    #[serde(default, deserialize_with = "deserialize::list", skip_serializing_if = "Vec::is_empty")]
    pub deny_windows: Vec<Window>,
    /// How long after the start of an occurrence a run starts at the latest, so that sites with the same windows do not
    /// all start at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_jitter: Duration,
    /// How much of an occurrence must be left for a run to start in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub minimum_remaining: Duration,
    /// How a run proceeds through the hosts.
    #[serde(default, skip_serializing_if = "Rollout::is_default")]
    pub rollout: Rollout,
}

/// One entry of `worker-applications`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkerApplication {
    /// The name under which its workers announce themselves.
    pub name: ApplicationName,
}

/// How a run proceeds through the hosts. An extension of the specification; the defaults match its behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Rollout {
    /// How many hosts may be upgraded at once, at least 1; the slots of their groups are a further limit.
    #[serde(deserialize_with = "integer::number")]
    pub max_concurrent: u32,
    /// How many hosts may fail before no further one is started.
    #[serde(deserialize_with = "integer::number")]
    pub max_failures: u32,
    /// What happens to a host that is unreachable when the run starts.
    pub unreachable: UnreachablePolicy,
    /// How long a host may take to answer `reboot`, including its boot and the worker's health check; at least 1 s.
    pub boot_timeout: Duration,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(duration: &Duration) -> bool {
    duration.as_secs() == 0
}

from_objects_only!(Config, WorkerApplication, Rollout);

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_concurrent: 1,
            max_failures: 0,
            unreachable: UnreachablePolicy::Skip,
            // Servers with much memory test it for a quarter of an hour when they boot.
            boot_timeout: Duration::from_secs(30 * 60),
        }
    }
}

impl Rollout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens to a host that is unreachable when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnreachablePolicy {
    /// It is skipped, which the history shows.
    Skip,
    /// It fails, and with it the run.
    Fail,
}

impl<'de> Deserialize<'de> for UnreachablePolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize::word(deserializer, &["skip", "fail"], [Self::Skip, Self::Fail])
    }
}

/// Why a configuration that parses is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An application is listed twice.
    #[error("worker-applications: {0:?} is listed twice")]
    DuplicateApplication(String),
    /// No host could ever be upgraded.
    #[error("rollout/max-concurrent: must be at least 1")]
    NoConcurrency,
    /// No host could ever reboot.
    #[error(
        "rollout/boot-timeout: must be at least 1s; a run never lasts beyond its not-after, whatever this is"
    )]
    NoTimeToBoot,
    /// A window is listed twice.
    #[error("{list}/{index}: the same window is listed twice, also at {list}/{first}")]
    DuplicateWindow {
        /// The key of the list.
        list: &'static str,
        /// The index of the first of the two, from 0.
        first: usize,
        /// The index of the second.
        index: usize,
    },
    /// The windows are invalid together.
    #[error(transparent)]
    Windows(#[from] CalendarError),
    /// No run would ever start.
    #[error("minimum-remaining: no occurrence of the maintenance windows is longer than {0}; write less")]
    NoneLongEnough(Duration),
}

impl Config {
    /// Checks what the types do not ensure.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (index, application) in self.worker_applications.iter().enumerate() {
            if self.worker_applications[..index].contains(application) {
                return Err(ConfigError::DuplicateApplication(application.name.to_string()));
            }
        }
        if self.rollout.max_concurrent == 0 {
            return Err(ConfigError::NoConcurrency);
        }
        if is_zero(&self.rollout.boot_timeout) {
            return Err(ConfigError::NoTimeToBoot);
        }
        check_distinct("maintenance-windows", &self.maintenance_windows)?;
        check_distinct("deny-windows", &self.deny_windows)?;
        Ok(())
    }
}

fn check_distinct(list: &'static str, windows: &[Window]) -> Result<(), ConfigError> {
    for (index, window) in windows.iter().enumerate() {
        if let Some(first) = windows[..index].iter().position(|earlier| earlier == window) {
            return Err(ConfigError::DuplicateWindow { list, first, index });
        }
    }
    Ok(())
}

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

/// How the Kubernetes nodes of hosts are drained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KubernetesSettings {
    /// How long a drain may take.
    pub drain_timeout: Duration,
    /// Whether the node of a host that failed is uncordoned, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncordon_failed: bool,
    /// The hosts that are nodes of the cluster; absent if every host is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<BTreeSet<HostName>>,
}

impl KubernetesSettings {
    /// Whether `host` is a node of the cluster.
    pub fn includes(&self, host: &HostName) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.contains(host))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Config, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn specification_example_is_valid() {
        let json = r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#;
        let config = parse(json).unwrap();
        assert_eq!(config.rollout, Rollout::default());
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(serde_json::to_string(&config).unwrap(), json);
    }

    #[test]
    fn whole_numbers_are_read() {
        for (number, expected) in [
            ("2", Ok(2)),
            ("2.0", Ok(2)),
            ("20e-1", Ok(2)),
            ("1E1", Ok(10)),
            ("-0.0", Ok(0)),
            ("4294967295.0", Ok(u32::MAX)),
            ("2.5", Err("floating point `2.5`")),
            ("-1", Err("integer `-1`")),
            ("-1.0", Err("floating point `-1.0`")),
            ("4294967296", Err("integer `4294967296`")),
            ("4294967296.0", Err("floating point `4294967296.0`")),
            ("1e300", Err("floating point `1e+300`")),
            (r#""2""#, Err(r#"string "2""#)),
            ("null", Err("null")),
        ] {
            let json = format!(r#"{{"rollout":{{"max-concurrent":{number},"max-failures":{number}}}}}"#);
            let wrong = |found| format!("{found}, expected a whole number from 0 to 4294967295");
            let of_text = parse(&json).map_err(|error| error.to_string());
            let of_value = serde_json::from_value(serde_json::from_str(&json).unwrap());
            let of_value: Result<Config, String> = of_value.map_err(|error| error.to_string());
            for read in [of_text, of_value] {
                match (read.map(|config| config.rollout), expected) {
                    (Ok(rollout), Ok(number)) => {
                        assert_eq!((rollout.max_concurrent, rollout.max_failures), (number, number));
                    }
                    (Err(message), Err(found)) => {
                        assert!(message.contains(&wrong(found)), "{number}: {message}");
                    }
                    (read, _) => panic!("{number}: {read:?}"),
                }
            }
        }
    }

    #[test]
    fn wrong_types_are_explained() {
        for (json, message) in [
            (r#"{"start-jitter":600}"#, r#"integer `600`, expected a string such as "4h" or "1d12h""#),
            (r#"{"rollout":{"unreachable":true}}"#, r#"boolean `true`, expected "skip" or "fail""#),
            (r#"{"rollout":{"unreachable":"wait"}}"#, "unknown variant `wait`, expected `skip` or `fail`"),
            (
                r#"{"rollout":{"max-concurrent":"2"}}"#,
                "expected a whole number from 0 to 4294967295, without quotes",
            ),
            (
                r#"{"worker-applications":{"name":"a"}}"#,
                "invalid type: map, expected a list, [...], even of one",
            ),
            (r#"{"deny-windows":{}}"#, "invalid type: map, expected a list, [...], even of one"),
        ] {
            let found = parse(json).unwrap_err().to_string();
            assert!(found.contains(message), "{json}: {found}");
        }
    }

    #[test]
    fn invalid_configurations_are_refused() {
        let twice = parse(r#"{"worker-applications":[{"name":"a"},{"name":"a"}]}"#).unwrap();
        assert_eq!(twice.validate(), Err(ConfigError::DuplicateApplication("a".to_owned())));
        let none = parse(r#"{"rollout":{"max-concurrent":0}}"#).unwrap();
        assert_eq!(none.validate(), Err(ConfigError::NoConcurrency));
        for json in [
            r#"{"worker-application":[]}"#,
            r#"{"worker-applications":[{"name":""}]}"#,
            "[]",
            r#"{"worker-applications":[["a"]]}"#,
            r#"{"rollout":[]}"#,
        ] {
            assert!(parse(json).is_err(), "{json}");
        }
    }
}
