//! What clients of fleet's APIs ask for: a unit with contents in a state, or that there be none of that name.

use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::{Requirements, UnitFile, UnitName, UnitState};
use serde::{Deserialize, Serialize};

use super::fact::{TakenAway, UnitFact};
use super::state::{UNITS_BYTES_MAX, UNITS_MAX, Unit};
use crate::answer::{Accepted, Granted, RefusalClass};
use crate::fact::Fact;
use crate::state::State;

/// An operation on units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum UnitOperation {
    /// Let there be a unit. A new one, and one whose contents are replaced, is inactive if nothing is said of its state. A new one may have the
    /// name of a destroyed one that still runs: it is placed once that has stopped.
    Put {
        name: UnitName,
        /// The text of its file; absent if it is there already, and keeps it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contents: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        desired: Option<UnitState>,
        /// Whether other contents replace those that it has, as in v1, where the options are compared. Otherwise they are refused, as in
        /// v1-alpha, where the text is.
        replaces: bool,
    },
    /// Let there be no unit of this name.
    Destroy {
        name: UnitName,
        /// The text that its file must have; absent if that does not matter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum UnitRefusal {
    /// There is no such unit to destroy.
    UnknownUnit { unit: UnitName },
    /// There is no such unit, and a new one needs contents.
    NoContents { unit: UnitName },
    /// The unit has other contents.
    OtherContents { unit: UnitName },
    /// The unit is there as it is, and the request says nothing of its state.
    NoState { unit: UnitName },
    /// Templates are inactive, and only their instances are not.
    ActivatesTemplate { unit: UnitName },
    /// The contents are no unit file.
    BadFile {
        unit: UnitName,
        /// What is wrong, for people.
        error: String,
    },
    /// The contents ask of machines what cannot be.
    BadRequirements {
        unit: UnitName,
        /// What is wrong, for people.
        error: String,
    },
    /// There are as many units as there may be.
    TooManyUnits { limit: usize },
    /// The files of all units have as many bytes as they may have.
    TooManyBytes { limit: usize },
}

impl UnitRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::UnknownUnit { .. } => RefusalClass::Missing,
            Self::ActivatesTemplate { .. } | Self::BadFile { .. } | Self::BadRequirements { .. } => {
                RefusalClass::Invalid
            }
            Self::NoContents { .. }
            | Self::OtherContents { .. }
            | Self::NoState { .. }
            | Self::TooManyUnits { .. }
            | Self::TooManyBytes { .. } => RefusalClass::Conflict,
        }
    }
}

pub(crate) fn decide(state: &State, operation: &UnitOperation, actor: &str) -> Result<Granted, UnitRefusal> {
    match operation {
        UnitOperation::Put { name, contents, desired, replaces } => {
            put(state, name, (contents.as_deref(), *desired, *replaces), actor)
        }
        UnitOperation::Destroy { name, expected } => destroy(state, name, expected.as_deref(), actor),
    }
}

/// The order of the checks is that of fleet: whether the unit is there, its contents, its state. The same contents again change the state only.
fn put(
    state: &State,
    name: &UnitName,
    (contents, desired, replaces): (Option<&str>, Option<UnitState>, bool),
    actor: &str,
) -> Result<Granted, UnitRefusal> {
    let unit = || name.clone();
    let file = contents.map(UnitFile::parse).transpose();
    let file = file.map_err(|error| UnitRefusal::BadFile { unit: unit(), error: error.to_string() })?;
    let existing = state.units.unit(name);
    let submitted = match (existing, file) {
        (None, None) => return Err(UnitRefusal::NoContents { unit: unit() }),
        (Some(existing), Some(file)) if is_same(&existing.file, &file, replaces) => None,
        (Some(_), Some(_)) if !replaces => return Err(UnitRefusal::OtherContents { unit: unit() }),
        (None | Some(_), file) => file,
    };
    let wanted = match (desired, &submitted) {
        (Some(desired), _) => desired,
        (None, Some(_)) => UnitState::Inactive,
        (None, None) => return Err(UnitRefusal::NoState { unit: unit() }),
    };
    if name.is_template() && wanted != UnitState::Inactive {
        return Err(UnitRefusal::ActivatesTemplate { unit: unit() });
    }
    let taken = match wanted {
        UnitState::Inactive => take_everywhere(name, existing, TakenAway::NotWanted),
        UnitState::Loaded | UnitState::Launched => None,
    };
    let (name, actor) = (name.clone(), actor.to_owned());
    let (changed, accepted) = if let Some(file) = submitted {
        check_file(state, &name, &file)?;
        let contents = file.text().to_owned();
        let submitted = UnitFact::Submitted { name, contents, desired: wanted, actor };
        (Some(submitted), Accepted::Created)
    } else {
        let is_other = existing.is_some_and(|existing| existing.desired != wanted);
        (is_other.then_some(UnitFact::Wanted { name, state: wanted, actor }), Accepted::Done)
    };
    Ok(Granted { facts: taken.into_iter().chain(changed).map(Fact::from).collect(), accepted })
}

/// Whether two files are the same unit: by their options if other ones replace them, else by their text.
fn is_same(one: &UnitFile, other: &UnitFile, by_options: bool) -> bool {
    if by_options { one.options_hash() == other.options_hash() } else { one == other }
}

/// Whether the file can be that of the unit, and the site has room for it. A destroyed unit that has not stopped yet takes room.
fn check_file(state: &State, name: &UnitName, file: &UnitFile) -> Result<(), UnitRefusal> {
    Requirements::read(name, file)
        .map_err(|error| UnitRefusal::BadRequirements { unit: name.clone(), error: error.to_string() })?;
    let before = state.units.units.get(name);
    if before.is_none() && state.units.units.len() >= UNITS_MAX {
        return Err(UnitRefusal::TooManyUnits { limit: UNITS_MAX });
    }
    let replaced = before.map_or(0, |unit| unit.file.text().len());
    if state.units.bytes() - replaced + file.text().len() > UNITS_BYTES_MAX {
        return Err(UnitRefusal::TooManyBytes { limit: UNITS_BYTES_MAX });
    }
    Ok(())
}

fn destroy(
    state: &State,
    name: &UnitName,
    expected: Option<&str>,
    actor: &str,
) -> Result<Granted, UnitRefusal> {
    let Some(unit) = state.units.unit(name) else {
        return Err(UnitRefusal::UnknownUnit { unit: name.clone() });
    };
    if expected.is_some_and(|expected| expected != unit.file.text()) {
        return Err(UnitRefusal::OtherContents { unit: name.clone() });
    }
    let taken = take_everywhere(name, Some(unit), TakenAway::Destroyed);
    let destroyed = UnitFact::Destroyed { name: name.clone(), actor: actor.to_owned() };
    Ok(Granted::done(taken.into_iter().chain([destroyed]).map(Fact::from).collect()))
}

/// The unit belongs on no host any more; absent if it was on none.
fn take_everywhere(name: &UnitName, unit: Option<&Unit>, why: TakenAway) -> Option<UnitFact> {
    let hosts: Vec<HostName> =
        unit.into_iter().flat_map(Unit::stays_on).map(|(host, _)| host.clone()).collect();
    if hosts.is_empty() {
        return None;
    }
    Some(UnitFact::Taken { unit: name.clone(), hosts, why })
}
