//! Hashes of unit files.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

/// The SHA-1 of a unit file, which is what fleet's API has. It tells versions of a file apart and protects against nothing. As text it is
/// in lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct UnitHash([u8; 20]);

/// A text is not the hash of a unit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a unit file has 40 hexadecimal digits")]
pub struct UnitHashError;

impl UnitHash {
    /// The hash of `text`.
    pub(super) fn digest(text: &str) -> Self {
        Self(Sha1::digest(text.as_bytes()).into())
    }
}

impl fmt::Display for UnitHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for UnitHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnitHash({self})")
    }
}

impl FromStr for UnitHash {
    type Err = UnitHashError;

    fn from_str(text: &str) -> Result<Self, UnitHashError> {
        // The parser of numbers takes a sign too.
        if text.len() != 40 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(UnitHashError);
        }
        let mut bytes = [0; 20];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| UnitHashError)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<Cow<'_, str>> for UnitHash {
    type Error = UnitHashError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, UnitHashError> {
        text.parse()
    }
}

impl From<UnitHash> for String {
    fn from(hash: UnitHash) -> Self {
        hash.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 180-2, appendix A.1.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let hash = UnitHash::digest("abc");
        let text = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.to_uppercase().parse::<UnitHash>(), Ok(hash));
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<UnitHash>(&json).unwrap(), hash);
    }

    #[test]
    fn other_texts_are_no_hashes() {
        for text in ["", "+9", &"0".repeat(39), &"0".repeat(41), &"+9".repeat(20), &"ä".repeat(20)] {
            assert_eq!(text.parse::<UnitHash>(), Err(UnitHashError), "{text:?}");
        }
    }
}
