//! Compares the calendar with an oracle that goes minute by minute, around the clock changes of every zone.
#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod oracle;
mod properties;

use std::collections::HashSet;

use chrono::{Datelike, NaiveDate, Weekday};
use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Window, ZoneSource};

use self::oracle::{Clocks, MINUTES_PER_DAY, Rule, ZoneData, instant_of, minute_of};

const ALL_DAYS: [Weekday; 7] =
    [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];

/// How far the oracle's time extends beyond what is compared, in minutes: longer than any window in it.
const MARGIN: i64 = 2 * MINUTES_PER_DAY + 60;

/// How far before and after a clock change occurrences are compared, in minutes.
const AROUND: i64 = 30 * 60;

/// The interval at which the calendar is queried, in minutes; it is also queried where occurrences begin or end.
const QUERY_INTERVAL: usize = 241;

fn minute(year: i32, month: u32, day: u32) -> i64 {
    minute_of(NaiveDate::from_ymd_opt(year, month, day).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc())
}

/// A change of a zone's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Change {
    /// The first minute after it.
    at: i64,
    /// The offset from UTC before and after it, in minutes.
    before: i64,
    after: i64,
}

/// The changes of a zone's clocks between two minutes. The offset is compared once a day; where it differs, the change is
/// searched minute by minute.
fn changes(data: &ZoneData, zone: Tz, from: i64, to: i64) -> Vec<Change> {
    let offset = |minute| data.shown(zone, minute).expect("a whole minute") - minute;
    let mut changes = Vec::new();
    let mut before = offset(from);
    for day in (from..to).step_by(usize::try_from(MINUTES_PER_DAY).unwrap()) {
        if offset(day + MINUTES_PER_DAY) == before {
            continue;
        }
        for at in day..=day + MINUTES_PER_DAY {
            let after = offset(at);
            if after != before {
                changes.push(Change { at, before, after });
                before = after;
            }
        }
    }
    changes
}

/// Calendars whose windows begin, end and are denied around a change: pairs of maintenance windows and deny windows.
fn calendars(zone: Tz, change: Change) -> Vec<(Vec<Rule>, Vec<Rule>)> {
    // Local times just before and just after the change, in either order, and one in between.
    let (old, new) = (change.at + change.before, change.at + change.after);
    let (low, high) = (old.min(new), old.max(new));
    let (size, middle) = ((high - low).min(600), i64::midpoint(low, high));
    let daily = |minute, duration| Rule::weekly(zone, &ALL_DAYS, minute, duration);
    let date = NaiveDate::from_epoch_days(i32::try_from(low.div_euclid(MINUTES_PER_DAY)).unwrap()).unwrap();
    let (today, tomorrow) = (date.weekday(), date.weekday().succ());
    vec![
        // Windows across the change.
        (vec![daily(low - 60, 120 + size)], vec![]),
        (vec![daily(low - 60, 120 + size).by_wall_clock()], vec![]),
        // Up to the change, from it on, and in the gap or the overlap.
        (vec![daily(low - 45, 45).by_wall_clock(), daily(high, 45)], vec![daily(middle, 1)]),
        (vec![daily(middle, size / 2 + 1).by_wall_clock(), daily(low, 7), daily(high - 1, 3)], vec![]),
        (vec![daily(middle, 10)], vec![daily(low, 5).by_wall_clock()]),
        // All day, with both policies, cut by deny windows.
        (vec![daily(0, MINUTES_PER_DAY)], vec![daily(middle, 20)]),
        (vec![daily(0, MINUTES_PER_DAY).by_wall_clock()], vec![daily(low - 10, 20), daily(high - 10, 20)]),
        // Several windows, on different days and in another zone, over midnight.
        (
            vec![
                Rule::weekly(zone, &[today], low - 30, 25 * 60),
                Rule::weekly(zone, &[tomorrow, today.pred()], high + 600, 300).by_wall_clock(),
                Rule::weekly(Tz::Australia__Lord_Howe, &[today, tomorrow], 23 * 60, 180),
            ],
            vec![
                Rule::weekly(zone, &[today], middle, 90).by_wall_clock(),
                Rule::weekly(Tz::UTC, &[tomorrow], change.at + 1_000, 100),
            ],
        ),
        (vec![daily(middle, 90).between(date, date.succ_opt().unwrap())], vec![]),
        (
            vec![
                Rule::cron(zone, "0 */30 * * * *", |_, minute| minute % 30 == 0, 20),
                Rule::cron(zone, "0 15 0,2,3,23 * * Sun,Fri-Sat", weekend_nights, 40).by_wall_clock(),
            ],
            vec![Rule::cron(zone, "0 5 2 * * *", |_, minute| minute == 125, 30).by_wall_clock()],
        ),
        (vec![Rule::cron(zone, "0 45 1-4 1-15/2,25-31 3,10 ?", odd_days, 61)], vec![]),
    ]
}

