//! Starts written as a cron schedule.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use cron::{Schedule, TimeUnitSpec};
use serde::Serialize;

use super::cron_error::first_error;
use super::crontab;
use crate::deserialize::from_text;
use crate::deserialize::quoted;

/// The first and the last year in which a schedule starts.
const FIRST_YEAR: i32 = 1970;
const LAST_YEAR: i32 = 2100;

/// A schedule in the syntax of the crate `cron`: second, minute, hour, day of the month, month, day of the week (1 is
/// Sunday) and optionally year, up to 2100; or a shorthand such as `@daily`. Five fields are a crontab's, and are shown
/// as what they mean in this syntax.
///
/// It gives the local times at which a window starts, at most one in a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Cron {
    schedule: Arc<Schedule>,
}

/// Why a text is not a valid schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Its syntax is invalid.
    #[error(
        "{text:?} is not a cron schedule{reason}; write second, minute, hour, day of the month, month and day of \
         the week, such as \"0 0 1 * * Fri\""
    )]
    Syntax {
        /// The start of the text.
        text: String,
        /// A colon and the mistake; empty if unknown.
        reason: String,
    },
    /// It starts several times in one minute.
    #[error("{0:?} starts more often than once a minute; begin it with a single second, such as 0")]
    TooOften(String),
    /// It never starts.
    #[error("{0:?} never starts: no day from 1970 to 2100 matches")]
    Never(String),
}

impl Cron {
    /// The first start at or after `local`, which is in the years 1970 to 10 000.
    pub(super) fn next(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        // Local time is passed as if it were UTC, so that clock changes have no influence.
        let before = local - TimeDelta::seconds(1);
        self.schedule.after(&before.and_utc()).next().map(|next| next.naive_utc())
    }

    /// The last start before `local`, which is in the years 1969 to 10 000.
    pub(super) fn previous(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        // In an earlier year the library only finds months up to the month of `local`.
        let years = self.schedule.years();
        let is_one = |year: &i32| u32::try_from(*year).is_ok_and(|year| years.includes(year));
        let year = (FIRST_YEAR..=local.year().min(LAST_YEAR)).rev().find(is_one)?;
        let next_year = NaiveDate::from_ymd_opt(year + 1, 1, 1)?.and_time(NaiveTime::MIN);
        let before = local.min(next_year);
        self.schedule.after(&before.and_utc()).next_back().map(|previous| previous.naive_utc())
    }
}

fn parse(text: &str) -> Result<Schedule, String> {
    text.parse::<Schedule>().map_err(|error| reason(text, &error))
}

/// The mistake in `text`, or else the library's message without the quoted schedule and the caret under it.
fn reason(text: &str, error: &cron::error::Error) -> String {
    if let Some(mistake) = first_error(text) {
        return format!(": {mistake}");
    }
    let text = error.to_string();
    match text.lines().skip(2).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ") {
        reason if reason.is_empty() => reason,
        reason => format!(": {}", quoted(reason.trim_end_matches('.'))),
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        // Nothing that the library reads has another meaning here.
        let schedule = parse(text).or_else(|mistake| match crontab::translate(text) {
            Some(Ok(translated)) => parse(&translated),
            Some(Err(mistake)) => Err(format!(": {mistake}")),
            None => Err(mistake),
        });
        let schedule = schedule.map_err(|reason| CronError::Syntax { text: quoted(text), reason })?;
        if schedule.seconds().count() != 1 {
            return Err(CronError::TooOften(quoted(text)));
        }
        let cron = Self { schedule: Arc::new(schedule) };
        match cron.next(DateTime::UNIX_EPOCH.naive_utc()) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never(quoted(text))),
        }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.schedule.source())
    }
}

from_text!(Cron: "a string such as \"0 0 1 * * Fri\"");

impl From<Cron> for String {
    fn from(cron: Cron) -> String {
        cron.to_string()
    }
}
