//! What an item of kind `unit` says. It is not sealed: whoever may read the item can read the unit.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{UNIT_BYTES_MAX, UNIT_ITEM_BYTES_MAX};
use crate::name::check;

/// A unit that a host is to have:
/// `{"name":"app.service","contents":"[Service]\nExecStart=/usr/bin/app\n","state":"launched","placement":7}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitItem {
    /// Its name with the suffix, which is also that of the item.
    pub name: String,
    /// The unit file, of [`UNIT_BYTES_MAX`] at most.
    pub contents: String,
    pub state: WantedState,
    /// The number of the decision to place it on this host. A unit that was taken away and placed here again has another one, and is
    /// started again.
    pub placement: u64,
}

/// What is to become of a unit on its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedState {
    /// It is there, and nobody starts it.
    Loaded,
    /// It is there and is started, once for these contents, this placement and each boot.
    Launched,
}

impl UnitItem {
    /// Reads the content of an item.
    ///
    /// # Errors
    /// It is larger than [`UNIT_ITEM_BYTES_MAX`], is not a JSON object of this shape, has contents of more than [`UNIT_BYTES_MAX`], or a name
    /// that is none.
    pub fn parse(content: &[u8]) -> Result<Self, ParseError> {
        let unit: Self = parse_bounded(content, UNIT_ITEM_BYTES_MAX)?;
        check(&unit.name).map_err(|error| ParseError::Value(format!("the name of the unit: {error}")))?;
        if unit.contents.len() > UNIT_BYTES_MAX {
            return Err(ParseError::Value(format!("contents of more than {UNIT_BYTES_MAX} bytes")));
        }
        Ok(unit)
    }

    /// The content of the item.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers have no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{ITEM_BYTES_MAX, NAME_BYTES_MAX};

    fn unit(name: &str, contents: &str) -> UnitItem {
        let (name, contents) = (name.to_owned(), contents.to_owned());
        UnitItem { name, contents, state: WantedState::Launched, placement: u64::MAX }
    }

    #[test]
    fn units_are_read_back() {
        let payload = r#"{"name":"app@1.service","contents":"[Service]\nExecStart=/usr/bin/app %i\n","state":"loaded","placement":7}"#;
        let read = UnitItem::parse(payload.as_bytes()).unwrap();
        assert_eq!((read.state, read.placement), (WantedState::Loaded, 7));
        assert_eq!(read.contents, "[Service]\nExecStart=/usr/bin/app %i\n");
        assert_eq!(String::from_utf8(read.to_payload()).unwrap(), payload);
    }

    #[test]
    fn largest_units_fit() {
        let largest = unit(&"\"".repeat(NAME_BYTES_MAX), &"\u{1}".repeat(UNIT_BYTES_MAX));
        let payload = largest.to_payload();
        assert!(payload.len() <= ITEM_BYTES_MAX, "{} bytes", payload.len());
        assert_eq!(UnitItem::parse(&payload).unwrap(), largest);
    }

    #[test]
    fn units_that_are_none_are_refused() {
        for (refused, expected) in [
            (unit("a.service", &"x".repeat(UNIT_BYTES_MAX + 1)), "contents of more than 65536 bytes"),
            (unit("", "[Service]"), "the name of the unit: a name must not be empty"),
        ] {
            assert_eq!(UnitItem::parse(&refused.to_payload()).unwrap_err().to_string(), expected);
        }
        for json in [
            "",
            "[]",
            "{}",
            r#"{"name":"a.service","contents":"","state":"inactive","placement":1}"#,
            r#"{"name":"a.service","contents":"","state":"launched","placement":-1}"#,
            r#"{"name":"a.service","contents":"","state":"launched"}"#,
        ] {
            assert!(matches!(UnitItem::parse(json.as_bytes()), Err(ParseError::Json(_))), "{json}");
        }
        let large = " ".repeat(UNIT_ITEM_BYTES_MAX + 1);
        assert!(matches!(UnitItem::parse(large.as_bytes()), Err(ParseError::TooLarge { .. })));
    }
}