fn weekend_nights(day: NaiveDate, minute: i64) -> bool {
    let is_weekend = matches!(day.weekday(), Weekday::Sun | Weekday::Fri | Weekday::Sat);
    is_weekend && [15, 2 * 60 + 15, 3 * 60 + 15, 23 * 60 + 15].contains(&minute)
}

fn odd_days(day: NaiveDate, minute: i64) -> bool {
    let is_day = (day.day() <= 15 && day.day() % 2 == 1) || day.day() >= 25;
    is_day && [3, 10].contains(&day.month()) && [105, 165, 225, 285].contains(&minute)
}

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    zones: usize,
    changes: usize,
    calendars: usize,
    occurrences: usize,
    queries: usize,
}

impl Compared {
    fn add(&mut self, other: &Self) {
        self.zones += other.zones;
        self.changes += other.changes;
        self.calendars += other.calendars;
        self.occurrences += other.occurrences;
        self.queries += other.queries;
    }
}

/// Compares the calendar with the oracle from one minute to another, for a site in the zone `site`.
fn compare(
    clocks: &mut Clocks,
    site: Tz,
    rules: &(Vec<Rule>, Vec<Rule>),
    from: i64,
    to: i64,
    compared: &mut Compared,
) {
    let windows = |rules: &[Rule]| -> Vec<Window> {
        rules.iter().map(|rule| serde_json::from_value(rule.json(site)).unwrap()).collect()
    };
    let (maintenance, deny) = (windows(&rules.0), windows(&rules.1));
    let calendar = Calendar::new(&maintenance, &deny, site, &clocks.data.zones);
    let known = clocks.open(&rules.0, &rules.1);
    let expected: Vec<(i64, i64)> =
        known.iter().copied().filter(|(start, end)| *end > from && *start < to).collect();
    let context = || format!("{site}, {maintenance:?} without {deny:?}");
    let found: Vec<(i64, i64)> = calendar
        .occurrences(instant_of(from))
        .take(expected.len() + 1)
        .map(|occurrence| occurrence.unwrap())
        .map(|occurrence| (minute_of(occurrence.start), minute_of(occurrence.end)))
        .filter(|(start, _)| *start < to)
        .collect();
    assert_eq!(found, expected, "{}", context());

    let edges = expected.iter().flat_map(|(start, end)| [start - 1, *end]);
    let edges = edges.filter(|minute| (from..to).contains(minute));
    for minute in edges.chain((from..to).step_by(QUERY_INTERVAL)) {
        let as_minutes = |occurrence: os_upgrade_calendar::Occurrence| {
            (minute_of(occurrence.start), minute_of(occurrence.end))
        };
        let at = instant_of(minute);
        let over = expected.partition_point(|(_, end)| *end <= minute);
        let containing = expected.get(over).copied().filter(|(start, _)| *start <= minute);
        assert_eq!(calendar.containing(at).unwrap().map(as_minutes), containing, "{at}, {}", context());
        let begun = expected.partition_point(|(start, _)| *start <= minute);
        if let Some(next) = expected.get(begun) {
            assert_eq!(calendar.next(at).unwrap().map(as_minutes), Some(*next), "{at}, {}", context());
        }
        compared.queries += 1;
    }
    compared.calendars += 1;
    compared.occurrences += expected.len();
}

/// Compares every calendar around `change`.
fn compare_around(data: &'static ZoneData, zone: Tz, change: Change, compared: &mut Compared) {
    let (from, to) = (change.at - AROUND, change.at + AROUND);
    let mut clocks = Clocks::new(data, from - MARGIN, to - from + 2 * MARGIN);
    for rules in calendars(zone, change) {
        compare(&mut clocks, zone, &rules, from, to, compared);
    }
    compared.changes += 1;
}

/// The zones of `data` whose clocks change in 2000 to 2037, with the changes. Zones with the same changes are listed
/// once.
fn zones(data: &ZoneData) -> Vec<(Tz, Vec<Change>)> {
    let mut known = HashSet::new();
    let zones = data.names().map(|zone| (zone, changes(data, zone, minute(2000, 1, 1), minute(2038, 1, 1))));
    zones.filter(|(_, changes)| !changes.is_empty() && known.insert(changes.clone())).collect()
}

