//! Days in a window's zone.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;
use serde::Serialize;

use crate::deserialize::from_text;
use crate::deserialize::quoted;

/// A day, `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct Date(NaiveDate);

/// A text is not a day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a day; write YYYY-MM-DD, such as 2027-01-31")]
pub struct DateError(String);

impl Date {
    pub(super) fn day(self) -> NaiveDate {
        self.0
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let date = text.parse().map(Self).map_err(|_| DateError(quoted(text)))?;
        // The library also accepts single digits, signs and longer years.
        if date.to_string() == text && text.len() == "YYYY-MM-DD".len() {
            Ok(date)
        } else {
            Err(DateError(quoted(text)))
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

from_text!(Date: "a string such as \"2027-01-31\"");

impl From<Date> for String {
    fn from(date: Date) -> String {
        date.to_string()
    }
}
