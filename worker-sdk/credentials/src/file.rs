//! A NATS credentials file: the JWT of a user and the seed of its key.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde::Deserialize;

const JWT: &str = "NATS USER JWT";
const SEED: &str = "USER NKEY SEED";
/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// Why a file is not a usable credentials file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[from] std::io::Error),
    /// It is larger than 64 KiB.
    #[error("it has more than {BYTES_MAX} bytes")]
    TooLarge,
    /// A part of it is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// The seed is invalid.
    #[error("its seed is invalid: {0}")]
    Seed(nkeys::error::Error),
}

/// A credentials file that has been read.
#[derive(Debug)]
pub struct CredentialsFile {
    jwt: String,
    key: KeyPair,
}

/// The claims of the JWT that are used.
#[derive(Debug, Deserialize)]
struct Claims {
    name: Option<String>,
}

impl CredentialsFile {
    /// Reads `path`.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn read(path: &Path) -> Result<Self, FileError> {
        if std::fs::metadata(path)?.len() > BYTES_MAX {
            return Err(FileError::TooLarge);
        }
        Self::parse(&std::fs::read_to_string(path)?)
    }

    /// Parses the contents of a file.
    ///
    /// # Errors
    /// A part is missing, or the seed is invalid.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let jwt = part(text, JWT).ok_or(FileError::Missing(JWT))?.to_owned();
        let seed = part(text, SEED).ok_or(FileError::Missing(SEED))?;
        Ok(Self { jwt, key: KeyPair::from_seed(seed).map_err(FileError::Seed)? })
    }

    /// The contents of a file with a user's `jwt` and `seed`.
    pub fn text(jwt: &str, seed: &str) -> String {
        format!(
            "-----BEGIN {JWT}-----\n{jwt}\n------END {JWT}------\n\n\
             The seed is a secret: anyone who has it can act as this user.\n\n\
             -----BEGIN {SEED}-----\n{seed}\n------END {SEED}------\n"
        )
    }

    /// The user's JWT.
    pub fn jwt(&self) -> &str {
        &self.jwt
    }

    /// Signs the server's nonce.
    ///
    /// # Errors
    /// The key cannot sign; a key read from a seed always can.
    pub fn sign(&self, nonce: &[u8]) -> Result<Vec<u8>, nkeys::error::Error> {
        self.key.sign(nonce)
    }

    /// The user name in the JWT; `None` if it has none. The JWT's signature is not checked.
    pub fn user(&self) -> Option<String> {
        let claims = self.jwt.split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        serde_json::from_slice::<Claims>(&claims).ok()?.name
    }
}

/// The line between those that begin and end `name`.
fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.starts_with("---") && line.contains("BEGIN") && line.contains(name))?;
    lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_round_trip() {
        let key = KeyPair::new_user();
        let claims = URL_SAFE_NO_PAD.encode(r#"{"name":"h01"}"#);
        let text = CredentialsFile::text(&format!("e30.{claims}.x"), &key.seed().unwrap());
        let file = CredentialsFile::parse(&text).unwrap();
        assert_eq!(file.user().as_deref(), Some("h01"));
        key.verify(b"nonce", &file.sign(b"nonce").unwrap()).unwrap();
    }

    #[test]
    fn missing_parts_are_named() {
        for (text, why) in [
            ("", "it has no NATS USER JWT"),
            ("-----BEGIN NATS USER JWT-----\na.b.c\n", "it has no USER NKEY SEED"),
            ("-----BEGIN NATS USER JWT-----\n------END NATS USER JWT------\n", "it has no NATS USER JWT"),
        ] {
            assert_eq!(CredentialsFile::parse(text).unwrap_err().to_string(), why);
        }
        assert!(CredentialsFile::parse(&CredentialsFile::text("a.b.c", "SUA")).is_err());
    }
}
