//! Changes of the configuration.

use chrono::{DateTime, Utc};

use super::request::Decided;
use crate::config::{Config, ConfigError, Expected, difference};
use crate::fact::Fact;
use crate::input::{Accepted, Refusal};
use crate::outlook;
use crate::state::State;

/// A configuration in the place of the present one, or of none.
pub(super) fn put(
    state: &State,
    config: &Config,
    expected: &Expected,
    actor: &str,
    validate: bool,
    now: DateTime<Utc>,
) -> Decided {
    config.validate()?;
    check_windows(state, config, now)?;
    check(state, expected)?;
    let accepted = if state.config.is_some() { Accepted::Done } else { Accepted::Created };
    if validate {
        return Ok((Vec::new(), Accepted::Valid));
    }
    if state.config.as_deref() == Some(config) {
        return Ok((Vec::new(), accepted));
    }
    Ok((vec![replaced(state, Some(config), actor)], accepted))
}

/// No configuration any more. A run that is active has its own copy of what it needs, and goes on to its end.
pub(super) fn delete(state: &State, expected: &Expected, actor: &str, validate: bool) -> Decided {
    if state.config.is_none() {
        return Err(Refusal::NoConfiguration);
    }
    check(state, expected)?;
    if validate {
        return Ok((Vec::new(), Accepted::Valid));
    }
    Ok((vec![replaced(state, None, actor)], Accepted::Done))
}

/// Whether the windows can be meant, together and in this site's zone.
fn check_windows(state: &State, config: &Config, now: DateTime<Utc>) -> Result<(), ConfigError> {
    let calendar = outlook::calendar(config, &state.settings);
    calendar.check(now)?;
    let opens = calendar.containing(now).or_else(|| calendar.next(now));
    match outlook::next(config, &state.settings, None, now) {
        None if opens.is_some() => Err(ConfigError::NoneLongEnough(config.minimum_remaining)),
        None | Some(_) => Ok(()),
    }
}

fn check(state: &State, expected: &Expected) -> Result<(), Refusal> {
    let tag = state.config_tag();
    if expected.is_met_by(tag.as_deref()) { Ok(()) } else { Err(Refusal::ConfigChanged { tag }) }
}

fn replaced(state: &State, config: Option<&Config>, actor: &str) -> Fact {
    let difference = difference::between(state.config.as_deref(), config);
    Fact::ConfigReplaced { config: config.cloned(), actor: actor.to_owned(), difference }
}
