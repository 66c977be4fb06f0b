//! Changes to the configuration.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Watermark;
use serde::{Deserialize, Serialize};

use super::difference;
use super::state::{Config, ConfigError};
use super::tag::Expected;
use crate::answer::{Accepted, Granted, RefusalClass};
use crate::fact::{ConfigFact, Fact};
use crate::start::{self, calendar};
use crate::state::State;
use crate::view::View;

/// An operation on the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConfigOperation {
    /// Create or replace the configuration.
    Put {
        /// The new configuration.
        config: Box<Config>,
        /// Precondition on the current configuration.
        expected: Expected,
    },
    /// Delete the configuration.
    Delete {
        /// Precondition on the current configuration.
        expected: Expected,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConfigRefusal {
    /// The configuration is invalid.
    InvalidConfig {
        /// What is wrong with it.
        message: String,
    },
    /// The current configuration does not meet the precondition.
    ConfigChanged {
        /// The tag of the current configuration; absent when there is none.
        tag: Option<String>,
    },
    /// Nothing is configured.
    NoConfiguration,
}

impl ConfigRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::InvalidConfig { .. } => RefusalClass::Invalid,
            Self::ConfigChanged { .. } => RefusalClass::Changed,
            Self::NoConfiguration => RefusalClass::Missing,
        }
    }
}

impl From<ConfigError> for ConfigRefusal {
    fn from(error: ConfigError) -> Self {
        Self::InvalidConfig { message: error.to_string() }
    }
}

pub(crate) fn decide(
    state: &State,
    view: &View,
    operation: &ConfigOperation,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<Granted, ConfigRefusal> {
    match operation {
        ConfigOperation::Put { config, expected } => put(state, view, config, expected, actor, now),
        ConfigOperation::Delete { expected } => delete(state, expected, actor),
    }
}

/// Creates or replaces the configuration.
fn put(
    state: &State,
    view: &View,
    config: &Config,
    expected: &Expected,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<Granted, ConfigRefusal> {
    check(state, expected)?;
    let current = state.config.as_deref();
    // The current configuration was valid when it was put; later times do not make it invalid.
    if current == Some(config) {
        return Ok(Granted::done(Vec::new()));
    }
    config.validate()?;
    if current.is_none_or(|current| has_other_windows(current, config)) {
        check_windows(state, view, config, now)?;
    }
    let accepted = if current.is_some() { Accepted::Done } else { Accepted::Created };
    Ok(Granted { facts: vec![replaced(state, Some(config), actor)], accepted })
}

/// Deletes the configuration. An active run has its own copy of what it needs, and continues.
fn delete(state: &State, expected: &Expected, actor: &str) -> Result<Granted, ConfigRefusal> {
    if state.config.is_none() {
        return Err(ConfigRefusal::NoConfiguration);
    }
    check(state, expected)?;
    Ok(Granted::done(vec![replaced(state, None, actor)]))
}

/// Whether anything that [`check_windows`] depends on differs.
fn has_other_windows(one: &Config, other: &Config) -> bool {
    one.maintenance_windows != other.maintenance_windows
        || one.deny_windows != other.deny_windows
        || one.needed() != other.needed()
}

/// Checks the windows together and in this site's zone.
fn check_windows(state: &State, view: &View, config: &Config, now: DateTime<Utc>) -> Result<(), ConfigError> {
    let calendar = calendar(config, &state.settings, &view.zones);
    calendar.check(now)?;
    let opens = calendar.occurrences(now).next().transpose()?;
    match start::next(config, &state.settings, &view.zones, Watermark::NONE, now)? {
        None if opens.is_some() => {
            let (key, needed) = config.needed();
            Err(ConfigError::NoneLongEnough { key, needed })
        }
        None | Some(_) => Ok(()),
    }
}

fn check(state: &State, expected: &Expected) -> Result<(), ConfigRefusal> {
    let tag = state.config_tag();
    if expected.is_met_by(tag.as_deref()) { Ok(()) } else { Err(ConfigRefusal::ConfigChanged { tag }) }
}

fn replaced(state: &State, config: Option<&Config>, actor: &str) -> Fact {
    let difference = difference::between(state.config.as_deref(), config);
    Fact::Config(ConfigFact::Replaced { config: config.cloned(), actor: actor.to_owned(), difference })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tag;

    const DAILY: &str = r#"{"cron": "0 0 1 * * *", "duration": "1h"}"#;
    const LONG: &str = r#"{"cron": "0 0 1 * * *", "duration": "4h", "not-after": "2026-11-30"}"#;

    fn config(windows: &[&str], concurrent: u32, remaining: &str) -> Config {
        let windows = windows.join(",");
        let json = format!(
            r#"{{"maintenance-windows": [{windows}], "minimum-remaining": "{remaining}",
                "rollout": {{"max-concurrent": {concurrent}}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn time(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    /// The occurrences of November are long enough, those of December are not.
    #[test]
    fn windows_are_checked_only_when_changed() {
        let in_force = config(&[DAILY, LONG], 1, "2h");
        let (mut state, view) = (State::default(), View::default());
        let Granted { facts, accepted } =
            put(&state, &view, &in_force, &Expected::Absent, "eve", time("2026-11-21T05:00:00Z")).unwrap();
        assert_eq!(accepted, Accepted::Created);
        for fact in &facts {
            state.apply(DateTime::UNIX_EPOCH, fact).unwrap();
        }
        let now = time("2026-12-24T05:00:00Z");
        let tag = state.config_tag();
        let outdated = Expected::Tags(vec![tag::tag(7, &in_force)]);
        let current = Expected::Tags(tag.iter().cloned().collect());
        let changed = || Err(ConfigRefusal::ConfigChanged { tag: tag.clone() });
        let invalid = |message: &str| Err(ConfigRefusal::InvalidConfig { message: message.to_owned() });
        let too_short =
            "minimum-remaining: no occurrence of the maintenance windows is longer than 2h; write less";
        let no_host = "rollout/max-concurrent: must be at least 1";
        let table = [
            ("the same", in_force.clone(), &current, Ok(Accepted::Done)),
            ("the same, stale", in_force.clone(), &outdated, changed()),
            ("another rollout", config(&[DAILY, LONG], 2, "2h"), &current, Ok(Accepted::Done)),
            ("another rollout, stale", config(&[DAILY, LONG], 2, "2h"), &outdated, changed()),
            ("an unfit rollout", config(&[DAILY, LONG], 0, "2h"), &current, invalid(no_host)),
            ("an unfit rollout, stale", config(&[DAILY, LONG], 0, "2h"), &outdated, changed()),
            ("unfit windows", config(&[DAILY], 1, "2h"), &current, invalid(too_short)),
            ("unfit windows, stale", config(&[DAILY], 1, "2h"), &outdated, changed()),
            (
                "windows as long as that",
                config(&[DAILY], 1, "1h"),
                &current,
                invalid(&too_short.replace("2h", "1h")),
            ),
            ("fit windows", config(&[DAILY], 1, "59m"), &current, Ok(Accepted::Done)),
            ("less to remain", config(&[DAILY, LONG], 1, "59m"), &current, Ok(Accepted::Done)),
            ("not there", in_force.clone(), &Expected::Absent, changed()),
        ];
        for (name, config, expected, accepted) in table {
            let found = put(&state, &view, &config, expected, "eve", now).map(|granted| granted.accepted);
            assert_eq!(found, accepted, "{name}");
        }
    }
}
