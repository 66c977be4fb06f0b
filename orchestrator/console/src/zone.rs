//! Times in the zone in which they are shown, and the time between two.

use chrono::{DateTime, Local, SecondsFormat, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::text::sanitized;

/// The zone in which times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// That of this machine, or of the variable `TZ`.
    Local,
    /// UTC.
    Utc,
}

impl Zone {
    /// An RFC 3339 time in this zone, in whole seconds. A text that is no time stays as it is, but for characters that could
    /// affect a terminal.
    pub fn time(self, text: &str) -> String {
        DateTime::parse_from_rfc3339(text).map_or_else(|_| sanitized(text), |time| self.show(time.to_utc()))
    }

    /// A time of a body in this zone.
    pub fn stamp(self, Stamp(time): Stamp) -> String {
        self.show(time)
    }

    /// A time, or what stands in its place.
    pub fn stamp_or(self, time: Option<Stamp>, otherwise: &str) -> String {
        time.map_or_else(|| otherwise.to_owned(), |time| self.stamp(time))
    }

    /// A time that may be absent; `-` stands for that.
    pub fn stamp_or_dash(self, time: Option<Stamp>) -> String {
        self.stamp_or(time, "-")
    }

    /// `text`, which an instance has written, with its times in this zone: those that it has in UTC and whole seconds.
    pub fn times_in(self, text: &str) -> String {
        const LENGTH: usize = "2026-11-21T01:00:00Z".len();
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(end) = rest.find('Z').map(|at| at + 1) {
            let (head, tail) = rest.split_at(end);
            let begin = end.checked_sub(LENGTH).filter(|begin| head.is_char_boundary(*begin));
            let (before, time) = head.split_at(begin.unwrap_or(end));
            shown.extend([before, &self.time(time)]);
            rest = tail;
        }
        shown + rest
    }

    /// `time` in this zone, in RFC 3339 with whole seconds.
    pub fn show(self, time: DateTime<Utc>) -> String {
        match self {
            Self::Local => time.with_timezone(&Local).to_rfc3339_opts(SecondsFormat::Secs, true),
            Self::Utc => time.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }
}

/// The time from `start` to `end` in whole seconds, and zero if it is negative.
pub fn span(start: DateTime<Utc>, end: DateTime<Utc>) -> String {
    let seconds = u64::try_from((end - start).num_seconds()).unwrap_or(0);
    Duration::from_secs(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_whole_seconds() {
        assert_eq!(Zone::Utc.time("2026-11-21T02:00:00.120+01:00"), "2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time("soon"), "soon");
        assert_eq!(Zone::Utc.stamp_or_dash(None), "-");
        let local = Zone::Local.time("2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time(&local), "2026-11-21T01:00:00Z", "{local}");
    }
}
