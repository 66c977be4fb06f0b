//! The site's upgrade configuration, which operators change over the API.

use os_upgrade_calendar::{CalendarError, Duration, Window, deserialize, from_objects_only};
use os_upgrade_protocol::{Action, ApplicationName};
use os_upgrade_provider_rules::ProviderName;
use serde::{Deserialize, Deserializer, Serialize};

use super::max_failures::MaxFailures;
use super::provider::{self, ConfigProvider, ProviderError};

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
    /// Where configuration of hosts comes from.
    #[serde(default, deserialize_with = "deserialize::list", skip_serializing_if = "Vec::is_empty")]
    pub config_providers: Vec<ConfigProvider>,
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
    #[serde(deserialize_with = "super::integer::number")]
    pub max_concurrent: u32,
    /// How many hosts may fail before no further one is started.
    pub max_failures: MaxFailures,
    /// What happens to a host that is unreachable when the run starts.
    pub unreachable: UnreachablePolicy,
    /// How many hosts may be preparing, or prepared and not begun, at least 1; one of each group may in any case, and those that hold a slot
    /// do not count. Hosts are upgraded as they are prepared. Absent: all are prepared at once.
    #[serde(deserialize_with = "super::integer::some_number", skip_serializing_if = "Option::is_none")]
    pub max_preparing: Option<u32>,
    /// Whether hosts are prepared again that failed. Hosts are upgraded as they are prepared. Absent: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// How long a host may take to answer `prepare`, at least 1 s. Absent: as long as the run lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare_timeout: Option<Duration>,
    /// How long a host may take to answer `upgrade` before it is overdue, at least 1 s. Absent: as long as the run lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_timeout: Option<Duration>,
    /// How long a host may take to answer `reboot`, including its boot and the worker's health check; at least 1 s.
    pub boot_timeout: Duration,
    /// How long a host takes from its slot until it is back, at least 1 s: no host is begun with less than that left. Absent: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_duration: Option<Duration>,
    /// How long a run waits for hosts that lack configuration of a required provider, once it waits for nothing else; at least 1 s. Hosts are
    /// upgraded as they are prepared where a provider is required. Absent: 15 minutes. In a run it is absent if no provider is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_wait: Option<Duration>,
}

/// How long a run waits for required configuration if the rollout does not say it.
const PROVIDER_WAIT: Duration = Duration::from_secs(15 * 60);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(duration: &Duration) -> bool {
    duration.as_secs() == 0
}

/// How often hosts are prepared again whose worker answered an error that named its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Retries {
    /// How many times a host is prepared again in a run.
    #[serde(deserialize_with = "super::integer::number")]
    pub prepare: u32,
    /// The pause before the second attempt, at least 1 s, doubled each time.
    pub backoff: Duration,
    /// The longest pause, at least 1 s. Jitter of up to `backoff` is added.
    pub max_backoff: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        let (backoff, max_backoff) = (Duration::from_secs(5 * 60), Duration::from_secs(3_600));
        Self { prepare: 2, backoff, max_backoff }
    }
}

from_objects_only!(Config, WorkerApplication, Rollout, Retries);

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_concurrent: 1,
            max_failures: MaxFailures::Hosts(0),
            unreachable: UnreachablePolicy::Skip,
            max_preparing: None,
            retries: None,
            prepare_timeout: None,
            upgrade_timeout: None,
            // Servers with much memory test it for a quarter of an hour when they boot.
            boot_timeout: Duration::from_secs(30 * 60),
            expected_duration: None,
            provider_wait: None,
        }
    }
}

impl Rollout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether hosts are upgraded as they are prepared, and not once all are.
    pub(crate) const fn is_rolling(&self) -> bool {
        self.max_preparing.is_some() || self.retries.is_some() || self.provider_wait.is_some()
    }

    /// How long a host may take to answer `action`; absent if it may take as long as the run lasts.
    pub(crate) fn timeout(&self, action: Action) -> Option<Duration> {
        match action {
            Action::Prepare => self.prepare_timeout,
            Action::Upgrade => self.upgrade_timeout,
            Action::Reboot => Some(self.boot_timeout),
        }
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
    /// Nothing takes no time.
    #[error("rollout/{key}: must be at least 1s, or left out")]
    NoTime {
        /// The key in `rollout`.
        key: &'static str,
    },
    /// No host could ever be prepared.
    #[error("rollout/max-preparing: must be at least 1; leave it out to prepare all at once")]
    NoPreparing,
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
    /// A provider is invalid.
    #[error("config-providers: {0}")]
    Provider(#[from] ProviderError),
    /// The windows are invalid together.
    #[error(transparent)]
    Windows(#[from] CalendarError),
    /// No run would ever start.
    #[error("{key}: no occurrence of the maintenance windows is longer than {needed}; write less")]
    NoneLongEnough {
        /// The key of what is longer.
        key: &'static str,
        needed: Duration,
    },
}

impl Config {
    /// The provider called `name`.
    pub fn provider(&self, name: &ProviderName) -> Option<&ConfigProvider> {
        self.config_providers.iter().find(|provider| provider.name == *name)
    }

    /// The providers of kind `hooks`.
    pub fn hook_providers(&self) -> impl Iterator<Item = &ConfigProvider> {
        self.config_providers.iter().filter(|provider| provider.is_hooks())
    }

    /// How a run that starts now proceeds.
    pub(crate) fn rollout_of_run(&self) -> Rollout {
        let is_required = self.config_providers.iter().any(|provider| provider.required);
        let wait = self.rollout.provider_wait.unwrap_or(PROVIDER_WAIT);
        Rollout { provider_wait: is_required.then_some(wait), ..self.rollout.clone() }
    }

    /// How much of an occurrence must be left for a run to start in it, and the key that says so.
    pub(crate) fn needed(&self) -> (&'static str, Duration) {
        match self.rollout.expected_duration {
            Some(expected) if self.minimum_remaining < expected => ("rollout/expected-duration", expected),
            Some(_) | None => ("minimum-remaining", self.minimum_remaining),
        }
    }

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
        if self.rollout.max_preparing == Some(0) {
            return Err(ConfigError::NoPreparing);
        }
        let Rollout { prepare_timeout, upgrade_timeout, expected_duration, provider_wait, retries, .. } =
            self.rollout;
        for (key, duration) in [
            ("retries/backoff", retries.map(|retries| retries.backoff)),
            ("retries/max-backoff", retries.map(|retries| retries.max_backoff)),
            ("prepare-timeout", prepare_timeout),
            ("upgrade-timeout", upgrade_timeout),
            ("expected-duration", expected_duration),
            ("provider-wait", provider_wait),
        ] {
            if duration.as_ref().is_some_and(is_zero) {
                return Err(ConfigError::NoTime { key });
            }
        }
        check_distinct("maintenance-windows", &self.maintenance_windows)?;
        check_distinct("deny-windows", &self.deny_windows)?;
        provider::validate(&self.config_providers)?;
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
                        assert_eq!((rollout.max_concurrent, rollout.max_failures), (number, number.into()));
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
