//! When windows are open, computed minute by minute from their definition. It shares nothing with the calendar except time
//! zone data, of which it uses only the offset at an instant. The system's are read by another library than the calendar's.

use std::collections::HashMap;
use std::fs;
use std::sync::LazyLock;

use chrono::{DateTime, Datelike, NaiveDate, Offset, TimeZone, Utc, Weekday};
use chrono_tz::{TZ_VARIANTS, Tz};
use os_upgrade_calendar::{Rules, ZoneSource, Zones};
use os_upgrade_zones::tzif;
use serde_json::{Value, json};

pub(crate) const MINUTES_PER_DAY: i64 = 1_440;

const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Time zone data.
#[derive(Debug)]
pub(crate) struct ZoneData {
    /// For the calendar.
    pub(crate) zones: Zones,
    /// For the oracle, if they are the system's.
    system: Option<HashMap<Tz, tz::TimeZone>>,
}

static BUILT_IN: LazyLock<ZoneData> = LazyLock::new(|| ZoneData { zones: Zones::default(), system: None });

static SYSTEM: LazyLock<ZoneData> = LazyLock::new(|| {
    // Its release does not matter: what is compiled in, and may be newer, is read in the same way.
    let directory = os_upgrade_zones::read().directory;
    let (mut offsets, mut system) = (HashMap::new(), HashMap::new());
    for zone in TZ_VARIANTS {
        let Ok(data) = fs::read(directory.join(zone.name())) else { continue };
        offsets.insert(zone, tzif::offsets(zone.name(), &data).unwrap());
        system.insert(zone, tz::TimeZone::from_tz_data(&data).unwrap());
    }
    assert!(!system.is_empty(), "install tzdata: {} has no zone files", directory.display());
    let rules = Rules { source: ZoneSource::System, version: None, passed_over: None, offsets };
    ZoneData { zones: Zones::new(rules), system: Some(system) }
});

impl ZoneData {
    /// What is compiled in, the same on every machine.
    pub(crate) fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// This machine's.
    pub(crate) fn system() -> &'static Self {
        &SYSTEM
    }

    /// The zones in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = Tz> {
        let is_there = |zone: &Tz| self.system.as_ref().is_none_or(|system| system.contains_key(zone));
        TZ_VARIANTS.into_iter().filter(is_there)
    }

    fn offset_secs(&self, zone: Tz, at: DateTime<Utc>) -> i32 {
        match &self.system {
            None => zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc(),
            Some(system) => system[&zone].find_local_time_type(at.timestamp()).unwrap().ut_offset(),
        }
    }

    /// The local time in `zone` at a minute; `None` if it is not a whole minute.
    pub(crate) fn shown(&self, zone: Tz, minute: i64) -> Option<i64> {
        let seconds = i64::from(self.offset_secs(zone, instant_of(minute)));
        (seconds % 60 == 0).then_some(minute + seconds / 60)
    }
}

/// A window, for the calendar as JSON and for the oracle.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) starts: Starts,
    pub(crate) zone: Tz,
    /// In minutes.
    pub(crate) duration: i64,
    pub(crate) wall_clock: bool,
    pub(crate) first: Option<NaiveDate>,
    pub(crate) last: Option<NaiveDate>,
}

/// On which local minutes a window starts.
#[derive(Debug, Clone)]
pub(crate) enum Starts {
    /// On some days, at a minute of the day.
    Weekly(Vec<Weekday>, i64),
    /// A cron schedule, and an equivalent function of the day and the minute of the day.
    Cron(&'static str, fn(NaiveDate, i64) -> bool),
}

impl Rule {
    pub(crate) fn weekly(zone: Tz, days: &[Weekday], minute: i64, duration: i64) -> Self {
        let starts = Starts::Weekly(days.to_vec(), minute.rem_euclid(MINUTES_PER_DAY));
        Self { starts, zone, duration, wall_clock: false, first: None, last: None }
    }

    pub(crate) fn cron(
        zone: Tz,
        text: &'static str,
        starts: fn(NaiveDate, i64) -> bool,
        duration: i64,
    ) -> Self {
        let starts = Starts::Cron(text, starts);
        Self { starts, zone, duration, wall_clock: false, first: None, last: None }
    }

    pub(crate) fn by_wall_clock(self) -> Self {
        Self { wall_clock: true, ..self }
    }

    pub(crate) fn between(self, first: NaiveDate, last: NaiveDate) -> Self {
        Self { first: Some(first), last: Some(last), ..self }
    }

    /// The JSON of the window, for a site in the zone `site`.
    pub(crate) fn json(&self, site: Tz) -> Value {
        let mut json = json!({"duration": format!("{}m", self.duration)});
        match &self.starts {
            Starts::Weekly(days, minute) => {
                let names: Vec<&str> =
                    days.iter().map(|day| NAMES[day.num_days_from_monday() as usize]).collect();
                json["days-of-week"] = json!(names.join(", "));
                json["start-time"] = json!(format!("{:02}:{:02}", minute / 60, minute % 60));
            }
            Starts::Cron(text, _) => json["cron"] = json!(text),
        }
        if self.zone != site {
            json["timezone"] = json!(self.zone.name());
        }
        if self.wall_clock {
            json["dst"] = json!("wall-clock");
        }
        if let Some(first) = self.first {
            json["not-before"] = json!(first.to_string());
        }
        if let Some(last) = self.last {
            json["not-after"] = json!(last.to_string());
        }
        json
    }

