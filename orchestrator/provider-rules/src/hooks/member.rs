//! An element of an answer or a call-back: an object with the keys of the protocol, whose values are yet to be read.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;

/// A key of the protocol. The protocol's own example spells the configuration's name in three ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(field_identifier)]
pub(super) enum Key {
    #[serde(rename = "event")]
    Event,
    #[serde(rename = "event_uuid")]
    EventUuid,
    #[serde(rename = "device_name")]
    DeviceName,
    #[serde(rename = "device_names")]
    DeviceNames,
    #[serde(rename = "config_name")]
    ConfigName,
    #[serde(rename = "config-name")]
    ConfigNameHyphen,
    #[serde(rename = "config_-_name")]
    ConfigNameBoth,
    #[serde(rename = "configuration")]
    Configuration,
    #[serde(rename = "poll_interval")]
    PollInterval,
    #[serde(other)]
    Other,
}

/// Why a value cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberError {
    /// It is no text.
    NotText,
    /// The spellings of the configuration's name have different values.
    NamesDiffer,
}

/// The values of an element by their keys; others are left out. What it holds may be secret, so it has no `Debug`.
#[derive(Default)]
pub(super) struct Member<'a> {
    values: BTreeMap<Key, &'a RawValue>,
    is_malformed: bool,
}

impl<'a> Member<'a> {
    /// Reads as much of `json` as can be read.
    pub(super) fn read(json: &'a RawValue) -> Self {
        let mut member = Self::default();
        let mut deserializer = serde_json::Deserializer::from_str(json.get());
        let outcome = deserializer.deserialize_map(Collect(&mut member));
        member.is_malformed |= outcome.is_err();
        member
    }

    /// Whether it is no object, or names a key of the protocol twice.
    pub(super) const fn is_malformed(&self) -> bool {
        self.is_malformed
    }

    /// The value of `key`, as JSON.
    pub(super) fn json(&self, key: Key) -> Option<&'a RawValue> {
        self.values.get(&key).copied()
    }

    /// The text of `key`; `None` if it is absent or null.
    pub(super) fn text(&self, key: Key) -> Result<Option<String>, MemberError> {
        let Some(json) = self.json(key) else { return Ok(None) };
        serde_json::from_str(json.get()).map_err(|_| MemberError::NotText)
    }

    /// The name of the configuration, in whichever spelling; `None` without one.
    pub(super) fn config_name(&self) -> Result<Option<String>, MemberError> {
        let mut found: Option<String> = None;
        for key in [Key::ConfigName, Key::ConfigNameHyphen, Key::ConfigNameBoth] {
            if let Some(name) = self.text(key)? {
                if found.as_ref().is_some_and(|other| *other != name) {
                    return Err(MemberError::NamesDiffer);
                }
                found = Some(name);
            }
        }
        Ok(found)
    }
}

/// Takes the values of an object into the member. What was taken before a fault stays.
struct Collect<'m, 'a>(&'m mut Member<'a>);

impl<'a> Visitor<'a> for Collect<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let member = self.0;
        while let Some(key) = map.next_key::<Key>()? {
            if key == Key::Other {
                map.next_value::<IgnoredAny>()?;
            } else {
                let former = member.values.insert(key, map.next_value::<&'a RawValue>()?);
                member.is_malformed |= former.is_some();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Member<'_> {
        Member::read(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn keys_are_read_as_far_as_possible() {
        for (json, is_malformed, event) in [
            (r#"{"event":"E"}"#, false, Ok(Some("E"))),
            (r#"{"event":null,"more":[1]}"#, false, Ok(None)),
            ("{}", false, Ok(None)),
            (r#"{"event":7}"#, false, Err(MemberError::NotText)),
            (r#"{"event":"\ud800"}"#, false, Err(MemberError::NotText)),
            (r#"{"event":"E","event_uuid":"1","event_uuid":"2"}"#, true, Ok(Some("E"))),
            (r#"{"event":"E","\ud800":1}"#, true, Ok(Some("E"))),
            ("[]", true, Ok(None)),
            ("7", true, Ok(None)),
            ("null", true, Ok(None)),
        ] {
            let member = read(json);
            let found = (member.is_malformed(), member.text(Key::Event));
            assert_eq!(found, (is_malformed, event.map(|text| text.map(str::to_owned))), "{json}");
        }
        let json = r#"{"configuration": {"a": [1, 2]} }"#;
        let found = read(json).json(Key::Configuration).map(RawValue::get);
        assert_eq!(found, Some(r#"{"a": [1, 2]}"#));
    }

    #[test]
    fn config_names_have_three_spellings() {
        for (json, name) in [
            ("{}", Ok(None)),
            (r#"{"config_name":"a"}"#, Ok(Some("a"))),
            (r#"{"config-name":"a"}"#, Ok(Some("a"))),
            (r#"{"config_-_name":"a"}"#, Ok(Some("a"))),
            (r#"{"config_name":"a","config-name":"a","config_-_name":"a"}"#, Ok(Some("a"))),
            (r#"{"config_name":null,"config-name":"a"}"#, Ok(Some("a"))),
            (r#"{"config_name":"a","config-name":"b"}"#, Err(MemberError::NamesDiffer)),
            (r#"{"config-name":"a","config_-_name":"b"}"#, Err(MemberError::NamesDiffer)),
            (r#"{"config_name":["a"]}"#, Err(MemberError::NotText)),
            (r#"{"configName":"a"}"#, Ok(None)),
        ] {
            assert_eq!(read(json).config_name(), name.map(|text| text.map(str::to_owned)), "{json}");
        }
    }
}
