//! Numbers and durations within bounds.

use std::time::Duration;

use super::read::{Shape, Value};

/// An integer from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Bounded<MIN, MAX> {
    /// `number`, if it is within the bounds.
    pub fn new(number: u32) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const MIN: u32, const MAX: u32> Value for Bounded<MIN, MAX> {
    const SHAPE: Shape = Shape::Integer;

    fn expected() -> String {
        format!("an integer from {MIN} to {MAX}")
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.trim().parse().ok().and_then(Self::new).ok_or_else(String::new)
    }
}

/// A duration from `MIN_MS` to `MAX_MS` milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval<const MIN_MS: u64, const MAX_MS: u64>(Duration);

impl<const MIN_MS: u64, const MAX_MS: u64> Interval<MIN_MS, MAX_MS> {
    pub(crate) const MIN: Duration = Duration::from_millis(MIN_MS);
    pub(crate) const MAX: Duration = Duration::from_millis(MAX_MS);

    /// `duration`, if it is within the bounds.
    pub fn new(duration: Duration) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&duration).then_some(Self(duration))
    }

    /// The duration.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl<const MIN_MS: u64, const MAX_MS: u64> Value for Interval<MIN_MS, MAX_MS> {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        let (min, max) = (humantime::format_duration(Self::MIN), humantime::format_duration(Self::MAX));
        format!("a duration from {min} to {max}, such as \"10s\" or \"1m 30s\"")
    }

    fn parse(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).ok().and_then(Self::new).ok_or_else(String::new)
    }
}
