//! Files of time zones.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Rules, Window, ZoneSource, Zones};
use os_upgrade_zones::tzif;

/// A file of a zone, by whose rules a window's occurrences are then in order.
pub fn zone_file(data: &[u8]) {
    let offsets = match tzif::offsets("Europe/Stockholm", data) {
        Ok(offsets) => offsets,
        Err(problem) => return assert!(!problem.to_string().is_empty()),
    };
    let offsets = HashMap::from([(Tz::Europe__Stockholm, offsets)]);
    let zones = Zones::new(Rules { source: ZoneSource::System, version: None, passed_over: None, offsets });
    let windows: [Window; 1] =
        [serde_json::from_str(r#"{"cron": "@daily", "duration": "1h"}"#).expect("a window")];
    let from = DateTime::<Utc>::from_timestamp(1_700_000_000, 0).expect("a time");
    let found: Vec<_> = Calendar::new(&windows, &[], Tz::Europe__Stockholm, &zones)
        .occurrences(from)
        .take(20)
        .map_while(Result::ok)
        .collect();
    assert!(found.iter().all(|occurrence| occurrence.start < occurrence.end && occurrence.end > from));
    assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
}
