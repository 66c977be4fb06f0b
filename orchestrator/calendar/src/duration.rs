//! Durations in the format of the specification: `[<n>y][<n>d][<n>h][<n>m][<n>s]`, such as `1y2d5h` or `10m30s`.

use std::fmt;
use std::str::FromStr;

use chrono::TimeDelta;
use serde::Serialize;

use crate::deserialize::from_text;

/// The units in their required order, with their length in seconds. A year is 365 days.
const UNITS: [(char, u64); 5] = [('y', 365 * 86_400), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// Longest duration, in seconds: 100 years, so that adding one to a time never overflows.
const SECONDS_MAX: u64 = 100 * 365 * 86_400;

/// A whole number of seconds, up to 100 years.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct Duration {
    seconds: u64,
}

/// A text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a duration: expected [<n>y][<n>d][<n>h][<n>m][<n>s] of at most 100 years, such as 4h or 1d12h"
)]
pub struct DurationError(String);

impl Duration {
    /// A duration in seconds, limited to 100 years.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { seconds: if seconds > SECONDS_MAX { SECONDS_MAX } else { seconds } }
    }

    /// Its length in seconds.
    pub const fn as_secs(self) -> u64 {
        self.seconds
    }

    /// The duration as a `TimeDelta`.
    pub fn to_delta(self) -> TimeDelta {
        let seconds = i64::try_from(self.seconds).expect("at most 100 years");
        TimeDelta::seconds(seconds)
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let error = || DurationError(text.chars().take(64).collect());
        let mut rest = text;
        let mut seconds: u64 = 0;
        for (unit, length) in UNITS {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            if digits == 0 || !rest[digits..].starts_with(unit) {
                continue;
            }
            let count: u64 = rest[..digits].parse().map_err(|_| error())?;
            seconds = count
                .checked_mul(length)
                .and_then(|part| seconds.checked_add(part))
                .filter(|sum| *sum <= SECONDS_MAX)
                .ok_or_else(error)?;
            rest = &rest[digits + 1..];
        }
        if text.is_empty() || !rest.is_empty() {
            return Err(error());
        }
        Ok(Self { seconds })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seconds == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.seconds;
        for (unit, length) in UNITS {
            if rest >= length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

from_text!(Duration: "a string such as \"4h\" or \"1d12h\"");

impl From<Duration> for String {
    fn from(duration: Duration) -> String {
        duration.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn specification_examples_are_read() {
        for (text, seconds) in [
            ("1y2d5h", 365 * 86_400 + 2 * 86_400 + 5 * 3_600),
            ("5h", 18_000),
            ("10m30s", 630),
            ("1d4h18s", 86_400 + 4 * 3_600 + 18),
            ("4h", 14_400),
            ("0s", 0),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap().as_secs(), seconds, "{text}");
            assert_eq!(Duration::from_secs(seconds).to_string(), text);
        }
        assert_eq!("90m".parse::<Duration>().unwrap().to_string(), "1h30m");
    }

    #[test]
    fn invalid_durations_are_refused() {
        for text in [
            "",
            "4",
            "h",
            "4h4",
            "4 h",
            "-4h",
            "4H",
            "5m4h",
            "1h1h",
            "4.5h",
            "101y",
            "99999999999999999999s",
            "4h ",
            "ä",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_duration_round_trips(seconds in 0..=SECONDS_MAX) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = text.parse::<Duration>();
        }
    }
}
