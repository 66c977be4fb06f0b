//! The secret with which a provider calls back.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Serialize, Serializer};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::digest::hex_of;

/// How many random bytes make a token.
pub const CALLBACK_TOKEN_BYTES: usize = 32;
/// How long its text is: four characters for three bytes, without padding.
const TOKEN_CHARS: usize = (CALLBACK_TOKEN_BYTES * 4).div_ceil(3);

/// The secret that a provider presents when it calls back: 43 characters of base64url. It is in calls, which are sent to the provider;
/// `Debug` leaves it out, and it is cleared from memory when dropped. What is kept of it is its digest.
#[derive(Clone)]
pub struct CallbackToken(Zeroizing<String>);

impl CallbackToken {
    /// The token of these bytes, which must be random.
    pub fn from_bytes(bytes: &[u8; CALLBACK_TOKEN_BYTES]) -> Self {
        Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// None: the provider cannot call back with it.
    pub fn none() -> Self {
        Self(Zeroizing::new(String::new()))
    }

    /// The secret text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The SHA-256 of the text in lowercase hexadecimal. It has as many bits as the secret, so it may be kept in the open.
    pub fn digest(&self) -> String {
        hex_of(self.0.as_bytes())
    }

    /// The digest of what somebody `presented`; `None` if it cannot be a token, however long it is.
    pub fn digest_of(presented: &str) -> Option<String> {
        (presented.len() == TOKEN_CHARS).then(|| hex_of(presented.as_bytes()))
    }

    /// Whether the digests are the same, compared in constant time.
    pub fn is_same_digest(one: &str, other: &str) -> bool {
        one.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl fmt::Debug for CallbackToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackToken")
    }
}

/// The secret text, for the body of a call.
impl Serialize for CallbackToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_checked_by_their_digest() {
        let token = CallbackToken::from_bytes(&[0xfb; 32]);
        assert_eq!(token.as_str(), "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s");
        let (text, digest) = (token.as_str(), token.digest());
        let other = CallbackToken::from_bytes(&[0xfc; 32]).digest();
        let is_digest_of = |presented: &str, digest: &str| {
            let presented = CallbackToken::digest_of(presented);
            presented.is_some_and(|presented| CallbackToken::is_same_digest(&presented, digest))
        };
        assert!(is_digest_of(text, &digest));
        assert!(!is_digest_of(CallbackToken::none().as_str(), &CallbackToken::none().digest()));
        let digest = digest.as_str();
        for (presented, digest) in [
            (text, other.as_str()),
            (text, &digest[..63]),
            (text, ""),
            (text, text),
            (&text[..42], digest),
            (digest, digest),
            ("", digest),
        ] {
            assert!(!is_digest_of(presented, digest), "{presented} {digest}");
        }
    }

    #[test]
    fn tokens_are_not_displayed() {
        let token = CallbackToken::from_bytes(&[7; 32]);
        assert_eq!(format!("{token:?}"), "CallbackToken");
        assert_eq!(serde_json::to_string(&token).unwrap(), format!("\"{}\"", token.as_str()));
    }
}
