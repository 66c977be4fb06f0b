//! The local time of day at which a window starts.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveTime;
use serde::Serialize;

use crate::deserialize::from_text;
use crate::deserialize::quoted;

/// A time of day, `HH:MM` from `00:00` to `23:59`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct StartTime(NaiveTime);

/// A text is not a time of day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartTimeError {
    /// The text is not two digits, a colon and two digits.
    #[error("{0:?} is not a time of day; write HH:MM, such as 01:00")]
    Form(String),
    /// The text is `24:00`.
    #[error("24:00 is not a time of day; write 00:00, and the next day in days-of-week")]
    Midnight,
    /// A digit is missing.
    #[error("write {expected} instead of {text:?}: times of day are HH:MM")]
    OneDigit {
        text: String,
        /// The same with two digits.
        expected: String,
    },
    /// The hour or the minute is out of range.
    #[error("{0:?} is not a time of day; hours go from 00 to 23 and minutes from 00 to 59, such as 01:00")]
    Range(String),
}

impl StartTime {
    pub(super) fn time(self) -> NaiveTime {
        self.0
    }
}

impl FromStr for StartTime {
    type Err = StartTimeError;

    fn from_str(text: &str) -> Result<Self, StartTimeError> {
        let form = || StartTimeError::Form(quoted(text));
        let (hours, minutes) = text.split_once(':').ok_or_else(form)?;
        let number = |digits: &str| match digits.len() {
            1 | 2 if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse::<u32>().ok(),
            _ => None,
        };
        let (hour, minute) = number(hours).zip(number(minutes)).ok_or_else(form)?;
        if (hour, minute) == (24, 0) {
            return Err(StartTimeError::Midnight);
        }
        let time =
            NaiveTime::from_hms_opt(hour, minute, 0).ok_or_else(|| StartTimeError::Range(quoted(text)))?;
        let start = Self(time);
        if start.to_string() != text {
            return Err(StartTimeError::OneDigit { text: quoted(text), expected: start.to_string() });
        }
        Ok(start)
    }
}

impl fmt::Display for StartTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%H:%M"))
    }
}

from_text!(StartTime: "a string such as \"01:00\"");

impl From<StartTime> for String {
    fn from(start: StartTime) -> String {
        start.to_string()
    }
}
