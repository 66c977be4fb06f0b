//! The key of a strongbox and its cryptography: AES-256-GCM with the secret's name as associated data, so that a sealed
//! secret cannot be moved to another name.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use os_upgrade_kernel::SecretName;
use os_upgrade_platform::random::{self, RandomError};
use os_upgrade_provider_rules::Origin;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac::{self, HMAC_SHA256};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
/// The text of which the check is made. It has a space, which no name of a secret has.
const CHECK: &str = "strongbox check";
/// The text with which what fingerprints are made of begins, unlike that of the check.
const FINGERPRINT: &str = "fingerprint of an item";
/// The first line of what texts are sealed under that are no secrets with a name. It has spaces, which no name of a secret has.
const TEXT: &str = "text of the site";

/// A key: 32 random bytes, as text in base64. It is never displayed, and it is overwritten on drop.
pub struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// A text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a key: 32 bytes in base64 are expected, as `os-upgrade strongbox key` prints them")]
pub struct InvalidKey;

/// A sealed value was sealed with another key or under another name, or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key does not open it")]
pub struct CannotOpen;

impl Key {
    /// A new random key.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn random() -> Result<Self, RandomError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        random::fill(&mut bytes[..])?;
        Ok(Self(bytes))
    }

    /// Parses a key; white space around it is ignored.
    ///
    /// # Errors
    /// The text is not a key.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let bytes = Zeroizing::new(BASE64_STANDARD.decode(text.trim()).map_err(|_| InvalidKey)?);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return Err(InvalidKey);
        }
        key.copy_from_slice(&bytes);
        Ok(Self(key))
    }

    /// The key as text, for its owner.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64_STANDARD.encode(&self.0[..]))
    }

    /// A value that identifies this key and reveals nothing of it. It is deterministic, so that two instances which
    /// keep a first secret at the same time send the same check.
    pub fn check(&self) -> String {
        BASE64_STANDARD.encode(hmac::sign(&self.authenticator(), CHECK.as_bytes()))
    }

    /// Whether `check` was made with this key.
    pub fn matches(&self, check: &str) -> bool {
        let tag = BASE64_STANDARD.decode(check).unwrap_or_default();
        // In earlier versions the check was an empty value, sealed with a random nonce.
        hmac::verify(&self.authenticator(), CHECK.as_bytes(), &tag).is_ok()
            || self.open_under(CHECK, check).is_ok()
    }

    /// Seals `value` under `name`, for `origin` alone if there is one.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn seal(
        &self,
        name: &SecretName,
        origin: Option<&Origin>,
        value: &str,
    ) -> Result<String, RandomError> {
        self.seal_under(&label(name, origin), value.as_bytes())
    }

    /// Opens what was sealed under `name` for `origin`.
    ///
    /// # Errors
    /// It was not sealed like that with this key.
    pub fn open(
        &self,
        name: &SecretName,
        origin: Option<&Origin>,
        sealed: &str,
    ) -> Result<Zeroizing<String>, CannotOpen> {
        self.open_text_under(&label(name, origin), sealed)
    }

    /// Seals `value` under `parts`, in this order: under other ones it is not opened.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn seal_text(&self, parts: &[&str], value: &str) -> Result<String, RandomError> {
        self.seal_under(&text_label(parts), value.as_bytes())
    }

    /// Opens what was sealed under `parts`.
    ///
    /// # Errors
    /// It was not sealed like that with this key.
    pub fn open_text(&self, parts: &[&str], sealed: &str) -> Result<Zeroizing<String>, CannotOpen> {
        self.open_text_under(&text_label(parts), sealed)
    }

    /// A value that is the same for the same `parts`. It tells nothing of them to who does not have the key, however short they are.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> String {
        let mut context = hmac::Context::with_key(&self.authenticator());
        context.update(FINGERPRINT.as_bytes());
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        BASE64_STANDARD.encode(context.sign())
    }

    fn authenticator(&self) -> hmac::Key {
        hmac::Key::new(HMAC_SHA256, &self.0[..])
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &self.0[..]).ok().map(LessSafeKey::new)
    }

    /// Nonce, ciphertext and tag, in base64. A site's few secrets, and the hashes of what its hosts are to have, are far from the 2^32 at
    /// which random nonces may collide.
    fn seal_under(&self, name: &str, value: &[u8]) -> Result<String, RandomError> {
        let mut nonce = [0; NONCE_LEN];
        random::fill(&mut nonce)?;
        let cipher = self.cipher().ok_or(RandomError)?;
        let mut sealed = Vec::with_capacity(value.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(value);
        let associated = Aad::from(name.as_bytes());
        cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), associated, &mut sealed)
            .map_err(|_| RandomError)?;
        Ok(BASE64_STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    fn open_text_under(&self, name: &str, sealed: &str) -> Result<Zeroizing<String>, CannotOpen> {
        let opened = self.open_under(name, sealed)?;
        let text = std::str::from_utf8(&opened).map_err(|_| CannotOpen)?;
        Ok(Zeroizing::new(text.to_owned()))
    }

    fn open_under(&self, name: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, CannotOpen> {
        let bytes = BASE64_STANDARD.decode(sealed).map_err(|_| CannotOpen)?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(CannotOpen)?;
        let mut value = Zeroizing::new(rest.to_vec());
        let cipher = self.cipher().ok_or(CannotOpen)?;
        let associated = Aad::from(name.as_bytes());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = cipher.open_in_place(nonce, associated, &mut value).map_err(|_| CannotOpen)?.len();
        value.truncate(length);
        Ok(value)
    }
}

/// What a secret is sealed under: its name, and its origin on a line of its own. No name has a line feed.
fn label(name: &SecretName, origin: Option<&Origin>) -> String {
    origin.map_or_else(|| name.to_string(), |origin| format!("{name}\n{origin}"))
}

/// What a text is sealed under: `parts`, a line each, with their lengths, so that none runs into the next.
fn text_label(parts: &[&str]) -> String {
    parts.iter().fold(TEXT.to_owned(), |label, part| format!("{label}\n{} {part}", part.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    #[test]
    fn only_key_and_name_open_a_secret() {
        let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
        let sealed = key.seal(&name("a"), None, "user:päss").unwrap();
        assert!(!sealed.contains("user"), "{sealed}");
        assert_eq!(**key.open(&name("a"), None, &sealed).unwrap(), *"user:päss");
        assert_ne!(sealed, key.seal(&name("a"), None, "user:päss").unwrap(), "nonces are random");
        assert_eq!(key.open(&name("b"), None, &sealed).unwrap_err(), CannotOpen);
        assert_eq!(other.open(&name("a"), None, &sealed).unwrap_err(), CannotOpen);
        let [one, two] = ["https://a.example", "https://b.example"].map(|text| Origin::new(text).unwrap());
        let bound = key.seal(&name("a"), Some(&one), "token").unwrap();
        assert_eq!(**key.open(&name("a"), Some(&one), &bound).unwrap(), *"token");
        for origin in [None, Some(&two)] {
            assert_eq!(key.open(&name("a"), origin, &bound).unwrap_err(), CannotOpen);
        }
        let mut bytes = BASE64_STANDARD.decode(&sealed).unwrap();
        for place in 0..bytes.len() {
            bytes[place] ^= 1;
            let changed = BASE64_STANDARD.encode(&bytes);
            assert_eq!(key.open(&name("a"), None, &changed).unwrap_err(), CannotOpen, "{place}");
            bytes[place] ^= 1;
        }
        for text in ["", "AAAA", "no base64!"] {
            assert_eq!(key.open(&name("a"), None, text).unwrap_err(), CannotOpen);
        }
    }

    #[test]
    fn texts_are_opened_under_their_parts_alone() {
        let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
        let sealed = key.seal_text(&["h1", "app", "i"], "2ab9").unwrap();
        assert_eq!(**key.open_text(&["h1", "app", "i"], &sealed).unwrap(), *"2ab9");
        assert_ne!(sealed, key.seal_text(&["h1", "app", "i"], "2ab9").unwrap(), "nonces are random");
        for parts in [
            &["h2", "app", "i"][..],
            &["app", "h1", "i"],
            &["h1", "app"],
            &["h1", "app", "i", ""],
            &["h1\n3 app", "i"],
            &[],
        ] {
            assert_eq!(key.open_text(parts, &sealed).unwrap_err(), CannotOpen, "{parts:?}");
        }
        assert_eq!(other.open_text(&["h1", "app", "i"], &sealed).unwrap_err(), CannotOpen);
        // Neither is a secret, nor is a secret such a text.
        let secret = key.seal(&name("i"), None, "2ab9").unwrap();
        assert_eq!(key.open_text(&["i"], &secret).unwrap_err(), CannotOpen);
        let text = key.seal_text(&["i"], "2ab9").unwrap();
        assert_eq!(key.open(&name("i"), None, &text).unwrap_err(), CannotOpen);
    }

    #[test]
    fn check_identifies_a_key() {
        let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
        let earlier_form = key.seal_under(CHECK, b"").unwrap();
        for check in [key.check(), earlier_form] {
            assert!(key.matches(&check) && !other.matches(&check), "{check}");
        }
        assert_eq!(key.check(), Key::parse(&key.reveal()).unwrap().check());
        let secret = key.seal(&name("a"), None, "").unwrap();
        for text in ["", "AAAA", "no base64!", &secret, &key.reveal()] {
            assert!(!key.matches(text), "{text}");
        }
        // Journals contain this value, so it must never change.
        let zeros = Key::parse(&BASE64_STANDARD.encode([0; 32])).unwrap();
        assert_eq!(zeros.check(), "knmiGeaf2RBpU67FHLVm4kwanSJU0mCYMHaYBZRvNHQ=");
    }

    #[test]
    fn fingerprints_depend_on_key_and_parts() {
        let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
        let fingerprint = key.fingerprint(&[b"h1", b"secret"]);
        assert_eq!(fingerprint, key.fingerprint(&[b"h1", b"secret"]));
        assert_ne!(fingerprint, other.fingerprint(&[b"h1", b"secret"]));
        assert_ne!(fingerprint, key.fingerprint(&[b"h1s", b"ecret"]));
        assert_ne!(fingerprint, key.fingerprint(&[b"h1secret"]));
    }

    #[test]
    fn keys_as_text() {
        let key = Key::random().unwrap();
        let text = format!(" {}\n", *key.reveal());
        assert!(Key::parse(&text).unwrap().matches(&key.check()));
        assert_eq!(format!("{key:?}"), "Key");
        for bad in ["", "AAAA", "no base64", &BASE64_STANDARD.encode([0; 33])] {
            assert_eq!(Key::parse(bad).unwrap_err(), InvalidKey, "{bad}");
        }
    }
}
