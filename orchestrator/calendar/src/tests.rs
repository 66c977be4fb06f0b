//! Windows as they are written, and their occurrences.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::*;

fn window(json: Value) -> Window {
    serde_json::from_value(json).unwrap()
}

fn weekly(days: &str, start: &str, duration: &str) -> Window {
    window(json!({"days-of-week": days, "start-time": start, "duration": duration}))
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

const EVERY_DAY: &str = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday";

/// The first `count` occurrences after `from`, one line each: start and end.
fn list(maintenance: &[Window], deny: &[Window], site: Tz, from: &str, count: usize) -> Vec<String> {
    let occurrences: Result<Vec<_>, _> =
        Calendar::new(maintenance, deny, site, Zones::built_in()).occurrences(at(from)).take(count).collect();
    let line = |occurrence: &Occurrence| {
        format!("{} - {}", occurrence.start.format("%m-%d %a %H:%M"), occurrence.end.format("%m-%d %a %H:%M"))
    };
    occurrences.unwrap().iter().map(line).collect()
}

#[test]
fn windows_round_trip() {
    for json in [
        r#"{"days-of-week":"Friday, Saturday","start-time":"01:00","timezone":"site-local","duration":"4h"}"#,
        r#"{"days-of-week":"Sunday, Monday","start-time":"23:59","duration":"1d1h"}"#,
        r#"{"cron":"0 30 2 * * Mon-Fri","timezone":"Europe/Stockholm","duration":"1h","dst":"wall-clock"}"#,
        r#"{"cron":"@daily","duration":"1y1d","not-before":"2027-01-01","not-after":"2027-01-01"}"#,
        r#"{"days-of-week":"Tuesday","start-time":"00:00","duration":"1s","dst":"elapsed"}"#,
    ] {
        let window: Window = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&window).unwrap(), json);
    }
    let spaced = weekly(" Friday,Saturday ", "01:00", "90m");
    assert_eq!(
        serde_json::to_value(spaced).unwrap(),
        json!({"days-of-week": "Friday, Saturday", "start-time": "01:00", "duration": "1h30m"})
    );
}

#[test]
fn days_are_shown_in_full() {
    for (written, shown) in [
        ("Fri", "Friday"),
        ("Mon-Fri", "Monday, Tuesday, Wednesday, Thursday, Friday"),
        ("Sat - Monday,Wed", "Saturday, Sunday, Monday, Wednesday"),
        ("Sun-Sun", "Sunday"),
        ("Mon-Sun", EVERY_DAY),
    ] {
        let window = serde_json::to_value(weekly(written, "01:00", "4h")).unwrap();
        assert_eq!(window["days-of-week"], shown, "{written}");
    }
}

/// Five fields are a crontab's, in which days of the week count from 0, which is Sunday.
#[test]
fn crontab_schedules_are_shown_as_what_they_mean() {
    for (written, shown) in [
        ("0 1 * * *", "0 0 1 * * *"),
        ("30 2 * * 1-5", "0 30 2 * * Mon-Fri"),
        ("30 2 * * Mon-Fri", "0 30 2 * * Mon-Fri"),
        ("0 1 * * 0", "0 0 1 * * Sun"),
        ("0 1 * * 7,3", "0 0 1 * * Sun,Wed"),
        ("0 1 * * 5-7", "0 0 1 * * Fri,Sat,Sun"),
        ("0 1 * * 0-6/2", "0 0 1 * * Sun,Tue,Thu,Sat"),
        ("0 1 * * 1/2", "0 0 1 * * Mon,Wed,Fri"),
        ("0 1 * * 7/2", "0 0 1 * * Sun"),
        ("0 1 * * 1, 3", "0 0 1 * * Mon,Wed"),
        ("0 1 ? * Mon - Fri", "0 0 1 ? * Mon-Fri"),
        ("0 1 1 * ?", "0 0 1 1 * ?"),
        ("0 0 1 ** Mon", "0 0 1 ** Mon"),
        ("*/15 1-3 1 1,7 *", "0 */15 1-3 1 1,7 *"),
    ] {
        assert_eq!(written.parse::<Cron>().unwrap().to_string(), shown, "{written}");
    }
    for (written, mistake) in [
        ("0 1 1 * Mon", "a crontab means either the day of the month or the day of the week"),
        ("0 1 * * 8", "8 is not a day of the week"),
        ("0 1 * * Foo", "Foo is not a day of the week: Sun to Sat, or 0 (Sunday) to 7"),
        ("0 1 * * 5-3", "5-3 goes backwards; list the values"),
        ("0 1 * * 5/0", "5/0 has no step from 1 to 7 after the /"),
        ("0 24 * * 1", "24 is not an hour: 0 to 23"),
    ] {
        let found = written.parse::<Cron>().unwrap_err().to_string();
        assert!(found.starts_with(&format!("{written:?} is not a cron schedule: {mistake}")), "{found}");
    }
}

