//! Random numbers from a printed seed, so that a failure can be repeated as far as the machine's timing allows.

use std::time::Duration;

/// The seed in `OS_UPGRADE_TEST_SEED`, or one from the clock.
pub fn seed() -> u64 {
    from_variable("OS_UPGRADE_TEST_SEED")
        .unwrap_or_else(|| chrono::Utc::now().timestamp_micros().unsigned_abs())
}

/// The number in an environment variable, if it is set.
pub fn from_variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

/// Splitmix64: enough to choose moments.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator with [`seed`], which is printed.
    pub fn from_environment() -> Self {
        let seed = seed();
        #[expect(clippy::print_stdout, reason = "shown when the test fails")]
        {
            println!("OS_UPGRADE_TEST_SEED={seed}");
        }
        Self(seed)
    }

    /// A number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// An index below this length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("less than a length")
    }

    /// A random element.
    pub fn pick<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        &several[self.index(several.len())]
    }

    /// A duration of `from` to `to` milliseconds.
    pub const fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}
