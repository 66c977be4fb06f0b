//! The zone in which times are shown.

use chrono::{DateTime, Local, SecondsFormat, Utc};

/// The zone in which times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// That of this machine, or of the variable `TZ`.
    Local,
    /// UTC.
    Utc,
}

impl Zone {
    /// An RFC 3339 time in this zone, in whole seconds. A text that is no time stays as it is.
    pub(crate) fn time(self, text: &str) -> String {
        DateTime::parse_from_rfc3339(text).map_or_else(|_| text.to_owned(), |time| self.show(time.to_utc()))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_whole_seconds() {
        assert_eq!(Zone::Utc.time("2026-11-21T02:00:00.120+01:00"), "2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time("soon"), "soon");
        assert_eq!(Zone::Utc.time_or_dash(None), "-");
        let local = Zone::Local.time("2026-11-21T01:00:00Z");
        assert_eq!(Zone::Utc.time(&local), "2026-11-21T01:00:00Z", "{local}");
    }
}
