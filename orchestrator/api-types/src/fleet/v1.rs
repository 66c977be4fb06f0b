//! The bodies of v1. Fleet leaves out what is empty; here `units`, `machines`, `states`, `options` and `hash` are always there, because
//! living clients read them without asking.

use std::borrow::Cow;

use os_upgrade_scheduler::{UnitName, UnitOption, UnitState};
use serde::{Deserialize, Serialize};

use crate::fleet::list::Page;
use crate::fleet::machine::MachineBody;
use crate::fleet::request_body::{self, Others, RequestBodyError};
use crate::fleet::shown::{ShownUnit, Systemd};

/// Declares a page: its name, the field with its entities, and their type.
macro_rules! page_bodies {
    ($($(#[doc = $what:literal])+ $name:ident<$a:lifetime> { $field:ident: $entity:ty })+) => {
        $(
            $(#[doc = $what])+
            #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
            pub struct $name<$a> {
                /// The entities.
                #[serde(default)]
                pub $field: Vec<$entity>,
                /// The token of the next page.
                #[serde(rename = "nextPageToken", default, skip_serializing_if = "Option::is_none")]
                pub next_page_token: Option<String>,
            }

            impl<$a> From<Page<$entity>> for $name<$a> {
                fn from(page: Page<$entity>) -> Self {
                    Self { $field: page.items, next_page_token: page.next.map(|token| token.to_string()) }
                }
            }
        )+
    };
}

page_bodies! {
    /// A page of units.
    UnitPage<'a> { units: UnitBody<'a> }
    /// A page of machines.
    MachinePage<'a> { machines: MachineBody<'a> }
    /// A page of states.
    StatePage<'a> { states: StateBody<'a> }
}

/// The unit entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitBody<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its options, in the order of its file.
    #[serde(default)]
    pub options: Vec<OptionBody<'a>>,
    /// The state that somebody wishes.
    pub desired_state: UnitState,
    /// The state that it is in.
    pub current_state: UnitState,
    /// The machine on which it is placed.
    #[serde(rename = "machineID", default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
}

/// An option of a unit file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionBody<'a> {
    /// Its section.
    pub section: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its value. `fleetctl` leaves out an empty one.
    #[serde(default)]
    pub value: Cow<'a, str>,
    #[serde(flatten)]
    others: Others,
}

/// The state entity: what systemd says of a unit on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateBody<'a> {
    /// The unit.
    pub name: Cow<'a, str>,
    /// The hash of the options that are loaded there; empty if that is not known. Never a shorter one: `fleetctl` cuts seven characters.
    #[serde(default)]
    pub hash: String,
    /// The machine.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// The LOAD state.
    pub systemd_load_state: Cow<'a, str>,
    /// The ACTIVE state.
    pub systemd_active_state: Cow<'a, str>,
    /// The SUB state.
    pub systemd_sub_state: Cow<'a, str>,
}

impl<'a> UnitBody<'a> {
    /// The entity of a unit.
    pub fn new(unit: &ShownUnit<'a>) -> Self {
        Self {
            name: unit.name.as_str().into(),
            options: unit.file.options().iter().map(OptionBody::new).collect(),
            desired_state: unit.desired,
            current_state: unit.current,
            machine_id: unit.target.map(ToString::to_string),
        }
    }
}

impl<'a> OptionBody<'a> {
    /// The body of an option.
    pub fn new(option: &'a UnitOption) -> Self {
        Self {
            section: option.section.as_str().into(),
            name: option.name.as_str().into(),
            value: option.value.as_str().into(),
            others: Others {},
        }
    }

    /// The option.
    pub fn into_option(self) -> UnitOption {
        let Self { section, name, value, others: _ } = self;
        UnitOption { section: section.into_owned(), name: name.into_owned(), value: value.into_owned() }
    }
}

impl<'a> StateBody<'a> {
    /// The entity of what systemd says of the unit `name`.
    pub fn new(name: &'a UnitName, systemd: &Systemd<'a>) -> Self {
        Self {
            name: name.as_str().into(),
            hash: systemd.hash.as_ref().map(ToString::to_string).unwrap_or_default(),
            machine_id: systemd.machine.to_string(),
            systemd_load_state: systemd.load.into(),
            systemd_active_state: systemd.active.into(),
            systemd_sub_state: systemd.sub.into(),
        }
    }
}

/// What a PUT says of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialUnit {
    /// The name, which must be that in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The state that is wished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_state: Option<UnitState>,
    /// The options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<OptionBody<'static>>>,
    #[serde(flatten)]
    others: Others,
}

impl PartialUnit {
    /// What a client asks for.
    pub const fn new(desired_state: Option<UnitState>, options: Option<Vec<OptionBody<'static>>>) -> Self {
        Self { name: None, desired_state, options, others: Others {} }
    }

    /// Reads the body of a PUT.
    ///
    /// # Errors
    /// It is too large, or not JSON, or a field has a wrong type or an unknown state.
    pub fn read(body: &[u8]) -> Result<Self, RequestBodyError> {
        request_body::read(body)
    }

    /// The name, unless it is empty: then it is that in the URL.
    pub fn stated_name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
    }

    /// The options. An empty list is none.
    pub fn into_options(self) -> Option<Vec<UnitOption>> {
        let options = self.options.filter(|options| !options.is_empty())?;
        Some(options.into_iter().map(OptionBody::into_option).collect())
    }
}

#[cfg(test)]
mod tests;
