//! Reading JSON from outside.

use serde::Deserialize;
use serde::de::Error as _;

/// Reads a JSON object. A list is refused, which would be taken for an object whose fields stand in order, and so is
/// what is not UTF-8, which would be passed over in fields that are ignored.
///
/// # Errors
/// It is not JSON, or not of the expected shape.
pub fn object<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    if json.trim_ascii_start().first() == Some(&b'[') {
        return Err(serde_json::Error::custom("an object is expected, not a list"));
    }
    let text = str::from_utf8(json).map_err(serde_json::Error::custom)?;
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: u8,
        b: u8,
    }

    #[test]
    fn a_list_is_no_object() {
        assert_eq!(object::<Pair>(br#" {"b":2,"a":1} "#).unwrap(), Pair { a: 1, b: 2 });
        for list in ["[1,2]", "\n [1,2]"] {
            assert!(serde_json::from_slice::<Pair>(list.as_bytes()).is_ok(), "serde takes it");
            let error = object::<Pair>(list.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "an object is expected, not a list");
        }
        assert!(object::<Pair>(b"").is_err());
    }

    #[test]
    fn what_is_ignored_is_utf_8_too() {
        let json = b"{\"a\":1,\"b\":2,\"c\":\"\xe3\"}";
        assert!(serde_json::from_slice::<Pair>(json).is_ok(), "serde takes it");
        assert!(object::<Pair>(json).is_err());
    }
}
