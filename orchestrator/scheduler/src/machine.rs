//! Identities of machines.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The identity of a machine, as in its `/etc/machine-id`: 32 hexadecimal digits, read in either case and written in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct MachineId([u8; 32]);

/// A text is not the identity of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a machine has 32 hexadecimal digits, as in /etc/machine-id")]
pub struct MachineIdError;

impl MachineId {
    /// Parses `text` as an identity.
    ///
    /// # Errors
    /// It is not one.
    pub fn new(text: &str) -> Result<Self, MachineIdError> {
        let digits: [u8; 32] = text.as_bytes().try_into().map_err(|_| MachineIdError)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(MachineIdError);
        }
        Ok(Self(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        // They are ASCII digits.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Its first eight digits, by which fleet's tools show it.
    pub fn short(&self) -> &str {
        self.as_str().get(..8).unwrap_or_default()
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MachineId({self})")
    }
}

impl FromStr for MachineId {
    type Err = MachineIdError;

    fn from_str(text: &str) -> Result<Self, MachineIdError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for MachineId {
    type Error = MachineIdError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, MachineIdError> {
        Self::new(&text)
    }
}

impl From<MachineId> for String {
    fn from(id: MachineId) -> Self {
        id.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_in_lower_case() {
        let id = MachineId::new("933FBDFF1bdc4be0a7b64a9b58c3189d").unwrap();
        assert_eq!(id.to_string(), "933fbdff1bdc4be0a7b64a9b58c3189d");
        assert_eq!(id.short(), "933fbdff");
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"933fbdff1bdc4be0a7b64a9b58c3189d\"");
        assert_eq!(serde_json::from_str::<MachineId>(&json).unwrap(), id);
    }

    #[test]
    fn other_texts_are_no_ids() {
        let digits = "0123456789abcdef".repeat(2);
        assert!(MachineId::new(&digits).is_ok());
        for text in [
            "",
            &digits[1..],
            &format!("{digits}0"),
            &format!("{digits}\n"),
            &format!(" {}", &digits[1..]),
            &format!("{} ", &digits[1..]),
            &format!("g{}", &digits[1..]),
            &format!("ä{}", &digits[2..]),
            "01234567-89ab-cdef-0123-456789abcdef",
        ] {
            assert_eq!(text.parse::<MachineId>(), Err(MachineIdError), "{text:?}");
        }
    }
}