#[test]
fn invalid_days_are_explained() {
    let one = |changed: &str| {
        let json = json!({"days-of-week": changed, "start-time": "01:00", "duration": "4h"});
        serde_json::from_value::<Window>(json).unwrap_err().to_string()
    };
    for (text, message) in [
        ("friday", r#""friday" is not a day; did you mean Friday?"#),
        ("Fr", r#""Fr" is not a day; did you mean Friday?"#),
        ("Wedensday", r#""Wedensday" is not a day; write days as in"#),
        ("Thurday", r#""Thurday" is not a day; did you mean Thursday?"#),
        ("Fredag", r#""Fredag" is not a day; write days as in "Friday, Saturday" or "Mon-Fri""#),
        ("Mon-Fredag", r#""Fredag" is not a day"#),
        ("Mon-Wed-Fri", r#""Wed-Fri" is not a day"#),
        ("Mon-Fri, Wed", "Wednesday is listed twice; write it once"),
        ("Friday, Saturday, Friday", "Friday is listed twice; write it once"),
        ("", "no day is named; write one day or more"),
        (" ", "no day is named; write one day or more"),
        ("Friday,", "a day is missing before, after or between commas"),
        ("Friday Saturday", r#""Friday Saturday" is not a day"#),
    ] {
        let found = one(text);
        assert!(found.starts_with(message), "{text}: {found}");
    }
}

/// The error for a window in which `key` has this value, or is removed when it is null.
fn changed(key: &str, value: Value) -> String {
    let mut json = json!({"days-of-week": "Friday", "start-time": "01:00", "duration": "4h"});
    let keys = json.as_object_mut().unwrap();
    if value.is_null() {
        keys.remove(key);
    } else {
        keys.insert(key.to_owned(), value);
    }
    serde_json::from_value::<Window>(json).unwrap_err().to_string()
}

#[test]
fn invalid_schedules_are_explained() {
    for (cron, mistake) in [
        ("0 0 24 * * *", "24 is not an hour: 0 to 23"),
        ("0 60 1 * * *", "60 is not a minute: 0 to 59"),
        ("60 0 1 * * *", "60 is not a second: 0 to 59"),
        ("0 0 1 0 * *", "0 is not a day of the month: 1 to 31"),
        ("0 0 1 * 13 *", "13 is not a month: Jan to Dec, or 1 to 12"),
        ("0 0 1 * * 0", "0 is not a day of the week: Sun to Sat, or 1 (Sunday) to 7"),
        ("0 0 1 * * Mon,Fry", "Fry is not a day of the week: Sun to Sat, or 1 (Sunday) to 7"),
        ("0 0 1 * * * 1969", "1969 is not a year: 1970 to 2100"),
        ("0 0 1-24 * * *", "24 is not an hour: 0 to 23"),
        ("0 0 1 , 24 * * *", "24 is not an hour: 0 to 23"),
        ("0 0 Mon * * *", "Mon is not an hour: 0 to 23"),
        ("0 0 1 * * Fri-Mon", "Fri-Mon goes backwards; list the values, separated by commas"),
        ("0 */0 1 * * *", "\"0\" is not a step, after a /: 1 to 59"),
        ("0 1", "it has 2 fields, not 5 to 7"),
        ("@midnight", "use @hourly, @daily, @weekly, @monthly or @yearly"),
    ] {
        let found = cron.parse::<Cron>().unwrap_err().to_string();
        let expected = format!("{cron:?} is not a cron schedule: {mistake}; write second, minute");
        assert!(found.starts_with(&expected), "{found}");
    }
    for cron in [
        "0 0 1 * * Tues-thurs,SATURDAY",
        "0 0 1 1-7 sept,May,december 2-6/2",
        "0 5/15 0,12 ? * ? 2027-2030",
        " @weekly ",
    ] {
        let wrong = cron_error::first_error(cron).filter(|_| !cron.contains('@'));
        assert_eq!(cron.parse::<Cron>().is_ok(), wrong.is_none(), "{cron}: {wrong:?}");
    }
}

#[test]
fn invalid_windows_are_explained() {
    for (key, value, message) in [
        ("start-time", json!("24:00"), "24:00 is not a time of day; write 00:00, and the next day in"),
        ("start-time", json!("1:00"), r#"write 01:00 instead of "1:00""#),
        ("start-time", json!("25:61"), r#""25:61" is not a time of day; hours go from 00 to 23"#),
        ("start-time", json!("24:01"), r#""24:01" is not a time of day; hours go from 00 to 23"#),
        ("start-time", json!("01:00:00"), r#""01:00:00" is not a time of day; write HH:MM"#),
        ("start-time", json!("+1:00"), r#""+1:00" is not a time of day; write HH:MM"#),
        ("start-time", json!(100), "invalid type: integer `100`, expected a string such as \"01:00\""),
        ("duration", json!("0s"), "a window lasts longer than 0s; write how long"),
        ("duration", json!("367d"), "a window lasts 366d at most, not 1y2d"),
        ("duration", json!("4"), r#""4" is not a duration"#),
        ("duration", Value::Null, "missing field `duration`"),
        (
            "timezone",
            json!("Europe/Stokholm"),
            r#""Europe/Stokholm" is not a zone; did you mean Europe/Stockholm?"#,
        ),
        (
            "timezone",
            json!("europe/stockholm"),
            "\"europe/stockholm\" is not a zone; did you mean Europe/Stockholm?",
        ),
        ("timezone", json!("stockholm"), r#""stockholm" is not a zone; did you mean Europe/Stockholm?"#),
        (
            "timezone",
            json!("GMT+1"),
            r#""GMT+1" is not a zone; name a place, such as Europe/Stockholm, or write Etc/GMT-1 for 1 h ahead of UTC: its sign is reversed"#,
        ),
        ("timezone", json!("CEST"), r#""CEST" is not a zone; write site-local, or a name of the IANA"#),
        ("timezone", json!("local"), r#""local" is not a zone; write site-local, or a name of the IANA"#),
        ("timezone", json!("site_local"), r#""site_local" is not a zone; did you mean site-local?"#),
        ("day-of-week", json!("Friday"), "unknown field `day-of-week`, expected one of `days-of-week`"),
        ("days-of-week", Value::Null, "days-of-week is missing: the days on which"),
        (
            "days-of-week",
            json!(["Friday"]),
            r#"invalid type: sequence, expected a string as in "Friday, Saturday""#,
        ),
        ("duration", json!(4), r#"invalid type: integer `4`, expected a string such as "4h" or "1d12h""#),
        ("dst", json!(true), r#"invalid type: boolean `true`, expected "elapsed" or "wall-clock""#),
        ("start-time", Value::Null, "start-time is missing: the local time"),
        ("cron", json!("@daily"), "a window has either cron, or days-of-week and start-time"),
        ("cron", json!("0 1 * *"), r#""0 1 * *" is not a cron schedule"#),
        ("cron", json!("0 0 25 * * *"), r#""0 0 25 * * *" is not a cron schedule: "#),
        ("cron", json!("* 0 1 * * *"), r#""* 0 1 * * *" starts more often than once a minute"#),
        ("cron", json!("0 0 1 30 2 *"), r#""0 0 1 30 2 *" never starts"#),
        ("not-before", json!("2027-1-1"), r#""2027-1-1" is not a day; write YYYY-MM-DD"#),
        ("not-before", json!("2027-02-29"), r#""2027-02-29" is not a day"#),
        ("dst", json!("wall"), "unknown variant `wall`, expected `elapsed` or `wall-clock`"),
    ] {
        let found = changed(key, value.clone());
        assert!(found.starts_with(message), "{key} {value}: {found}");
    }
    for (json, message) in [
        (json!({"duration": "4h"}), "when does the window start? Give"),
        (
            json!({"cron": "@daily", "duration": "1h", "not-before": "2027-01-02", "not-after": "2027-01-01"}),
            "not-after (2027-01-01) is before not-before (2027-01-02)",
        ),
        (json!(["Friday", "01:00", "4h"]), "invalid type: sequence, expected an object"),
    ] {
        let found = serde_json::from_value::<Window>(json.clone()).unwrap_err().to_string();
        assert!(found.starts_with(message), "{json}: {found}");
    }
}

#[test]
fn specification_example() {
    let windows = [weekly("Friday, Saturday", "01:00", "4h")];
    let calendar = Calendar::new(&windows, &[], Tz::Europe__Stockholm, Zones::built_in());
    // A Friday.
    let friday = Occurrence { start: at("2026-11-20T00:00:00Z"), end: at("2026-11-20T04:00:00Z") };
    let saturday = Occurrence { start: at("2026-11-21T00:00:00Z"), end: at("2026-11-21T04:00:00Z") };
    let second = TimeDelta::seconds(1);
    assert_eq!(calendar.containing(friday.start - second), Ok(None));
    assert_eq!(calendar.containing(friday.start), Ok(Some(friday)));
    assert_eq!(calendar.containing(friday.end - second), Ok(Some(friday)));
    assert_eq!(calendar.containing(friday.end), Ok(None));
    assert_eq!(calendar.next(friday.start - second), Ok(Some(friday)));
    assert_eq!(calendar.next(friday.start), Ok(Some(saturday)));
    let first = |from, count| calendar.occurrences(from).take(count).collect::<Vec<_>>();
    assert_eq!(first(friday.start, 2), [Ok(friday), Ok(saturday)]);
    assert_eq!(first(friday.end, 1), [Ok(saturday)]);
}

#[test]
fn overlapping_windows_merge_touching_ones_do_not() {
    let windows = [
        weekly("Friday", "23:00", "4h"),
        weekly("Saturday", "01:00", "4h"),
        weekly("Saturday", "05:00", "1h"),
    ];
    assert_eq!(
        list(&windows, &[], Tz::UTC, "2026-11-16T00:00:00Z", 3),
        [
            "11-20 Fri 23:00 - 11-21 Sat 05:00",
            "11-21 Sat 05:00 - 11-21 Sat 06:00",
            "11-27 Fri 23:00 - 11-28 Sat 05:00"
        ]
    );
    // The whole occurrence is found even after one of the windows has ended.
    assert_eq!(
        list(&windows, &[], Tz::UTC, "2026-11-21T04:00:00Z", 1),
        ["11-20 Fri 23:00 - 11-21 Sat 05:00"]
    );
    let days = [weekly(EVERY_DAY, "00:00", "24h")];
    assert_eq!(
        list(&days, &[], Tz::UTC, "2026-11-16T12:00:00Z", 2),
        ["11-16 Mon 00:00 - 11-17 Tue 00:00", "11-17 Tue 00:00 - 11-18 Wed 00:00"]
    );
}

#[test]
fn deny_windows_win() {
    let windows = [weekly(EVERY_DAY, "20:00", "8h")];
    let deny = [
        weekly("Monday", "21:00", "1h"),
        weekly("Monday", "23:00", "2h"),
        weekly("Wednesday", "12:00", "1d"),
    ];
    assert_eq!(
        list(&windows, &deny, Tz::UTC, "2026-11-16T20:30:00Z", 6),
        [
            "11-16 Mon 20:00 - 11-16 Mon 21:00",
            "11-16 Mon 22:00 - 11-16 Mon 23:00",
            "11-17 Tue 01:00 - 11-17 Tue 04:00",
            "11-17 Tue 20:00 - 11-18 Wed 04:00",
            "11-19 Thu 20:00 - 11-20 Fri 04:00",
            "11-20 Fri 20:00 - 11-21 Sat 04:00",
        ]
    );
    let over = [window(json!({
        "days-of-week": "Monday", "start-time": "19:00", "duration": "2h", "not-after": "2026-11-16",
    }))];
    assert_eq!(
        list(&windows, &over, Tz::UTC, "2026-11-16T22:00:00Z", 1),
        ["11-16 Mon 21:00 - 11-17 Tue 04:00"]
    );
}

#[test]
fn changes_of_the_clock() {
    let stockholm = Tz::Europe__Stockholm;
    // 2026-03-29, 02:00 becomes 03:00; 2026-10-25, 03:00 becomes 02:00.
    let in_gap = [weekly("Sunday", "02:30", "1h")];
    assert_eq!(
        list(&in_gap, &[], stockholm, "2026-03-29T00:00:00Z", 1),
        ["03-29 Sun 01:00 - 03-29 Sun 02:00"]
    );
    assert_eq!(
        list(&in_gap, &[], stockholm, "2026-10-25T00:00:00Z", 1),
        ["10-25 Sun 00:30 - 10-25 Sun 01:30"]
    );
    let night = json!({"days-of-week": "Sunday", "start-time": "01:00", "duration": "4h"});
    let mut wall_clock = night.clone();
    wall_clock["dst"] = json!("wall-clock");
    let (elapsed, wall_clock) = ([window(night)], [window(wall_clock)]);
    for (from, by_elapsed, by_clock) in [
        ("2026-03-29T00:00:00Z", "03-29 Sun 00:00 - 03-29 Sun 04:00", "03-29 Sun 00:00 - 03-29 Sun 03:00"),
        ("2026-10-25T00:00:00Z", "10-24 Sat 23:00 - 10-25 Sun 03:00", "10-24 Sat 23:00 - 10-25 Sun 04:00"),
    ] {
        assert_eq!(list(&elapsed, &[], stockholm, from, 1), [by_elapsed]);
        assert_eq!(list(&wall_clock, &[], stockholm, from, 1), [by_clock]);
    }
    // All of it lies in the gap.
    let short = [window(json!({
        "days-of-week": "Sunday", "start-time": "02:15", "duration": "30m", "dst": "wall-clock",
    }))];
    assert_eq!(
        list(&short, &[], stockholm, "2026-03-28T00:00:00Z", 1),
        ["04-05 Sun 00:15 - 04-05 Sun 00:45"]
    );
}

#[test]
fn skipped_days_have_no_occurrence() {
    let fridays = [weekly("Friday", "12:00", "1h")];
    assert_eq!(
        list(&fridays, &[], Tz::Pacific__Apia, "2011-12-20T00:00:00Z", 2),
        ["12-23 Fri 22:00 - 12-23 Fri 23:00", "01-05 Thu 22:00 - 01-05 Thu 23:00"]
    );
    // After a gap at midnight the rest of the day exists.
    let midnight = [weekly("Sunday", "00:00", "1h")];
    assert_eq!(
        list(&midnight, &[], Tz::America__Sao_Paulo, "2018-11-01T00:00:00Z", 1),
        ["11-04 Sun 03:00 - 11-04 Sun 04:00"]
    );
}

#[test]
fn cron_starts_by_the_local_clock() {
    let stockholm = Tz::Europe__Stockholm;
    let leap = [window(json!({"cron": "0 0 1 29 2 *", "duration": "1h"}))];
    let next = |from| Calendar::new(&leap, &[], stockholm, Zones::built_in()).next(at(from));
    assert_eq!(
        next("2096-03-01T00:00:00Z"),
        Ok(None),
        "the next leap year is 2104, after all of cron's years"
    );
    let expected = Occurrence { start: at("2028-02-29T00:00:00Z"), end: at("2028-02-29T01:00:00Z") };
    assert_eq!(next("2026-03-01T00:00:00Z"), Ok(Some(expected)));
    let half_hours = [window(json!({"cron": "0 0,30 * * * *", "duration": "20m"}))];
    // 02:00 and 02:30 begin together at the end of the gap, with 03:00.
    assert_eq!(
        list(&half_hours, &[], stockholm, "2026-03-29T00:30:00Z", 3),
        [
            "03-29 Sun 00:30 - 03-29 Sun 00:50",
            "03-29 Sun 01:00 - 03-29 Sun 01:20",
            "03-29 Sun 01:30 - 03-29 Sun 01:50"
        ]
    );
    // The repeated hour counts once.
    assert_eq!(
        list(&half_hours, &[], stockholm, "2026-10-25T00:30:00Z", 2),
        ["10-25 Sun 00:30 - 10-25 Sun 00:50", "10-25 Sun 02:00 - 10-25 Sun 02:20"]
    );
}

#[test]
fn first_and_last_days() {
    let january = [window(json!({
        "days-of-week": EVERY_DAY, "start-time": "22:00", "duration": "4h",
        "not-before": "2030-01-05", "not-after": "2030-01-06",
    }))];
    assert_eq!(
        list(&january, &[], Tz::UTC, "2026-01-01T00:00:00Z", 3),
        ["01-05 Sat 22:00 - 01-06 Sun 02:00", "01-06 Sun 22:00 - 01-07 Mon 02:00"]
    );
    let far = [window(json!({"cron": "@daily", "duration": "1h", "not-before": "9999-12-31"}))];
    assert_eq!(list(&far, &[], Tz::UTC, "2026-01-01T00:00:00Z", 3), [""; 0]);
    let last = [window(json!({
        "days-of-week": EVERY_DAY, "start-time": "23:00", "duration": "4h", "not-before": "9999-12-31",
    }))];
    assert_eq!(list(&last, &[], Tz::UTC, "2026-01-01T00:00:00Z", 3), ["12-31 Fri 23:00 - 01-01 Sat 03:00"]);
}

#[test]
fn endless_windows_are_refused() {
    let now = at("2026-11-20T00:00:00Z");
    let endless = [weekly(EVERY_DAY, "00:00", "25h")];
    let calendar = Calendar::new(&endless, &[], Tz::UTC, Zones::built_in());
    let error = calendar.check(now).unwrap_err();
    assert!(error.to_string().starts_with("maintenance-windows: from 2025-11-"), "{error}");
    assert_eq!(calendar.containing(now), Err(error));
    assert_eq!(calendar.next(now), Err(error));
    assert_eq!(calendar.occurrences(now).collect::<Vec<_>>(), [Err(error)]);

    let later = [
        weekly("Friday", "01:00", "4h"),
        window(json!({
            "days-of-week": EVERY_DAY, "start-time": "00:00", "duration": "25h", "not-before": "2050-01-01",
        })),
    ];
    let calendar = Calendar::new(&later, &[], Tz::UTC, Zones::built_in());
    assert_eq!(calendar.check(now), Err(CalendarError::Endless { since: at("2050-01-01T00:00:00Z") }));
    assert!(matches!(calendar.next(now), Ok(Some(_))));
    let error = Err(CalendarError::Endless { since: at("2050-01-01T00:00:00Z") });
    assert_eq!(calendar.next(at("2049-12-31T12:00:00Z")), error);
    assert_eq!(calendar.containing(at("2050-06-01T00:00:00Z")), error);
    for (window, closes) in [
        (weekly(EVERY_DAY, "00:00", "24h"), true),
        (weekly("Friday", "01:00", "4h"), true),
        (weekly("Friday", "01:00", "7d"), true),
        (weekly("Friday", "01:00", "8d"), false),
        (weekly("Friday", "01:00", "1y"), false),
    ] {
        let windows = [window];
        let checked = Calendar::new(&windows, &[], Tz::Europe__Stockholm, Zones::built_in()).check(now);
        assert_eq!(checked.is_ok(), closes, "{windows:?}: {checked:?}");
    }
    // A week of 25 hours a day ends.
    let week = [window(json!({
        "days-of-week": EVERY_DAY, "start-time": "00:00", "duration": "25h",
        "not-before": "2030-01-01", "not-after": "2030-01-07",
    }))];
    assert_eq!(Calendar::new(&week, &[], Tz::UTC, Zones::built_in()).check(now), Ok(()));
    assert_eq!(list(&week, &[], Tz::UTC, "2026-01-01T00:00:00Z", 2), ["01-01 Tue 00:00 - 01-08 Tue 01:00"]);
}

/// Fifty windows that overlap for two hundred days: the start found from within is the one found from before.
#[test]
fn searching_back_costs_no_more_than_ahead() {
    let windows: Vec<Window> = (0..50)
        .map(|minute| {
            window(json!({
                "cron": format!("0 {minute} */6 * * *"), "duration": "7h",
                "not-before": "2030-01-01", "not-after": "2030-07-19",
            }))
        })
        .collect();
    let calendar = Calendar::new(&windows, &[], Tz::Europe__Stockholm, Zones::built_in());
    let before = at("2029-12-01T00:00:00Z");
    assert_eq!(calendar.check(before), Ok(()));
    let ahead = calendar.next(before).unwrap().unwrap();
    assert!(ahead.end - ahead.start > TimeDelta::days(199), "{ahead:?}");
    for days in [1, 20, 100, 180, 199] {
        let within = ahead.start + TimeDelta::days(days);
        assert_eq!(calendar.containing(within), Ok(Some(ahead)), "{within}");
    }
}

/// Also when a schedule leaves out years.
#[test]
fn previous_start_inverts_next_start() {
    let weekly = [weekly("Friday, Monday", "01:00", "4h"), weekly(EVERY_DAY, "00:00", "1h")];
    let cron = [
        "@daily",
        "0 0 1 29 2 *",
        "7 */20 * * * *",
        "30 59 23 31 * *",
        "0 0 12 * 3,10 Sun-Mon",
        "0 15 4 31 12 ? 2020",
        "0 0 0 1-7 4 Mon 2000-2060/7",
        "59 59 23 * 2 * 2100",
    ];
    let cron = cron.map(|cron| window(json!({ "cron": cron, "duration": "1h" })));
    let dated = window(json!({
        "cron": "0 30 2 * * *", "duration": "1h", "not-before": "2024-02-29", "not-after": "2025-01-01",
    }));
    let (first, last) = (at("1969-12-31T23:59:59Z"), at("2101-01-01T00:00:00Z"));
    for window in weekly.iter().chain(&cron).chain([&dated]) {
        let starts = (first.timestamp()..last.timestamp()).step_by(5_000_011);
        let times = starts.map(|seconds| DateTime::from_timestamp(seconds, 0).unwrap().naive_utc());
        let mut before_it = Vec::new();
        for time in times.chain([last.naive_utc()]) {
            let previous = window.previous_start(time);
            let from = previous.map_or(first.naive_utc(), |previous| {
                assert_eq!(window.next_start(previous), Some(previous), "{window:?} {time}");
                assert_eq!(window.previous_start(previous + TimeDelta::seconds(1)), Some(previous));
                previous + TimeDelta::seconds(1)
            });
            assert!(window.next_start(from).is_none_or(|next| next >= time), "{window:?} {time}");
            before_it.extend(previous);
        }
        assert!(before_it.is_sorted() && !before_it.is_empty(), "{window:?}");
    }
}

#[test]
fn never_open_windows_end_the_search() {
    let windows = [weekly(EVERY_DAY, "00:00", "24h")];
    let calendar = Calendar::new(&windows, &windows, Tz::Asia__Tokyo, Zones::built_in());
    let now = at("2026-11-20T00:00:00Z");
    assert_eq!(calendar.containing(now), Ok(None));
    assert_eq!(calendar.next(now), Ok(None));
    assert_eq!(calendar.check(now), Ok(()));
    let minutes = [window(json!({"cron": "0 * * * * *", "duration": "30s"}))];
    assert_eq!(Calendar::new(&minutes, &[], Tz::UTC, Zones::built_in()).check(now), Ok(()));
}

#[test]
fn extreme_times_do_not_panic() {
    let windows = [
        weekly(EVERY_DAY, "00:00", "24h"),
        window(json!({"cron": "@daily", "duration": "366d", "dst": "wall-clock"})),
    ];
    for at in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        for windows in [&windows[..1], &windows[1..]] {
            let calendar = Calendar::new(windows, windows, Tz::Pacific__Apia, Zones::built_in());
            assert!(!matches!(calendar.containing(at), Ok(Some(_))));
            assert!(!matches!(calendar.occurrences(at).next(), Some(Ok(_))));
            let _ = calendar.check(at);
        }
    }
}
