//! A window as operators write it.

use chrono::{DateTime, TimeDelta, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::cron::Cron;
use super::date::Date;
use super::days::DaysOfWeek;
use super::start_time::StartTime;
use super::timezone::Timezone;
use crate::deserialize;
use crate::duration::Duration;

/// The longest duration of a window, and the longest time for which windows may overlap one another.
pub(crate) const SPAN_MAX: TimeDelta = TimeDelta::days(366);

/// An entry of `maintenance-windows` or `deny-windows`: recurring start times, and a duration.
///
/// A window belongs to the local day on which it starts, and may run past midnight. `cron`, `not-before`, `not-after`
/// and `dst` are extensions of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Window {
    pub(crate) starts: Starts,
    pub(crate) timezone: Option<Timezone>,
    pub(crate) duration: Duration,
    pub(crate) not_before: Option<Date>,
    pub(crate) not_after: Option<Date>,
    pub(crate) dst: Option<DstPolicy>,
}

/// At which local times a window starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Starts {
    Weekly { days: DaysOfWeek, time: StartTime },
    Cron(Cron),
}

/// When a window ends if the local clock changes during it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DstPolicy {
    /// When its duration has elapsed.
    #[default]
    Elapsed,
    /// When the local clock shows the start time plus the duration.
    WallClock,
}

impl<'de> Deserialize<'de> for DstPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize::word(deserializer, &["elapsed", "wall-clock"], [Self::Elapsed, Self::WallClock])
    }
}

/// A time in which upgrades may run: half-open, `start` inclusive and `end` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Occurrence {
    /// Its first instant.
    pub start: DateTime<Utc>,
    /// The first instant after it.
    pub end: DateTime<Utc>,
}

/// Why a window whose fields are valid one by one is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It has both kinds of start times.
    #[error("a window has either cron, or days-of-week and start-time; leave one of them out")]
    CronAndDays,
    /// It has no start times.
    #[error("when does the window start? Give days-of-week and start-time, or cron")]
    NoStart,
    /// It has days and no time.
    #[error("start-time is missing: the local time at which the window starts on its days, such as 01:00")]
    NoStartTime,
    /// It has a time and no days.
    #[error("days-of-week is missing: the days on which the window starts, such as \"Friday, Saturday\"")]
    NoDays,
    /// The last day is before the first.
    #[error("not-after ({not_after}) is before not-before ({not_before}), so the window would never open")]
    NeverOpen {
        /// The first day.
        not_before: Date,
        /// The last day.
        not_after: Date,
    },
}

/// The JSON of a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) days_of_week: Option<DaysOfWeek>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start_time: Option<StartTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cron: Option<Cron>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timezone: Option<Timezone>,
    #[serde(deserialize_with = "window_duration")]
    pub(crate) duration: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_before: Option<Date>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_after: Option<Date>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dst: Option<DstPolicy>,
}

impl TryFrom<Document> for Window {
    type Error = WindowError;

    fn try_from(document: Document) -> Result<Self, WindowError> {
        let Document { days_of_week, start_time, cron, timezone, duration, not_before, not_after, dst } =
            document;
        let starts = match (days_of_week, start_time, cron) {
            (Some(days), Some(time), None) => Starts::Weekly { days, time },
            (None, None, Some(cron)) => Starts::Cron(cron),
            (None, None, None) => return Err(WindowError::NoStart),
            (Some(_), None, None) => return Err(WindowError::NoStartTime),
            (None, Some(_), None) => return Err(WindowError::NoDays),
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => return Err(WindowError::CronAndDays),
        };
        if let (Some(not_before), Some(not_after)) = (not_before, not_after)
            && not_after < not_before
        {
            return Err(WindowError::NeverOpen { not_before, not_after });
        }
        Ok(Self { starts, timezone, duration, not_before, not_after, dst })
    }
}

impl From<Window> for Document {
    fn from(window: Window) -> Self {
        let Window { starts, timezone, duration, not_before, not_after, dst } = window;
        let (days_of_week, start_time, cron) = match starts {
            Starts::Weekly { days, time } => (Some(days), Some(time), None),
            Starts::Cron(cron) => (None, None, Some(cron)),
        };
        Self { days_of_week, start_time, cron, timezone, duration, not_before, not_after, dst }
    }
}

/// Reads the duration of a window, which is more than zero and at most [`SPAN_MAX`].
pub(crate) fn window_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = Duration::deserialize(deserializer)?;
    if duration.as_secs() == 0 {
        return Err(Error::custom("a window lasts longer than 0s; write how long it is open, such as 4h"));
    }
    if duration.to_delta() > SPAN_MAX {
        let message = format!(
            "a window lasts 366d at most, not {duration}; for one that is always open, write every day and 24h"
        );
        return Err(Error::custom(message));
    }
    Ok(duration)
}

crate::from_objects_only!(Document);
