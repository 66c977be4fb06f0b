//! Secrets of tokens, and their hashes.
//!
//! A secret has 256 random bits, so it cannot be guessed, and one round of SHA-256 is as good as any slow hash. It is
//! checked at each request.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use os_upgrade_platform::random::{self, RandomError};

/// The prefix of every secret, for secret scanners.
pub(super) const PREFIX: &str = "osup_";

const SECRET_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// A secret, `osup_<43 characters of base64url>`. It is shown once, and never by `Debug`.
pub struct Secret(String);

impl Secret {
    /// A new random secret.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn random() -> Result<Self, RandomError> {
        Ok(Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<SECRET_BYTES>()?))))
    }

    /// The text for the owner of the secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], RandomError> {
    let mut bytes = [0; BYTES];
    random::fill(&mut bytes)?;
    Ok(bytes)
}

/// The stored form of a secret: SHA-256 of a random salt and the secret's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretHash {
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
}

impl SecretHash {
    /// Hashes `secret` with a new salt.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn of(secret: &Secret) -> Result<Self, RandomError> {
        let salt = random()?;
        Ok(Self { salt, hash: hash(&salt, secret.reveal()) })
    }

    /// Parses the output of [`Self::texts`].
    pub(super) fn parse(salt: &str, hash: &str) -> Option<Self> {
        let decode = |text| URL_SAFE_NO_PAD.decode(text).ok();
        Some(Self { salt: decode(salt)?.try_into().ok()?, hash: decode(hash)?.try_into().ok()? })
    }

    /// The salt and the hash, in base64url.
    pub(super) fn texts(&self) -> [String; 2] {
        [URL_SAFE_NO_PAD.encode(self.salt), URL_SAFE_NO_PAD.encode(self.hash)]
    }

    /// Whether this is the hash of `secret`, compared in constant time.
    pub fn matches(&self, secret: &str) -> bool {
        self.hash.ct_eq(&hash(&self.salt, secret)).into()
    }
}

fn hash(salt: &[u8; SALT_BYTES], secret: &str) -> [u8; HASH_BYTES] {
    Sha256::new().chain_update(salt).chain_update(secret).finalize().into()
}
