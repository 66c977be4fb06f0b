//! `Retry-After`: how long a server does not want to be asked.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The pause that a `Retry-After` asks for, in seconds or until a date; at most `max`. A date is compared with the
/// server's own `Date`, or with `now`, when the answer arrived.
pub fn read_retry_after(
    value: &[u8],
    date: Option<&[u8]>,
    now: DateTime<Utc>,
    max: Duration,
) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?.trim();
    let pause = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // What does not fit into 64 bits is more than the maximum.
        text.parse().map_or(max, Duration::from_secs)
    } else {
        let until = http_date(text)?;
        let sent = date.and_then(|date| http_date(str::from_utf8(date).ok()?));
        // The date may be in the past.
        (until - sent.unwrap_or(now)).to_std().unwrap_or_default()
    };
    Some(pause.min(max))
}

/// A date in any of the forms of HTTP.
pub(crate) fn http_date(text: &str) -> Option<DateTime<Utc>> {
    httpdate::parse_http_date(text.trim()).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_has_two_forms_and_a_bound() {
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let date = Some("Sun, 01 Mar 2026 13:00:00 GMT");
        for (text, date, expected) in [
            ("0", None, Some(0)),
            (" 7 ", None, Some(7)),
            ("3600", None, Some(3600)),
            ("3601", None, Some(3600)),
            ("99999999999999999999999", None, Some(3600)),
            ("Sun, 01 Mar 2026 12:00:30 GMT", None, Some(30)),
            ("Sunday, 01-Mar-26 12:00:30 GMT", None, Some(30)),
            ("Sun, 01 Mar 2026 11:00:00 GMT", None, Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", None, Some(3600)),
            ("Sun, 01 Mar 2026 13:00:05 GMT", date, Some(5)),
            ("Sun, 01 Mar 2026 13:00:05 GMT", Some("x"), Some(3600)),
            ("", None, None),
            ("-1", None, None),
            ("1.5", None, None),
            ("soon", None, None),
        ] {
            let pause =
                read_retry_after(text.as_bytes(), date.map(str::as_bytes), now, Duration::from_hours(1));
            assert_eq!(pause, expected.map(Duration::from_secs), "{text}");
        }
        assert_eq!(read_retry_after(b"\xff", None, now, Duration::MAX), None);
    }
}
