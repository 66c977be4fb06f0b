//! Sealing of what a host is to have, so that nobody but this host reads it: HPKE (RFC 9180) in its base mode, with DHKEM(X25519,
//! HKDF-SHA256), HKDF-SHA256 and `ChaCha20Poly1305`.
//!
//! A sealed item is the encapsulated key, 32 bytes, followed by the ciphertext. It opens only for what it was sealed for: host, kind, name and
//! revision are the `info` of the key schedule, where RFC 9180 (section 8.1) wants them in an interface that seals one message per
//! key. The sender is not authenticated by it: who may publish on the bus is a matter of rights there.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::{Kem, X25519HkdfSha256};
use hpke::{Deserializable as _, OpModeR, OpModeS, Serializable as _, single_shot_open, single_shot_seal};
use os_upgrade_protocol::{HostKey, HostName, ItemKind, Revision};
use zeroize::Zeroizing;

/// How many bytes a sealed item has more than its content: the encapsulated key and the tag.
pub const OVERHEAD_BYTES: usize = ENCAPSULATED_BYTES + 16;
const ENCAPSULATED_BYTES: usize = 32;
/// The first line of `info`: what this is, and its version.
const PURPOSE: &str = "os-upgrade item 1";

/// What an item is sealed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedFor<'a> {
    pub host: &'a HostName,
    pub kind: ItemKind,
    pub name: &'a str,
    pub revision: Revision,
}

impl SealedFor<'_> {
    /// `os-upgrade item 1`, host, kind, name, epoch and sequence, each followed by a line feed. No name has one.
    fn info(&self) -> Vec<u8> {
        let Self { host, kind, name, revision: Revision { epoch, sequence } } = self;
        format!("{PURPOSE}\n{host}\n{kind}\n{name}\n{epoch}\n{sequence}\n").into_bytes()
    }
}

/// The content cannot be sealed to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing can be sealed to this key: it is no point that a worker draws")]
pub struct SealError;

/// What was received is not an item that was sealed to this key, for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it was sealed to another key or for something else, or it is damaged")]
pub struct OpenError;

/// Seals `content` so that only the host with `key` can open it.
///
/// # Errors
/// No secret can be agreed on with `key`, as with one that is all zeros.
pub fn seal(key: &HostKey, sealed_for: &SealedFor<'_>, content: &[u8]) -> Result<Vec<u8>, SealError> {
    let recipient =
        <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(key.as_bytes()).map_err(|_| SealError)?;
    let (encapsulated, ciphertext) = single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &recipient,
        &sealed_for.info(),
        content,
        &[],
    )
    .map_err(|_| SealError)?;
    Ok([&*encapsulated.to_bytes(), &ciphertext].concat())
}

/// The private key of a host. It is cleared from memory when it is dropped.
pub struct PrivateKey(<X25519HkdfSha256 as Kem>::PrivateKey);

impl PrivateKey {
    /// A new key from the system's random numbers.
    pub fn generate() -> Self {
        Self(X25519HkdfSha256::gen_keypair().0)
    }

    /// The key with these bytes; `None` unless they are 32.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(bytes).map(Self).ok()
    }

    /// Its 32 bytes.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        let mut bytes = Zeroizing::new([0; 32]);
        self.0.write_exact(&mut *bytes);
        bytes
    }

    /// The key to which items are sealed for it.
    pub fn public(&self) -> HostKey {
        HostKey::new(X25519HkdfSha256::sk_to_pk(&self.0).to_bytes().into())
    }

    /// Opens what [`seal`] made.
    ///
    /// # Errors
    /// It was sealed to another key or for something else, or it is damaged.
    pub fn open(&self, sealed_for: &SealedFor<'_>, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (encapsulated, ciphertext) = sealed.split_at_checked(ENCAPSULATED_BYTES).ok_or(OpenError)?;
        let encapsulated =
            <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(encapsulated).map_err(|_| OpenError)?;
        single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.0,
            &encapsulated,
            &sealed_for.info(),
            ciphertext,
            &[],
        )
        .map(Zeroizing::new)
        .map_err(|_| OpenError)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateKey of {}", self.public())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Revision = Revision { epoch: 3, sequence: 4711 };

    fn host(name: &str) -> HostName {
        HostName::new(name).unwrap()
    }

    fn of<'a>(host: &'a HostName, name: &'a str, revision: Revision) -> SealedFor<'a> {
        SealedFor { host, kind: ItemKind::Configuration, name, revision }
    }

    #[test]
    fn items_are_opened_by_their_host() {
        let (key, h1) = (PrivateKey::generate(), host("h1"));
        let large = vec![7; 512 * 1024];
        for content in [&b""[..], b"secret", &large] {
            let sealed = seal(&key.public(), &of(&h1, "app", AT), content).unwrap();
            assert_eq!(sealed.len(), content.len() + OVERHEAD_BYTES);
            assert_eq!(key.open(&of(&h1, "app", AT), &sealed).unwrap().as_slice(), content);
        }
        let again = PrivateKey::from_bytes(&*key.to_bytes()).unwrap();
        assert_eq!(again.public(), key.public());
        assert!(PrivateKey::from_bytes(&[1; 31]).is_none());
    }

    #[test]
    fn nothing_else_opens_them() {
        let (key, h1) = (PrivateKey::generate(), host("h1"));
        let sealed = seal(&key.public(), &of(&h1, "app", AT), b"secret").unwrap();
        let newer = Revision { sequence: 4712, ..AT };
        let other = PrivateKey::generate();
        assert_eq!(other.open(&of(&h1, "app", AT), &sealed).err(), Some(OpenError));
        for wrong in [of(&host("h2"), "app", AT), of(&h1, "net", AT), of(&h1, "app", newer)] {
            assert_eq!(key.open(&wrong, &sealed).err(), Some(OpenError), "{wrong:?}");
        }
        for at in [0, ENCAPSULATED_BYTES, sealed.len() - 1] {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(key.open(&of(&h1, "app", AT), &damaged).err(), Some(OpenError), "{at}");
            assert_eq!(key.open(&of(&h1, "app", AT), &sealed[..at]).err(), Some(OpenError), "{at}");
        }
    }

    #[test]
    fn keys_without_a_secret_are_refused() {
        let zero = HostKey::new([0; 32]);
        assert_eq!(seal(&zero, &of(&host("h1"), "app", AT), b"secret"), Err(SealError));
    }

    /// Sealed by `cryptography` 48 in Python to the key whose bytes are 1 to 32, as docs/worker-protocol.md opens it.
    #[test]
    fn other_implementations_agree() {
        let hex = "2655bbc5d02da6d3ea989f92e0013b5c88fec856369b6f8de031e25409ecda02\
                   df0237cc2fb6499ebc47103439c91705f37a01b3a82c00c961b59eedfbbb7f521e1a06";
        let digits: Vec<u8> =
            hex.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
        let sealed: Vec<u8> = digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect();
        let key: Vec<u8> = (1..=32).collect();
        let opened =
            PrivateKey::from_bytes(&key).unwrap().open(&of(&host("h1"), "app", AT), &sealed).unwrap();
        assert_eq!(opened.as_slice(), b"{\"files\":[]}\nsecret");
    }

    /// The worker in Python makes the same of it: see docs/worker-protocol.md.
    #[test]
    fn info_is_as_documented() {
        let host = host("h1.example.com");
        let info = String::from_utf8(of(&host, "app", AT).info()).unwrap();
        assert_eq!(info, "os-upgrade item 1\nh1.example.com\nconfiguration\napp\n3\n4711\n");
    }
}
