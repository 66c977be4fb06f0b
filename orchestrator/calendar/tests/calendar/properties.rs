//! Properties of all windows at all times.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Occurrence, Window, Zones};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const ZONES: [&str; 6] =
    ["site-local", "UTC", "Europe/Stockholm", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo"];

const SCHEDULES: [&str; 4] = ["@daily", "0 0 1 29 2 *", "7 */20 * * * *", "0 30 2 * 3,10 Sun"];

const DURATIONS: [&str; 8] = ["1s", "20m", "1h", "4h", "24h", "25h", "7d", "366d"];

fn window() -> impl Strategy<Value = Window> {
    let weekly = (subsequence(DAYS.to_vec(), 1..=7).prop_shuffle(), 0..24_u32, 0..60_u32).prop_map(
        |(days, hour, minute)| json!({"days-of-week": days.join(", "), "start-time": format!("{hour:02}:{minute:02}")}),
    );
    let cron = select(&SCHEDULES[..]).prop_map(|schedule| json!({ "cron": schedule }));
    let date = || option::weighted(0.2, (1_969..10_000_i32, 1..=12_u32, 1..=28_u32));
    let rest = (select(&ZONES[..]), select(&DURATIONS[..]), date(), date(), any::<bool>());
    (prop_oneof![3 => weekly, 1 => cron], rest).prop_filter_map("no window", |(mut json, rest)| {
        let (zone, duration, first, last, wall_clock) = rest;
        let text = |(year, month, day): (i32, u32, u32)| format!("{year:04}-{month:02}-{day:02}");
        json["timezone"] = json!(zone);
        json["duration"] = json!(duration);
        if let Some(first) = first {
            json["not-before"] = json!(text(first));
        }
        if let Some(last) = last {
            json["not-after"] = json!(text(last));
        }
        if wall_clock {
            json["dst"] = json!("wall-clock");
        }
        serde_json::from_value(json).ok()
    })
}

fn zone() -> impl Strategy<Value = Tz> {
    select(vec![Tz::UTC, Tz::Europe__Stockholm, Tz::Pacific__Apia, Tz::Africa__Casablanca])
}

/// Mostly a time at which there are windows.
fn time() -> impl Strategy<Value = DateTime<Utc>> {
    let all = DateTime::<Utc>::MIN_UTC.timestamp()..=DateTime::<Utc>::MAX_UTC.timestamp();
    let seconds = prop_oneof![1 => all, 9 => 0..4_200_000_000_i64];
    (seconds, 0..1_000_000_000_u32)
        .prop_map(|(seconds, nanos)| DateTime::from_timestamp(seconds, nanos).expect("within the bounds"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queries_agree(
        maintenance in vec(window(), 0..4), deny in vec(window(), 0..3), site in zone(), from in time(),
    ) {
        let calendar = Calendar::new(&maintenance, &deny, site, Zones::built_in());
        let denied = Calendar::new(&deny, &[], site, Zones::built_in());
        let found: Vec<_> = calendar.occurrences(from).take(6).collect();
        let list: Vec<_> = found.iter().copied().map_while(Result::ok).collect();
        prop_assert!(found.len() <= list.len() + 1, "an error is the last");
        let error = found.last().copied().and_then(Result::err);
        // An error is hidden only by an answer before it.
        let expected = |answer: Option<_>| match error {
            Some(error) if answer.is_none() => Err(error),
            _ => Ok(answer),
        };
        let instant = TimeDelta::nanoseconds(1);
        prop_assert!(list.first().is_none_or(|first| first.end > from));
        let under_way = |first: &Occurrence| first.start <= from;
        prop_assert_eq!(
            calendar.containing(from), expected(list.first().copied()).map(|first| first.filter(under_way)),
        );
        prop_assert_eq!(
            calendar.next(from), expected(list.iter().copied().find(|occurrence| occurrence.start > from)),
        );
        for occurrence in &list {
            prop_assert!(occurrence.start < occurrence.end);
            for at in [occurrence.start, occurrence.end - instant] {
                prop_assert_eq!(calendar.containing(at), Ok(Some(*occurrence)));
                prop_assert!(!matches!(denied.containing(at), Ok(Some(_))));
            }
            if let Ok(Some(next_denied)) = denied.next(occurrence.start) {
                prop_assert!(occurrence.end <= next_denied.start);
            }
        }
        for pair in list.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start);
            prop_assert_eq!(calendar.next(pair[0].start), Ok(Some(pair[1])));
            prop_assert_ne!(calendar.containing(pair[0].end), Ok(Some(pair[0])));
        }
    }

    #[test]
    fn every_window_round_trips(window in window()) {
        let json = serde_json::to_string(&window).unwrap();
        let again: Window = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), json);
        prop_assert_eq!(again, window);
    }

    #[test]
    fn no_time_panics(windows in vec(window(), 0..3), site in zone(), at in time()) {
        for (maintenance, deny) in [(&windows[..], &[][..]), (&windows[..], &windows[..])] {
            let calendar = Calendar::new(maintenance, deny, site, Zones::built_in());
            prop_assert!(maintenance != deny || !matches!(calendar.containing(at), Ok(Some(_))));
            let _ = (calendar.next(at), calendar.check(at));
        }
    }
}
