//! The zone in which times are shown.

use chrono::{DateTime, Local, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use os_upgrade_shell::text::sanitized;

/// The zone in which times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// That of this machine, or of the variable `TZ`.
    Local,
    /// UTC.
    Utc,
}

impl Zone {
    /// An RFC 3339 time in this zone, in whole seconds. A text that is no time stays as it is, but for characters that could
    /// affect a terminal.
    pub(crate) fn time(self, text: &str) -> String {
        DateTime::parse_from_rfc3339(text).map_or_else(|_| sanitized(text), |time| self.show(time.to_utc()))
    }

    /// `text`, which an instance has written, with its times in this zone: those that it has in UTC and whole seconds.
    pub(crate) fn times_in(self, text: &str) -> String {
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

    /// A time that may be absent; `-` stands for that.
    pub(crate) fn time_or_dash(self, text: Option<&str>) -> String {
        text.map_or_else(|| "-".to_owned(), |text| self.time(text))
    }

    /// `time` in this zone, in RFC 3339 with whole seconds.
    pub(crate) fn show(self, time: DateTime<Utc>) -> String {
        match self {
            Self::Local => time.with_timezone(&Local).to_rfc3339_opts(SecondsFormat::Secs, true),
            Self::Utc => time.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }

    /// The moment that `text` means: an RFC 3339 time, or the beginning of a day, `YYYY-MM-DD`, in this zone.
    pub(crate) fn parse(self, text: &str) -> Option<DateTime<Utc>> {
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Some(time.to_utc());
        }
        let day = text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN);
        match self {
            // Where the clock skips midnight, the day begins later.
            Self::Local => (0..24)
                .find_map(|hour| (day + TimeDelta::hours(hour)).and_local_timezone(Local).earliest())
                .map(|time| time.to_utc()),
            Self::Utc => Some(day.and_utc()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_moments() {
        let parse = |text| Zone::Utc.parse(text).map(|time| Zone::Utc.show(time));
        assert_eq!(parse("2026-11-21").as_deref(), Some("2026-11-21T00:00:00Z"));
        assert_eq!(parse("2026-11-21T02:00:00+01:00").as_deref(), Some("2026-11-21T01:00:00Z"));
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn times_are_shown_in_whole_seconds() {
        assert_eq!(Zone::Utc.time("2026-11-21T02:00:00.120+01:00"), "2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time("soon"), "soon");
        assert_eq!(Zone::Utc.time_or_dash(None), "-");
        let local = Zone::Local.time("2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time(&local), "2026-11-21T01:00:00Z", "{local}");
    }
}
