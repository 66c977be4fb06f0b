//! The zone in which times are shown.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeDelta, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::text::sanitized;

/// How operators write a moment.
pub(crate) const MOMENTS: &str =
    "today, yesterday, 2h or 3d (ago), 21:02 (today), 2026-11-21 or 2026-11-21T01:00:00Z";

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

    /// A time of a body in this zone.
    pub(crate) fn stamp(self, Stamp(time): Stamp) -> String {
        self.show(time)
    }

    /// A time that may be absent; `-` stands for that.
    pub(crate) fn stamp_or_dash(self, time: Option<Stamp>) -> String {
        time.map_or_else(|| "-".to_owned(), |time| self.stamp(time))
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

    /// `time` in this zone, in RFC 3339 with whole seconds.
    pub(crate) fn show(self, time: DateTime<Utc>) -> String {
        match self {
            Self::Local => time.with_timezone(&Local).to_rfc3339_opts(SecondsFormat::Secs, true),
            Self::Utc => time.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }

    /// The moment that `text` means: see [`MOMENTS`].
    ///
    /// # Errors
    /// It means none.
    pub(crate) fn moment(self, text: &str) -> Result<DateTime<Utc>, String> {
        self.moment_at(text, Utc::now()).ok_or_else(|| format!("{text:?} is no time: write {MOMENTS}"))
    }

    fn moment_at(self, text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let today = match self {
            Self::Local => now.with_timezone(&Local).date_naive(),
            Self::Utc => now.date_naive(),
        };
        match text {
            "now" => return Some(now),
            "today" => return self.local(today.and_time(NaiveTime::MIN)),
            "yesterday" => return self.local(today.pred_opt()?.and_time(NaiveTime::MIN)),
            _ => {}
        }
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Some(time.to_utc());
        }
        if let Ok(day) = text.parse::<NaiveDate>() {
            return self.local(day.and_time(NaiveTime::MIN));
        }
        if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
            return self.local(today.and_time(time));
        }
        let ago: Duration = text.strip_suffix(" ago").unwrap_or(text).parse().ok()?;
        now.checked_sub_signed(ago.to_delta())
    }

    /// The moment at which clocks of this zone show `time`. Where they skip it, the first full hour after it.
    fn local(self, time: NaiveDateTime) -> Option<DateTime<Utc>> {
        match self {
            Self::Local => (0..24)
                .find_map(|hour| (time + TimeDelta::hours(hour)).and_local_timezone(Local).earliest())
                .map(|time| time.to_utc()),
            Self::Utc => Some(time.and_utc()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_moments() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-21", "2026-11-21T00:00:00Z"),
            ("2026-11-21T02:00:00+01:00", "2026-11-21T01:00:00Z"),
            ("now", "2026-11-21T12:00:00Z"),
            ("today", "2026-11-21T00:00:00Z"),
            ("yesterday", "2026-11-20T00:00:00Z"),
            ("21:02", "2026-11-21T21:02:00Z"),
            ("2h", "2026-11-21T10:00:00Z"),
            ("3d ago", "2026-11-18T12:00:00Z"),
        ] {
            assert_eq!(
                Zone::Utc.moment_at(text, now).map(|time| Zone::Utc.show(time)).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for wrong in ["", "soon", "2026-13-01", "25:00", "-2h"] {
            let refused = Zone::Utc.moment(wrong).unwrap_err();
            assert!(refused.contains("is no time: write today"), "{refused}");
        }
    }

    #[test]
    fn times_are_shown_in_whole_seconds() {
        assert_eq!(Zone::Utc.time("2026-11-21T02:00:00.120+01:00"), "2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time("soon"), "soon");
        assert_eq!(Zone::Utc.stamp_or_dash(None), "-");
        let local = Zone::Local.time("2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time(&local), "2026-11-21T01:00:00Z", "{local}");
    }
}
