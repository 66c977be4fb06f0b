//! Versions of the packages that a host runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::VERSIONS_BYTES_MAX;

/// A flat JSON object that maps packages to versions: `{"linux":"6.12.9","os-release":"13.2"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Versions(pub BTreeMap<String, String>);

impl Versions {
    /// Reads versions from a message's payload. Numbers and booleans are converted to text.
    ///
    /// # Errors
    /// The payload is larger than [`VERSIONS_BYTES_MAX`], is not a JSON object, or has nested or null values.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        let object: BTreeMap<String, Value> = parse_bounded(payload, VERSIONS_BYTES_MAX)?;
        let text = |(package, version): (String, Value)| match version {
            Value::String(text) => Ok((package, text)),
            Value::Number(number) => Ok((package, number.to_string())),
            Value::Bool(flag) => Ok((package, flag.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(ParseError::Value(format!("the version of {package:?} is not a plain value")))
            }
        };
        object.into_iter().map(text).collect::<Result<_, _>>().map(Self)
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
}
