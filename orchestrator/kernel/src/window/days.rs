//! Days of the week by their English names.

use std::fmt;
use std::str::FromStr;

use chrono::Weekday;
use serde::Serialize;

use crate::deserialize::from_text;
use crate::deserialize::quoted;

/// The names, from Monday on.
const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Minimum length of an abbreviation for which an error suggests the day.
const ABBREVIATION_MIN: usize = 2;

/// Some days of the week, at least one and none twice, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct DaysOfWeek {
    days: Vec<Weekday>,
}

/// A text is not a list of days.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DaysError {
    /// The text is empty.
    #[error("no day is named; write one day or more, such as \"Friday, Saturday\"")]
    Empty,
    /// There is an empty entry between commas.
    #[error("a day is missing before, after or between commas; write \"Friday, Saturday\"")]
    Missing,
    /// A day is abbreviated or misspelt.
    #[error("write {name} instead of {text:?}: days have their full English names")]
    NotInFull {
        /// The text of the entry.
        text: String,
        /// The full name of the day that is probably meant.
        name: &'static str,
    },
    /// An entry is not a day.
    #[error("{0:?} is not a day; write Monday, Tuesday, Wednesday, Thursday, Friday, Saturday or Sunday")]
    Unknown(String),
    /// A day is listed twice.
    #[error("{0} is listed twice; write it once")]
    Duplicate(&'static str),
}

impl DaysOfWeek {
    /// Whether `day` is one of them.
    pub fn contains(&self, day: Weekday) -> bool {
        self.days.contains(&day)
    }
}

fn name(day: Weekday) -> &'static str {
    NAMES[day.num_days_from_monday() as usize]
}

fn day(text: &str) -> Result<Weekday, DaysError> {
    // The library also accepts abbreviations, in upper and lower case.
    if let Some(name) = NAMES.into_iter().find(|name| *name == text) {
        return name.parse().map_err(|_| DaysError::Unknown(quoted(text)));
    }
    let lower = text.to_ascii_lowercase();
    let meant = NAMES.into_iter().find(|name| {
        let name = name.to_ascii_lowercase();
        lower.len() >= ABBREVIATION_MIN
            && (name.starts_with(&lower) || strsim::levenshtein(&name, &lower) == 1)
    });
    match meant {
        Some(name) => Err(DaysError::NotInFull { text: quoted(text), name }),
        None => Err(DaysError::Unknown(quoted(text))),
    }
}

impl FromStr for DaysOfWeek {
    type Err = DaysError;

    fn from_str(text: &str) -> Result<Self, DaysError> {
        if text.trim().is_empty() {
            return Err(DaysError::Empty);
        }
        let mut days = Vec::new();
        for part in text.split(',').map(str::trim) {
            if part.is_empty() {
                return Err(DaysError::Missing);
            }
            let day = day(part)?;
            if days.contains(&day) {
                return Err(DaysError::Duplicate(name(day)));
            }
            days.push(day);
        }
        Ok(Self { days })
    }
}

impl fmt::Display for DaysOfWeek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.days.iter().map(|day| name(*day)).collect();
        f.write_str(&names.join(", "))
    }
}

from_text!(DaysOfWeek: "a string as in \"Friday, Saturday\"");

impl From<DaysOfWeek> for String {
    fn from(days: DaysOfWeek) -> String {
        days.to_string()
    }
}
