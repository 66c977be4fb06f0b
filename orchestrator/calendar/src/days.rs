//! Days of the week by their English names.

use std::fmt;
use std::iter;
use std::str::FromStr;

use chrono::Weekday;
use serde::Serialize;

use crate::deserialize::from_text;
use crate::deserialize::quoted;

/// The names, from Monday on.
const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The length of an abbreviated name.
const ABBREVIATION: usize = 3;
/// Minimum length of a text that an error takes for the beginning of a name.
const BEGINNING_MIN: usize = 2;

/// Some days of the week, at least one and none twice, in the order in which they were written: names such as `Friday` or
/// `Fri`, and ranges such as `Mon-Fri`. They are shown by their full names.
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
    /// A day is misspelt.
    #[error("{text:?} is not a day; did you mean {name}?")]
    Misspelt {
        /// The text of the entry.
        text: String,
        /// The name of the day that is probably meant.
        name: &'static str,
    },
    /// An entry is not a day.
    #[error("{0:?} is not a day; write days as in \"Friday, Saturday\" or \"Mon-Fri\"")]
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
    // The library also accepts other abbreviations, in upper and lower case.
    if let Some(name) = NAMES.into_iter().find(|name| *name == text || name[..ABBREVIATION] == *text) {
        return name.parse().map_err(|_| DaysError::Unknown(quoted(text)));
    }
    let lower = text.to_ascii_lowercase();
    let meant = NAMES.into_iter().find(|name| {
        let name = name.to_ascii_lowercase();
        lower.len() >= BEGINNING_MIN && (name.starts_with(&lower) || strsim::levenshtein(&name, &lower) == 1)
    });
    match meant {
        Some(name) => Err(DaysError::Misspelt { text: quoted(text), name }),
        None => Err(DaysError::Unknown(quoted(text))),
    }
}

/// The days from the first to the last of a range, or the one day that is named.
fn range(text: &str) -> Result<Vec<Weekday>, DaysError> {
    let Some((first, last)) = text.split_once('-') else { return Ok(vec![day(text)?]) };
    let (first, last) = (day(first.trim_end())?, day(last.trim_start())?);
    let following = iter::successors(Some(first), |day| (*day != last).then(|| day.succ()));
    Ok(following.collect())
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
            for day in range(part)? {
                if days.contains(&day) {
                    return Err(DaysError::Duplicate(name(day)));
                }
                days.push(day);
            }
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
