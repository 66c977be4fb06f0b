//! The next occurrence of windows, computed at times spread over a year. The floor converts every window's start on each of
//! the next eight days with the time zone library, and takes the earliest: it neither merges windows nor looks back.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::{DateTime, Datelike, Days, NaiveTime, TimeDelta, TimeZone, Utc, Weekday};
use chrono_tz::Tz;
use hdrhistogram::Histogram;
use os_upgrade_calendar::{Calendar, Window, Zones};
use serde_json::json;

use crate::report::{Pairs, Report, Target, Unit};

const WINDOWS: usize = 50;
/// Number of turns, each with its own median.
const TURNS: i32 = 5;
/// Number of computations of each in a turn, alternating. All turns together cover 368 days at this interval.
const SAMPLES: i32 = 2_000;
const MINUTES_APART: i64 = 53;
/// Limits of the cost relative to the floor: with weekly windows, and where half of the windows are cron.
const WEEKLY_MAX: f64 = 4.5;
const MIXED_MAX: f64 = 7.0;

const ZONES: [Tz; 5] =
    [Tz::Europe__Stockholm, Tz::America__New_York, Tz::Australia__Lord_Howe, Tz::Africa__Casablanca, Tz::UTC];

const DAYS: [Weekday; 7] =
    [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A weekly window of the floor.
#[derive(Debug, Clone, Copy)]
struct Weekly {
    zone: Tz,
    day: usize,
    time: NaiveTime,
}

impl Weekly {
    fn new(number: usize) -> anyhow::Result<Self> {
        let number_small = u32::try_from(number)?;
        let time =
            NaiveTime::from_hms_opt(number_small * 7 % 24, number_small * 11 % 60, 0).context("a time")?;
        Ok(Self { zone: ZONES[number % ZONES.len()], day: number * 3 % DAYS.len(), time })
    }

    fn window(self) -> anyhow::Result<Window> {
        let json = json!({
            "days-of-week": NAMES[self.day], "start-time": self.time.format("%H:%M").to_string(),
            "timezone": self.zone.name(), "duration": "2h",
        });
        Ok(serde_json::from_value(json)?)
    }

    fn next(self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let today = at.with_timezone(&self.zone).date_naive();
        let days = (0..=7).filter_map(|ahead| today.checked_add_days(Days::new(ahead)));
        days.filter(|day| day.weekday() == DAYS[self.day])
            .filter_map(|day| self.zone.from_local_datetime(&day.and_time(self.time)).earliest())
            .map(|start| start.to_utc())
            .find(|start| *start > at)
    }
}

/// A window that opens once a year or once a month.
fn cron(number: usize) -> anyhow::Result<Window> {
    let (hour, day, month) = (number % 24, 1 + number % 28, 1 + number % 12);
    let cron = match number % 2 {
        0 => format!("0 15 {hour} {day} {month} *"),
        _ => format!("0 45 {hour} {day} * *"),
    };
    let zone = ZONES[number % ZONES.len()].name();
    Ok(serde_json::from_value(json!({ "cron": cron, "timezone": zone, "duration": "4h" }))?)
}

/// The times of one side in one turn.
struct Times(Histogram<u64>);

impl Times {
    fn new() -> anyhow::Result<Self> {
        Ok(Self(Histogram::new(3)?))
    }

    fn time<T>(&mut self, next: impl FnOnce() -> T) -> anyhow::Result<()> {
        let start = Instant::now();
        black_box(next());
        self.0.record(u64::try_from(start.elapsed().as_nanos())?)?;
        Ok(())
    }

    /// The median: of so short computations, the slowest are those interrupted by other processes.
    fn median(&self) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(0.5))
    }
}

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let weekly = (0..WINDOWS).map(Weekly::new).collect::<anyhow::Result<Vec<_>>>()?;
    let windows = weekly.iter().map(|weekly| weekly.window()).collect::<anyhow::Result<Vec<_>>>()?;
    let weekly_calendar = Calendar::new(&windows, &[], Tz::UTC, Zones::built_in());
    let mixed = windows.iter().take(WINDOWS / 2).cloned().map(Ok).chain((0..WINDOWS / 2).map(cron));
    let mixed = mixed.collect::<anyhow::Result<Vec<_>>>()?;
    let deny = (0..10).map(|number| cron(number + 1)).collect::<anyhow::Result<Vec<_>>>()?;
    let mixed_calendar = Calendar::new(&mixed, &deny, Tz::UTC, Zones::built_in());
    let begin: DateTime<Utc> = "2027-01-01T00:00:00Z".parse()?;
    let (mut of_weekly, mut of_mixed) = (Pairs::default(), Pairs::default());
    for turn in 0..TURNS {
        let (mut floor, mut weekly_times, mut mixed_times) = (Times::new()?, Times::new()?, Times::new()?);
        for number in 0..SAMPLES {
            let at = begin + TimeDelta::minutes(MINUTES_APART) * (number * TURNS + turn);
            floor.time(|| weekly.iter().filter_map(|weekly| weekly.next(black_box(at))).min())?;
            weekly_times.time(|| weekly_calendar.next(black_box(at)))?;
            mixed_times.time(|| mixed_calendar.next(black_box(at)))?;
        }
        of_weekly.push_times(floor.median(), weekly_times.median());
        of_mixed.push_times(floor.median(), mixed_times.median());
    }
    let what = format!("next occurrence of {WINDOWS} windows, over a year");
    report.push(what, Unit::Millis, of_weekly, Target::AtMost(WEEKLY_MAX));
    let what = "the same, 25 of them cron, without 10 more";
    report.push(what, Unit::Millis, of_mixed, Target::AtMost(MIXED_MAX));
    Ok(())
}
