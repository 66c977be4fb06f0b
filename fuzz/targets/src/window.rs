//! Maintenance windows and their occurrences.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::{Calendar, Window, Zones};

use crate::text::{is_object, split};

/// A line with a time in seconds since 1970, then a window.
pub fn window(data: &[u8]) {
    let [time, json] = split(data, b'\n');
    let seconds = str::from_utf8(time).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let at = DateTime::<Utc>::from_timestamp(seconds, 0).unwrap_or_default();
    let window: Window = match serde_json::from_slice(json) {
        Ok(window) => window,
        Err(problem) => return assert!(!problem.to_string().is_empty()),
    };
    assert!(is_object(json));
    let json = serde_json::to_vec(&window).expect("a window is written");
    assert_eq!(serde_json::from_slice::<Window>(&json).expect("a written window is read back"), window);

    let windows = [window];
    let calendar = Calendar::new(&windows, &[], chrono_tz::Tz::Pacific__Apia, Zones::built_in());
    let _ = calendar.check(at);
    let found: Vec<_> = calendar.occurrences(at).take(3).collect();
    let list: Vec<_> = found.iter().copied().map_while(Result::ok).collect();
    assert!(found.len() <= list.len() + 1, "nothing follows an error");
    let error = found.last().copied().and_then(Result::err);
    let expected = |occurrence| match (occurrence, error) {
        (None, Some(error)) => Err(error),
        (found, _) => Ok(found),
    };
    let containing = expected(list.first().copied());
    assert_eq!(calendar.containing(at), containing.map(|first| first.filter(|first| first.start <= at)));
    let next = list.iter().copied().find(|occurrence| occurrence.start > at);
    assert_eq!(calendar.next(at), expected(next));
    assert!(list.iter().all(|occurrence| occurrence.start < occurrence.end && occurrence.end > at));
    assert!(list.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let denied = Calendar::new(&windows, &windows, chrono_tz::Tz::UTC, Zones::built_in()).containing(at);
    assert!(!matches!(denied, Ok(Some(_))), "{denied:?}");
}