    /// The minutes of `day` at which it starts.
    fn starts_on(&self, day: NaiveDate) -> Vec<i64> {
        if self.first.is_some_and(|first| day < first) || self.last.is_some_and(|last| last < day) {
            return Vec::new();
        }
        match &self.starts {
            Starts::Weekly(days, start) => {
                days.iter().filter(|on| **on == day.weekday()).map(|_| *start).collect()
            }
            Starts::Cron(_, starts) => (0..MINUTES_PER_DAY).filter(|minute| starts(day, *minute)).collect(),
        }
    }
}

/// The local time of a zone, minute by minute. Local times are minutes since 1970 too, as if they were UTC.
#[derive(Debug)]
pub(crate) struct Clock {
    shown: Vec<i64>,
    /// For each local minute from `lowest` on, the index of the first minute at which it is shown, or of the first minute
    /// after the gap that contains it.
    instants: Vec<usize>,
    lowest: i64,
    /// The local days that exist.
    days: Vec<i64>,
}

impl Clock {
    /// The clocks of `zone` in the `minutes` after the minute `first`.
    pub(crate) fn new(data: &ZoneData, zone: Tz, first: i64, minutes: i64) -> Self {
        let shown = |minute| data.shown(zone, minute).expect("a whole minute");
        let shown: Vec<i64> = (first..first + minutes).map(shown).collect();
        let (lowest, highest) = (*shown.iter().min().unwrap(), *shown.iter().max().unwrap());
        let mut instants = vec![usize::MAX; usize::try_from(highest - lowest + 1).unwrap()];
        for (index, local) in shown.iter().enumerate() {
            let place = usize::try_from(local - lowest).unwrap();
            if instants[place] == usize::MAX {
                instants[place] = index;
            }
        }
        for (index, pair) in shown.windows(2).enumerate() {
            for skipped in pair[0] + 1..pair[1] {
                let place = usize::try_from(skipped - lowest).unwrap();
                if instants[place] == usize::MAX {
                    instants[place] = index + 1;
                }
            }
        }
        let mut days: Vec<i64> = shown.iter().map(|local| local.div_euclid(MINUTES_PER_DAY)).collect();
        days.dedup();
        days.sort_unstable();
        days.dedup();
        Self { shown, instants, lowest, days }
    }

    /// The index of the first minute at which `local` is shown, or of the first minute after the gap that contains it; the
    /// end of the known minutes if it is later.
    fn instant(&self, local: i64) -> Option<usize> {
        let place = usize::try_from(local - self.lowest).ok()?;
        Some(self.instants.get(place).copied().unwrap_or(self.shown.len()))
    }

    /// The occurrences of `rule` that start in the known minutes, as ranges of indices.
    fn occurrences(&self, rule: &Rule) -> Vec<(usize, usize)> {
        let mut occurrences = Vec::new();
        // Skipped days are not among these.
        for day in &self.days {
            let date = NaiveDate::from_epoch_days(i32::try_from(*day).unwrap()).unwrap();
            for minute in rule.starts_on(date) {
                let local = day * MINUTES_PER_DAY + minute;
                let Some(start) = self.instant(local) else { continue };
                let end = if rule.wall_clock {
                    self.instant(local + rule.duration).unwrap()
                } else {
                    start + usize::try_from(rule.duration).unwrap()
                };
                if start < end {
                    occurrences.push((start, end.min(self.shown.len())));
                }
            }
        }
        occurrences
    }
}

/// The clocks of all zones in use, for the same minutes.
#[derive(Debug)]
pub(crate) struct Clocks {
    pub(crate) data: &'static ZoneData,
    first: i64,
    minutes: i64,
    by_zone: HashMap<Tz, Clock>,
}

impl Clocks {
    pub(crate) fn new(data: &'static ZoneData, first: i64, minutes: i64) -> Self {
        Self { data, first, minutes, by_zone: HashMap::new() }
    }

    fn clock(&mut self, zone: Tz) -> &Clock {
        self.by_zone.entry(zone).or_insert_with(|| Clock::new(self.data, zone, self.first, self.minutes))
    }

    /// When one of `maintenance` is open and none of `deny` is, in minutes since 1970, without the end. Occurrences that
    /// began before the first minute are missing.
    pub(crate) fn open(&mut self, maintenance: &[Rule], deny: &[Rule]) -> Vec<(i64, i64)> {
        let minutes = usize::try_from(self.minutes).unwrap();
        let (mut covered, mut joined, mut denied) =
            (vec![false; minutes], vec![false; minutes], vec![false; minutes]);
        for rule in maintenance {
            for (start, end) in self.clock(rule.zone).occurrences(rule) {
                for minute in start..end {
                    covered[minute] = true;
                    // In the same occurrence as the minute before.
                    joined[minute] |= minute > start;
                }
            }
        }
        for rule in deny {
            for (start, end) in self.clock(rule.zone).occurrences(rule) {
                denied[start..end].fill(true);
            }
        }
        let mut open = Vec::new();
        let mut start = None;
        for minute in 0..=minutes {
            let is_open = minute < minutes && covered[minute] && !denied[minute];
            if let Some(begun) = start
                && (!is_open || !joined[minute])
            {
                open.push((begun, minute));
                start = None;
            }
            if is_open && start.is_none() {
                start = Some(minute);
            }
        }
        let at = |index: usize| self.first + i64::try_from(index).unwrap();
        open.into_iter().map(|(start, end)| (at(start), at(end))).collect()
    }
}

/// The minute of an instant.
pub(crate) fn minute_of(at: DateTime<Utc>) -> i64 {
    assert_eq!(at.timestamp() % 60, 0, "{at} is not a whole minute");
    at.timestamp() / 60
}

/// The instant of a minute.
pub(crate) fn instant_of(minute: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(minute * 60, 0).unwrap()
}
