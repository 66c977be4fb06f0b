//! What a provider gives as `configuration`. It is one of four things:
//!
//! - a text;
//! - a file as flightctl writes it: an object with `content`, `path` or `contentEncoding`, perhaps `mode`, `user` and `group`, and nothing
//!   else;
//! - a configuration of Ignition: an object with `ignition`;
//! - any other JSON, which the host gets as it was received.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use os_upgrade_protocol::limits::ITEM_BYTES_MAX;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::given::{Given, GivenFile};
use super::ignition::read_ignition;
use crate::content::ContentBytes;
use crate::digest::hex_of;
use crate::failure::ConfigurationProblem;

/// What a `configuration` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    File,
    Ignition,
    Json,
}

/// A file as flightctl writes it, in its `FileSpec`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileSpec {
    content: String,
    #[serde(default)]
    content_encoding: ContentEncoding,
    path: Option<String>,
    mode: Option<i64>,
    user: Option<String>,
    group: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ContentEncoding {
    #[default]
    Plain,
    Base64,
}

/// The configuration that `json` is. `null` is JSON like any other here.
///
/// # Errors
/// See [`ConfigurationProblem`].
pub fn read_configuration(json: &RawValue) -> Result<Given, ConfigurationProblem> {
    let json = json.get();
    match form(json)? {
        Form::Text => {
            let text = serde_json::from_str(json).map_err(|_| ConfigurationProblem::NotUnicode)?;
            content(text)
        }
        Form::File => file(json),
        Form::Ignition => {
            let (files, bytes) = read_ignition(json)?;
            Ok(Given { files, bytes, hash: hex_of(json.as_bytes()) })
        }
        Form::Json => content(json.to_owned()),
    }
}

/// One content, without a file.
fn content(text: String) -> Result<Given, ConfigurationProblem> {
    let bytes = bounded(text.into_bytes())?;
    let hash = hex_of(bytes.as_slice());
    Ok(Given { files: Vec::new(), bytes, hash })
}

fn file(json: &str) -> Result<Given, ConfigurationProblem> {
    let FileSpec { content, content_encoding, path, mode, user, group } =
        serde_json::from_str(json).map_err(|_| ConfigurationProblem::File)?;
    let bytes = match content_encoding {
        ContentEncoding::Plain => bounded(content.into_bytes())?,
        ContentEncoding::Base64 => decode_base64(&Zeroizing::new(content))?,
    };
    let hash = hex_of(bytes.as_slice());
    let files = match path {
        Some(path) => vec![GivenFile::new(1, path, mode, user, group, bytes.as_slice().len())?],
        // They would be lost: whose the file is, and who may read it.
        None if mode.is_some() || user.is_some() || group.is_some() => {
            return Err(ConfigurationProblem::NoPath);
        }
        None => Vec::new(),
    };
    Ok(Given { files, bytes, hash })
}

/// Decodes base64 with padding, in one line or several.
fn decode_base64(text: &str) -> Result<ContentBytes, ConfigurationProblem> {
    let is_content = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    let mut line: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(text.len()));
    line.extend(text.bytes().filter(is_content));
    bounded(STANDARD.decode(line.as_slice()).map_err(|_| ConfigurationProblem::Base64)?)
}

fn bounded(bytes: Vec<u8>) -> Result<ContentBytes, ConfigurationProblem> {
    let bytes = ContentBytes::new(bytes);
    if bytes.as_slice().len() > ITEM_BYTES_MAX {
        return Err(ConfigurationProblem::TooLarge { limit: ITEM_BYTES_MAX });
    }
    Ok(bytes)
}

fn form(json: &str) -> Result<Form, ConfigurationProblem> {
    match json.as_bytes().first() {
        Some(b'"') => Ok(Form::Text),
        Some(b'{') => {
            let mut json = serde_json::Deserializer::from_str(json);
            // Its syntax has been read once: what fails here is a key with half a character.
            json.deserialize_map(FormVisitor).map_err(|_| ConfigurationProblem::NotUnicode)
        }
        _ => Ok(Form::Json),
    }
}

/// A key of an object that tells what the object is.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Ignition,
    Content,
    ContentEncoding,
    Path,
    Mode,
    User,
    Group,
    #[serde(other)]
    Other,
}

/// Reads what an object is.
struct FormVisitor;

impl<'de> Visitor<'de> for FormVisitor {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Form, M::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, _)) = map.next_entry::<Key, IgnoredAny>()? {
            keys.insert(key);
        }
        let has = |key| keys.contains(&key);
        Ok(if has(Key::Ignition) {
            Form::Ignition
        } else if has(Key::Content) && (has(Key::Path) || has(Key::ContentEncoding)) && !has(Key::Other) {
            Form::File
        } else {
            Form::Json
        })
    }
}

#[cfg(test)]
mod tests;
