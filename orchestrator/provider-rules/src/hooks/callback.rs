//! What a provider says when it calls back.

use std::collections::BTreeSet;

use os_upgrade_protocol::HostName;
use serde_json::value::RawValue;

use super::elements::{Position, for_each};
use super::member::{Key, Member, MemberError};
use crate::name::ProviderName;

/// The longest body of a call-back, in bytes.
pub const CALLBACK_BYTES_MAX: usize = 1024 * 1024;
/// The most elements of a call-back.
pub const CALLBACK_MEMBERS_MAX: usize = 1_000;
/// The most devices of a call-back: those of all elements together, each counted once for every element that names it.
pub const CALLBACK_DEVICES_MAX: usize = 10_000;

/// The only event of a call-back.
const CONFIG_UPDATE: &str = "ON_CONFIG_UPDATE";
/// The longest UUID, in bytes. It is any text that the provider recognizes.
const UUID_BYTES_MAX: usize = 128;

/// A provider wants to be asked about devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigUpdate {
    /// What the provider calls this event.
    pub uuid: Option<String>,
    pub provider: ProviderName,
    /// At least one; each once, in the order in which they were first named.
    pub hosts: Vec<HostName>,
}

/// Why a call-back cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    #[error("a call-back has at most {CALLBACK_BYTES_MAX} bytes")]
    TooLarge,
    #[error("a call-back is a JSON array: see line {line}, column {column}")]
    NotAnArray { line: usize, column: usize },
    #[error("a call-back has at most {CALLBACK_MEMBERS_MAX} elements")]
    TooManyMembers,
    #[error("a call-back names at most {CALLBACK_DEVICES_MAX} devices")]
    TooManyDevices,
}

/// Why an element of a call-back cannot be used; the others can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    #[error("it is not an object with each key once")]
    Malformed,
    #[error("`event` must be {CONFIG_UPDATE}")]
    Event,
    #[error("`event_uuid` is a text of at most {UUID_BYTES_MAX} bytes without control characters")]
    Uuid,
    #[error("`config_name` is missing, which is the name of the provider")]
    NoName,
    #[error("the spellings of `config_name` have different values")]
    NamesDiffer,
    #[error("`config_name` is not the name of a provider")]
    Name,
    #[error("`device_names` must be an array with at least one name")]
    NoDevices,
    #[error("`device_names` has something at index {index} that is not the name of a device")]
    Device { index: usize },
}

/// Reads a call-back: for each of its elements what it says, or why it cannot be used.
///
/// # Errors
/// See [`CallbackError`].
pub fn read_callback(body: &[u8]) -> Result<Vec<Result<ConfigUpdate, UpdateError>>, CallbackError> {
    if body.len() > CALLBACK_BYTES_MAX {
        return Err(CallbackError::TooLarge);
    }
    let mut members = Vec::new();
    let mut count = 0;
    let mut devices = 0;
    for_each(body, |json| {
        count += 1;
        if count <= CALLBACK_MEMBERS_MAX && devices <= CALLBACK_DEVICES_MAX {
            let update = read_update(&Member::read(json));
            devices += update.as_ref().map_or(0, |update| update.hosts.len());
            members.push(update);
        }
    })
    .map_err(|Position { line, column }| CallbackError::NotAnArray { line, column })?;
    if count > CALLBACK_MEMBERS_MAX {
        return Err(CallbackError::TooManyMembers);
    }
    if devices > CALLBACK_DEVICES_MAX {
        return Err(CallbackError::TooManyDevices);
    }
    Ok(members)
}

fn read_update(member: &Member<'_>) -> Result<ConfigUpdate, UpdateError> {
    if member.is_malformed() {
        return Err(UpdateError::Malformed);
    }
    if member.text(Key::Event).ok().flatten().as_deref() != Some(CONFIG_UPDATE) {
        return Err(UpdateError::Event);
    }
    let uuid = member.text(Key::EventUuid).map_err(|_| UpdateError::Uuid)?;
    if uuid.as_ref().is_some_and(|uuid| uuid.len() > UUID_BYTES_MAX || uuid.contains(char::is_control)) {
        return Err(UpdateError::Uuid);
    }
    let name = member.config_name().map_err(|error| match error {
        MemberError::NotText => UpdateError::Name,
        MemberError::NamesDiffer => UpdateError::NamesDiffer,
    })?;
    let provider = ProviderName::new(&name.ok_or(UpdateError::NoName)?).map_err(|_| UpdateError::Name)?;
    let hosts = member.json(Key::DeviceNames).map_or(Ok(Vec::new()), read_hosts)?;
    if hosts.is_empty() {
        return Err(UpdateError::NoDevices);
    }
    Ok(ConfigUpdate { uuid, provider, hosts })
}

/// The hosts that the array `json` names, each once.
fn read_hosts(json: &RawValue) -> Result<Vec<HostName>, UpdateError> {
    let mut hosts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut fault = None;
    let mut index = 0;
    for_each(json.get().as_bytes(), |element| {
        match serde_json::from_str::<HostName>(element.get()) {
            Ok(host) if seen.insert(host.clone()) => hosts.push(host),
            Ok(_) => {}
            Err(_) => fault = fault.or(Some(UpdateError::Device { index })),
        }
        index += 1;
    })
    .map_err(|_| UpdateError::NoDevices)?;
    fault.map_or(Ok(hosts), Err)
}

#[cfg(test)]
mod tests;
