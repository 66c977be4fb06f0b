//! Jitter: a part of a span that is as good as random, and the same for every leader.

use chrono::TimeDelta;

use crate::fnv::fnv;

/// A whole number of seconds from 0 to `spread`, always the same for the same `seed`.
pub(crate) fn jitter(seed: &str, spread: TimeDelta) -> TimeDelta {
    let seconds = spread.num_seconds().unsigned_abs();
    let hash = fnv(seed.as_bytes());
    // For similar texts the low bits of this hash are similar.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    TimeDelta::seconds((mixed % (seconds + 1)).cast_signed())
}
