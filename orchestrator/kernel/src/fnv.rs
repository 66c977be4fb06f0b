//! A hash that is the same in every build, unlike the standard library's.

/// The 64-bit hash FNV-1a (Fowler-Noll-Vo).
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the algorithm's reference.
    #[test]
    fn hashes_match_the_reference() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv(text.as_bytes()), hash, "{text}");
        }
    }
}
