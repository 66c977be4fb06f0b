//! Versions of the packages that a host runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::VERSIONS_BYTES_MAX;

/// How much of a package's name an error quotes, in characters.
const NAMED_CHARS_MAX: usize = 64;

/// A flat JSON object that maps packages to versions: `{"linux":"6.12.9","os-release":"13.2"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Versions(pub BTreeMap<String, String>);

impl Versions {
    /// Reads versions that conform to the protocol from a message's payload. Numbers and booleans are converted to
    /// text.
    ///
    /// # Errors
    /// The payload is larger than [`VERSIONS_BYTES_MAX`], is not a JSON object, or has nested or null values.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        let (versions, fault) = Self::parse_plain(payload)?;
        fault.map_or(Ok(versions), Err)
    }

    /// Reads the versions of a payload that may have nested or null values: those are left out, and the error that is
    /// returned with the others names the first.
    ///
    /// # Errors
    /// The payload is larger than [`VERSIONS_BYTES_MAX`], or is not a JSON object.
    pub fn parse_plain(payload: &[u8]) -> Result<(Self, Option<ParseError>), ParseError> {
        let object: BTreeMap<String, Value> = parse_bounded(payload, VERSIONS_BYTES_MAX)?;
        let mut fault = None;
        let text = |(package, version): (String, Value)| {
            let text = match version {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let name: String = package.chars().take(NAMED_CHARS_MAX).collect();
                    let message = || format!("the version of {name:?} is not a plain value");
                    fault.get_or_insert_with(|| ParseError::Value(message()));
                    return None;
                }
            };
            Some((package, text))
        };
        let versions = object.into_iter().filter_map(text).collect();
        Ok((Self(versions), fault))
    }

    /// The payload of these versions.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a map of strings has no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flat_objects_are_versions() {
        let versions = Versions::parse(br#"{"linux":"6.12","build":7,"lts":true}"#).unwrap();
        assert_eq!(
            String::from_utf8(versions.to_payload()).unwrap(),
            r#"{"build":"7","linux":"6.12","lts":"true"}"#
        );
        for json in [r#"{"a":{}}"#, r#"{"a":[]}"#, r#"{"a":null}"#, "[]", "", "7"] {
            assert!(Versions::parse(json.as_bytes()).is_err(), "{json}");
        }
    }

    #[test]
    fn nested_and_null_values_are_left_out() {
        let mixed = br#"{"a":"1","b":null,"c":{"d":"2"},"e":["3"],"f":4}"#;
        let (versions, fault) = Versions::parse_plain(mixed).unwrap();
        assert_eq!(String::from_utf8(versions.to_payload()).unwrap(), r#"{"a":"1","f":"4"}"#);
        assert_eq!(fault.unwrap().to_string(), "the version of \"b\" is not a plain value");
        assert!(Versions::parse_plain(br#"{"a":"1"}"#).unwrap().1.is_none());
        for json in ["[]", "", "7", "null"] {
            assert!(Versions::parse_plain(json.as_bytes()).is_err(), "{json}");
        }
    }
}
