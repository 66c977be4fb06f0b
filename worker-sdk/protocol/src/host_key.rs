//! The key to which a host's items are sealed.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The text is not a host's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a host's key is 32 bytes in base64url, which are 43 characters of [A-Za-z0-9_-]")]
pub struct HostKeyError;

/// The public key of a host, X25519 (RFC 7748). As text it is its 32 bytes in base64url without padding; that is as short as a fingerprint
/// would be, so people compare the key itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct HostKey([u8; 32]);

impl HostKey {
    /// The key with these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({self})")
    }
}

impl FromStr for HostKey {
    type Err = HostKeyError;

    fn from_str(text: &str) -> Result<Self, HostKeyError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| HostKeyError)?;
        bytes.try_into().map(Self).map_err(|_| HostKeyError)
    }
}

impl TryFrom<Cow<'_, str>> for HostKey {
    type Error = HostKeyError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, HostKeyError> {
        text.parse()
    }
}

impl From<HostKey> for String {
    fn from(key: HostKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back() {
        let key = HostKey::new([0xfb; 32]);
        assert_eq!(key.to_string(), "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s");
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!(serde_json::from_str::<HostKey>(&serde_json::to_string(&key).unwrap()).unwrap(), key);
    }

    #[test]
    fn texts_that_are_no_key_are_refused() {
        let key = HostKey::new([1; 32]).to_string();
        for text in ["", "AQEB", &key[1..], &format!("{key}="), &format!(" {key}"), &key.replace('A', "+")] {
            assert_eq!(text.parse::<HostKey>(), Err(HostKeyError), "{text}");
        }
        // One of the last character's bits that are not used is set.
        assert!(format!("{}F", &key[..42]).parse::<HostKey>().is_err());
    }
}
