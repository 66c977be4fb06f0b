//! Parsing JSON from untrusted senders, and what serde asks when it writes some.

use serde::Deserialize;
use serde::de::Error as _;

/// Why bytes from the bus are not a message of this protocol.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The payload is larger than the limit for its kind.
    #[error("payload exceeds the limit of {limit} bytes")]
    TooLarge {
        /// Largest payload of this kind, in bytes.
        limit: usize,
    },
    /// The payload is not JSON of the expected shape.
    #[error("payload is not a valid message")]
    Json(#[source] serde_json::Error),
    /// The payload is well-formed JSON, but one of its values is not allowed.
    #[error("{0}")]
    Value(String),
}

/// Reads `payload` as JSON after checking it against `limit`, in bytes.
pub(crate) fn parse_bounded<'de, T: Deserialize<'de>>(
    payload: &'de [u8],
    limit: usize,
) -> Result<T, ParseError> {
    if payload.len() > limit {
        return Err(ParseError::TooLarge { limit });
    }
    object(payload).map_err(ParseError::Json)
}

/// Whether `value` is left out when it is written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
pub(crate) const fn is_false(value: &bool) -> bool {
    !*value
}

/// Reads a JSON object. Two things that serde accepts are rejected: a list, whose items would become the fields in
/// their order, and invalid UTF-8 in ignored fields.
///
/// # Errors
/// The bytes are not JSON of the expected shape.
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
    fn lists_are_rejected() {
        assert_eq!(object::<Pair>(br#" {"b":2,"a":1} "#).unwrap(), Pair { a: 1, b: 2 });
        for list in ["[1,2]", "\n [1,2]"] {
            assert!(serde_json::from_slice::<Pair>(list.as_bytes()).is_ok(), "serde accepts it");
            let error = object::<Pair>(list.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "an object is expected, not a list");
        }
        assert!(object::<Pair>(b"").is_err());
    }

    #[test]
    fn ignored_fields_must_be_utf_8() {
        let json = b"{\"a\":1,\"b\":2,\"c\":\"\xe3\"}";
        assert!(serde_json::from_slice::<Pair>(json).is_ok(), "serde accepts it");
        assert!(object::<Pair>(json).is_err());
    }
}
