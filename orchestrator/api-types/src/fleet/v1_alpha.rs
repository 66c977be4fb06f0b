//! The bodies of v1-alpha. Everything is below `data`, and what is absent or empty is left out.

use std::borrow::Cow;

use os_upgrade_scheduler::UnitState;
use serde::{Deserialize, Serialize};

use crate::fleet::contents;
use crate::fleet::list::Page;
use crate::fleet::request_body::{self, Others, RequestBodyError};
use crate::fleet::shown::{ShownUnit, Systemd};

/// The envelope of every body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data<T> {
    /// What the body is about.
    pub data: T,
}

impl<T> Data<T> {
    /// A body about `data`.
    pub const fn new(data: T) -> Self {
        Self { data }
    }
}

/// A page of a list. `{"data":{}}` is an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageBody<T> {
    /// The entities.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<T>,
    /// The token of the next page.
    #[serde(rename = "nextPageToken", default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

impl<T> From<Page<T>> for Data<PageBody<T>> {
    fn from(page: Page<T>) -> Self {
        let next_page_token = page.next.map(|token| token.to_string());
        Self::new(PageBody { items: page.items, next_page_token })
    }
}

/// The unit entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitBody<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its file in base64.
    pub file_contents: String,
    /// The SHA-1 of its file.
    pub file_hash: String,
    /// The state that somebody wishes.
    pub desired_state: UnitState,
    /// The state that it is in.
    pub current_state: UnitState,
    /// The machine on which it is placed.
    #[serde(rename = "targetMachineID", default, skip_serializing_if = "Option::is_none")]
    pub target_machine_id: Option<String>,
    /// What systemd says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub systemd: Option<SystemdBody<'a>>,
}

/// What systemd says of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemdBody<'a> {
    /// The LOAD state.
    pub load_state: Cow<'a, str>,
    /// The ACTIVE state.
    pub active_state: Cow<'a, str>,
    /// The SUB state.
    pub sub_state: Cow<'a, str>,
    /// The machine that has reported it.
    #[serde(rename = "machineID")]
    pub machine_id: String,
}

impl<'a> UnitBody<'a> {
    /// The entity of a unit.
    pub fn new(unit: &ShownUnit<'a>) -> Self {
        Self {
            name: unit.name.as_str().into(),
            file_contents: contents::encode(unit.file.text()),
            file_hash: unit.file.file_hash().to_string(),
            desired_state: unit.desired,
            current_state: unit.current,
            target_machine_id: unit.target.map(ToString::to_string),
            systemd: unit.systemd.as_ref().map(SystemdBody::new),
        }
    }
}

impl<'a> SystemdBody<'a> {
    fn new(systemd: &Systemd<'a>) -> Self {
        Self {
            load_state: systemd.load.into(),
            active_state: systemd.active.into(),
            sub_state: systemd.sub.into(),
            machine_id: systemd.machine.to_string(),
        }
    }
}

/// What a PUT or a DELETE says of a unit. A name in the body does not count: that of the URL does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialUnit {
    /// The state that is wished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_state: Option<UnitState>,
    /// The file in base64, not decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_contents: Option<String>,
    #[serde(flatten)]
    others: Others,
}

impl PartialUnit {
    /// What a client asks for.
    pub const fn new(desired_state: Option<UnitState>, file_contents: Option<String>) -> Self {
        Self { desired_state, file_contents, others: Others {} }
    }

    /// Reads the body of a PUT or a DELETE.
    ///
    /// # Errors
    /// It is too large, not JSON, or without `data`, or a field has a wrong type or an unknown state.
    pub fn read(body: &[u8]) -> Result<Self, RequestBodyError> {
        let Data { data } = request_body::read::<Data<Self>>(body)?;
        Ok(data)
    }

    /// The file in base64. An empty one is none, as for fleet.
    pub fn contents(&self) -> Option<&str> {
        self.file_contents.as_deref().filter(|contents| !contents.is_empty())
    }
}

#[cfg(test)]
mod tests;