/// Compares around the changes of `zone` that `is_wanted` selects.
fn compare_zone(data: &'static ZoneData, zone: Tz, mut is_wanted: impl FnMut(&Change) -> bool) -> Compared {
    let mut compared = Compared { zones: 1, ..Compared::default() };
    for change in changes(data, zone, minute(2000, 1, 1), minute(2038, 1, 1)) {
        if is_wanted(&change) {
            compare_around(data, zone, change, &mut compared);
        }
    }
    compared
}

/// Every kind of change, from one offset to another at one time of the day, in the first zone that has it. [`every_change`]
/// covers all of them.
#[test]
fn every_kind_of_change() {
    let mut compared = Compared::default();
    let mut kinds = HashSet::new();
    let data = ZoneData::built_in();
    for (zone, changes) in zones(data) {
        let apart = changes.windows(2).map(|pair| pair[1].at - pair[0].at).min();
        assert!(apart.is_none_or(|apart| apart > 2 * MINUTES_PER_DAY), "{zone}: the calendar relies on this");
        let is_new = |change: &Change| {
            kinds.insert((change.before, change.after, change.at.rem_euclid(MINUTES_PER_DAY)))
        };
        let wanted: Vec<Change> = changes.iter().copied().filter(is_new).collect();
        if !wanted.is_empty() {
            compared.add(&compare_zone(data, zone, |change| wanted.contains(change)));
        }
    }
    println!("{compared:?}");
    assert!(compared.changes > 100, "{compared:?}");
}

/// Its clocks change by half an hour.
#[test]
fn lord_howe() {
    let compared = compare_zone(ZoneData::built_in(), Tz::Australia__Lord_Howe, |change| {
        assert_eq!((change.after - change.before).abs(), 30);
        true
    });
    assert_eq!(compared.changes, 76, "{compared:?}");
}

/// It moved across the date line and skipped 2011-12-30.
#[test]
fn apia() {
    let mut has_skipped = false;
    let compared = compare_zone(ZoneData::built_in(), Tz::Pacific__Apia, |change| {
        has_skipped |= change.after - change.before == MINUTES_PER_DAY;
        true
    });
    assert!(has_skipped, "{compared:?}");
}

/// What changes in the next years, in the zones whose governments decide it most often, by this machine's data.
#[test]
fn this_machines_data() {
    if os_upgrade_zones::read().zones.source() == ZoneSource::BuiltIn {
        println!("there is none");
        return;
    }
    let next_years = |change: &Change| (minute(2026, 1, 1)..minute(2029, 1, 1)).contains(&change.at);
    let zones = [
        Tz::America__Vancouver,
        Tz::Africa__Cairo,
        Tz::Europe__Chisinau,
        Tz::America__Havana,
        Tz::Asia__Gaza,
    ];
    let mut compared = Compared::default();
    for zone in zones {
        compared.add(&compare_zone(ZoneData::system(), zone, next_years));
    }
    assert!(compared.changes > 0, "{compared:?}");
}

/// Clocks are put back for Ramadan, every year at another time.
#[test]
fn casablanca() {
    let compared = compare_zone(ZoneData::built_in(), Tz::Africa__Casablanca, |_| true);
    assert_eq!(compared.changes, 75, "{compared:?}");
}

/// Every change of every zone's clocks, by this machine's data.
#[test]
#[ignore = "minutes in a release build: `make oracle`"]
fn every_change() {
    let mut compared = Compared::default();
    let data = ZoneData::system();
    for (zone, _) in zones(data) {
        compared.add(&compare_zone(data, zone, |_| true));
    }
    println!("{compared:?}");
}

/// Every minute of every year in every zone of this machine's data, with one of the calendars around the last clock change up to then: each zone
/// uses all of them in turn.
#[test]
#[ignore = "half an hour of one core in a release build: `make oracle`"]
fn every_minute_of_every_year() {
    let mut compared = Compared::default();
    let data = ZoneData::system();
    for (number, (zone, changes)) in zones(data).into_iter().enumerate() {
        for (year, turn) in (2000..2038).zip(number..) {
            let (from, to) = (minute(year, 1, 1), minute(year + 1, 1, 1));
            let mut clocks = Clocks::new(data, from - MARGIN, to - from + 2 * MARGIN);
            let last = changes.iter().rfind(|change| change.at < to).unwrap_or(&changes[0]);
            let rules = calendars(zone, *last);
            compare(&mut clocks, zone, &rules[turn % rules.len()], from, to, &mut compared);
        }
        compared.zones += 1;
        println!("{zone}: {compared:?}");
    }
}
