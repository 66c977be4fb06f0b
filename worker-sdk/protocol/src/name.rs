//! Names of hosts, worker applications and groups, and their encoding as one token of a NATS subject.
//!
//! A token keeps `[A-Za-z0-9_-]` and percent-encodes every other byte, because `.`, `*`, `>` and white space have
//! a meaning in subjects: `h1.example.com` becomes `h1%2Eexample%2Ecom`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::limits::{HOST_TOKEN_BYTES_MAX, NAME_BYTES_MAX};

/// The bytes that are escaped in a subject token.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-');

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("a name must not be empty")]
    Empty,
    /// The name is longer than [`NAME_BYTES_MAX`].
    #[error("a name of {0} bytes exceeds the limit of {NAME_BYTES_MAX}")]
    TooLong(usize),
    /// Files and consumers cannot be named after the host.
    #[error(transparent)]
    LongToken(#[from] LongToken),
    /// The name contains a control character.
    #[error("a name must not hold control characters")]
    ControlCharacter,
    /// The subject token is not the percent-encoding of a name.
    #[error("{0:?} is not a percent-encoded name")]
    BadToken(String),
    /// The group does not match the pattern that FleetLock prescribes.
    #[error("a group must match ^[a-zA-Z0-9.-]+$")]
    BadGroup,
}

/// The token of a host's name, of so many bytes, is longer than [`HOST_TOKEN_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it takes {0} bytes of at most {HOST_TOKEN_BYTES_MAX}: letters, digits, _ and - take one each, every other byte three"
)]
pub struct LongToken(pub usize);

/// `text` as one token of a subject.
pub(crate) fn token(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

pub(crate) fn check(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong(text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err(NameError::ControlCharacter);
    }
    Ok(())
}

/// Whether `text` names something that operators write in configurations and that becomes part of URLs and files: 1 to `bytes` of `a-z`,
/// `A-Z`, `0-9`, `.`, `_` and `-`, not beginning with a dot.
pub fn is_word(text: &str, bytes: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=bytes).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(fits)
}

fn check_group(text: &str) -> Result<(), NameError> {
    check(text)?;
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-') {
        Ok(())
    } else {
        Err(NameError::BadGroup)
    }
}

fn decode_token(token: &str) -> Result<String, NameError> {
    let bad = || NameError::BadToken(token.to_owned());
    let decoded = percent_decode_str(token).decode_utf8().map_err(|_| bad())?;
    // Another way to write a name would be another subject of the same host.
    if self::token(&decoded) == token { Ok(decoded.into_owned()) } else { Err(bad()) }
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident, $check:path) => {
        $(#[$meta])*
        ///
        /// 1 to 255 bytes of UTF-8 without control characters. Cheap to clone.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "Cow<'_, str>", into = "String")]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Parses `text` as a name.
            ///
            /// # Errors
            /// See [`NameError`].
            pub fn new(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name as one token of a subject.
            pub fn token(&self) -> String {
                token(&self.0)
            }

            /// Decodes a token, which must be written as [`Self::token`] writes it.
            ///
            /// # Errors
            /// See [`NameError`].
            pub fn from_token(token: &str) -> Result<Self, NameError> {
                Self::new(&decode_token(token)?)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<Cow<'_, str>> for $name {
            type Error = NameError;

            fn try_from(text: Cow<'_, str>) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }
    };
}

name!(
    /// The name of a host, as its worker announces it and operators use it.
    HostName,
    check
);
name!(
    /// The name of a worker application: the program on a host that carries out commands.
    ApplicationName,
    check
);
name!(
    /// The name of a FleetLock group, whose members share one semaphore. It also matches `^[a-zA-Z0-9.-]+$`.
    GroupName,
    check_group
);

impl HostName {
    /// Checks that files and consumers can be named after the host. Wherever a name is first seen, this decides whether the
    /// host is taken; a journal may have longer names, from before there was a limit.
    ///
    /// # Errors
    /// They cannot.
    pub fn check_length(&self) -> Result<(), LongToken> {
        match self.token().len() {
            bytes if bytes > HOST_TOKEN_BYTES_MAX => Err(LongToken(bytes)),
            _ => Ok(()),
        }
    }

    /// Parses the name of a host that is seen for the first time.
    ///
    /// # Errors
    /// See [`NameError`].
    pub fn first_seen(text: &str) -> Result<Self, NameError> {
        let host = Self::new(text)?;
        host.check_length()?;
        Ok(host)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        for (name, token) in [
            ("h01", "h01"),
            ("h1.example.com", "h1%2Eexample%2Ecom"),
            ("häst", "h%C3%A4st"),
            ("a>b", "a%3Eb"),
            ("*", "%2A"),
            ("a b", "a%20b"),
            ("50%", "50%25"),
            ("under_score-dash", "under_score-dash"),
        ] {
            let host = HostName::new(name).unwrap();
            assert_eq!(host.token(), token);
            assert_eq!(HostName::from_token(token).unwrap(), host);
        }
        for other in ["h1%2eexample", "%680%31", "h1.example"] {
            assert_eq!(HostName::from_token(other), Err(NameError::BadToken(other.to_owned())));
        }
    }

    #[test]
    fn hosts_are_taken_if_files_can_be_named_after_them() {
        let with = |text: &str, count: usize| text.repeat(count);
        for (name, bytes) in [(with("x", 223), 223), (with("ä", 37), 222), (with("a.", 55), 220)] {
            let host = HostName::first_seen(&name).unwrap();
            assert_eq!(host.token().len(), bytes);
        }
        for (name, bytes) in
            [(with("x", 224), 224), (with("ä", 38), 228), (with(".", 75), 225), (with("x", 255), 255)]
        {
            assert_eq!(HostName::first_seen(&name), Err(LongToken(bytes).into()), "{name}");
            // A journal may have it.
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<HostName>(&json).unwrap().as_str(), name);
        }
        assert_eq!(HostName::first_seen(""), Err(NameError::Empty));
    }

    #[test]
    fn invalid_names_and_tokens_are_rejected() {
        assert_eq!(HostName::new(""), Err(NameError::Empty));
        assert_eq!(HostName::new(&"x".repeat(256)), Err(NameError::TooLong(256)));
        assert_eq!(HostName::new("a\nb"), Err(NameError::ControlCharacter));
        assert_eq!(GroupName::new("a_b"), Err(NameError::BadGroup));
        assert!(serde_json::from_str::<HostName>("\"\"").is_err());
        for token in ["", "a.b", "%", "%2", "%zz", "%FF", "ä", "a%00b"] {
            assert!(HostName::from_token(token).is_err(), "{token:?}");
        }
    }

    proptest! {
        #[test]
        fn names_round_trip_through_tokens(text in "\\PC{1,60}") {
            let host = HostName::new(&text).unwrap();
            let token = host.token();
            prop_assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-%".contains(&b)));
            prop_assert_eq!(HostName::from_token(&token).unwrap(), host);
        }

        #[test]
        fn no_token_panics(token in ".{0,40}") {
            let _ = HostName::from_token(&token);
        }
    }
}
