//! SHA-256, as text and as a number.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of `bytes` in lowercase hexadecimal.
pub(crate) fn hex_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The first 64 bits of the SHA-256 of `bytes`.
pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    Sha256::digest(bytes).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 180-2, appendix B.1.
    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex_of(b"abc"), hex);
        assert_eq!(number_of(b"abc"), 0xba78_16bf_8f01_cfea);
    }
}
