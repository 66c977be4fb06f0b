//! What a provider gives: bytes that may be secret.

use std::fmt;

use zeroize::Zeroizing;

/// The bytes that a provider gave for a host. They may be secret, so they are not displayed, and are cleared from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentBytes(Zeroizing<Vec<u8>>);

impl ContentBytes {
    /// These bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ContentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
