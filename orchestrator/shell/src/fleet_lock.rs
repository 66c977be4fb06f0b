//! The meaning of a FleetLock server's answer, without its transport.

use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::LockOutcome;
use os_upgrade_protocol::json;
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_protocol::text::one_line;
use serde::Deserialize;

/// The largest body of an answer, in bytes. Of a larger body, the client passes at least one byte more.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest excerpt of an unexpected body, in characters.
const EXCERPT_CHARS_MAX: usize = 200;
/// The longest kind of a refusal that is shown, in characters. Kinds are short words.
const KIND_CHARS_MAX: usize = 100;
/// The longest value of a refusal that is shown, in characters.
const VALUE_CHARS_MAX: usize = 1000;
/// The longest `Retry-After` that is honoured.
pub const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);

/// The relevant parts of an HTTP answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HttpAnswer<'a> {
    pub status: u16,
    /// Its `Location`, if it has one.
    pub location: Option<&'a [u8]>,
    /// Its `Retry-After`, if it has one.
    pub retry_after: Option<&'a [u8]>,
    /// Its `Date`, if it has one.
    pub date: Option<&'a [u8]>,
    /// Its body; it matters only for the statuses 400 to 599.
    pub body: &'a [u8],
}

/// How long a server does not want to be asked, at most [`RETRY_AFTER_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// It does not want the same request again: the slot is not available.
    Slot(Duration),
    /// It wants no requests at all: it is overloaded or out of service.
    Server(Duration),
}

impl RetryAfter {
    /// The duration.
    pub const fn pause(self) -> Duration {
        match self {
            Self::Slot(pause) | Self::Server(pause) => pause,
        }
    }
}

/// `pause` plus a jitter of up to a quarter, chosen by `chance`, so that clients refused together do not retry
/// together.
pub fn with_jitter(pause: Duration, chance: u32) -> Duration {
    const PARTS: u32 = 1024;
    pause.saturating_add(pause / (4 * PARTS) * (chance % PARTS))
}

/// The body of a FleetLock error.
#[derive(Deserialize)]
struct Refusal {
    kind: String,
    value: String,
}

/// Interprets `answer`: only 200 grants, whatever its body; an error with a FleetLock body is a refusal; anything else
/// violates the protocol.
pub fn read_answer(answer: &HttpAnswer<'_>) -> LockOutcome {
    let HttpAnswer { status, location, body, .. } = *answer;
    match status {
        200 => LockOutcome::Granted,
        300..=399 => match location {
            Some(location) => {
                protocol(&format!("status {status}: redirect to {} not followed", excerpt(location)))
            }
            None => protocol(&format!("status {status}: only 200 grants")),
        },
        400..=599 => read_error(status, body),
        _ => protocol(&format!("status {status}: only 200 grants")),
    }
}

/// The `Retry-After` of an answer that grants nothing, if it has one. `now` is when the answer arrived. A date is
/// compared with the server's own `Date`, or with `now` if there is none.
pub fn read_retry_after(answer: &HttpAnswer<'_>, now: DateTime<Utc>) -> Option<RetryAfter> {
    let value = answer.retry_after.filter(|_| answer.status != 200)?;
    let pause = os_upgrade_provider_rules::read_retry_after(value, answer.date, now, RETRY_AFTER_MAX)?;
    let all = matches!(answer.status, 429 | 503);
    Some(if all { RetryAfter::Server(pause) } else { RetryAfter::Slot(pause) })
}

fn read_error(status: u16, body: &[u8]) -> LockOutcome {
    if body.len() > ANSWER_BYTES_MAX {
        return protocol(&format!("status {status}: a body of more than {ANSWER_BYTES_MAX} bytes"));
    }
    if body.is_empty() {
        return protocol(&format!("status {status}: no body"));
    }
    match json::object::<Refusal>(body) {
        Ok(Refusal { kind, value }) if !kind.trim().is_empty() => LockOutcome::Denied {
            lock_kind: one_line(&kind, KIND_CHARS_MAX),
            value: one_line(&value, VALUE_CHARS_MAX),
        },
        Ok(_) | Err(_) => protocol(&format!("status {status}: not a FleetLock error: {}", excerpt(body))),
    }
}

fn protocol(detail: &str) -> LockOutcome {
    LockOutcome::Protocol { detail: bounded_message(detail) }
}

/// The beginning of `bytes` on one line.
fn excerpt(bytes: &[u8]) -> String {
    one_line(&String::from_utf8_lossy(bytes), EXCERPT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &[u8]) -> LockOutcome {
        read_answer(&HttpAnswer { status, body, ..HttpAnswer::default() })
    }

    fn protocol_error(detail: &str) -> LockOutcome {
        LockOutcome::Protocol { detail: detail.to_owned() }
    }

    #[test]
    fn answers_are_classified() {
        let full = br#"{"kind":"failed_lock_semaphore_full","value":"all slots are held","more":1}"#;
        let denied = |kind: &str, value: &str| LockOutcome::Denied {
            lock_kind: kind.to_owned(),
            value: value.to_owned(),
        };
        for body in [&b""[..], full, b"<html>", b"\xff"] {
            assert_eq!(answer(200, body), LockOutcome::Granted);
            for status in [100, 201, 202, 204, 206, 304, 399, 600, 0, u16::MAX] {
                assert_eq!(
                    answer(status, body),
                    protocol_error(&format!("status {status}: only 200 grants"))
                );
            }
        }
        for status in [400, 401, 409, 423, 429, 500, 503, 599] {
            assert_eq!(answer(status, full), denied("failed_lock_semaphore_full", "all slots are held"));
        }
        let not = "status 500: not a FleetLock error: ";
        for (body, expected) in [
            (
                &br#"{"kind":"","value":"x"}"#[..],
                protocol_error(&format!(r#"{not}{{"kind":"","value":"x"}}"#)),
            ),
            (br#"{"kind":7,"value":"x"}"#, protocol_error(&format!(r#"{not}{{"kind":7,"value":"x"}}"#))),
            (br#"["k","v"]"#, protocol_error(&format!(r#"{not}["k","v"]"#))),
            (br#"{"kind":"k"}"#, protocol_error(&format!(r#"{not}{{"kind":"k"}}"#))),
            (
                b"<html>\n  <b>log in</b>\x07</html>",
                protocol_error(&format!("{not}<html> <b>log in</b>\u{fffd}</html>")),
            ),
            (b"", protocol_error("status 500: no body")),
            (
                &vec![b' '; ANSWER_BYTES_MAX + 1],
                protocol_error("status 500: a body of more than 65536 bytes"),
            ),
        ] {
            assert_eq!(answer(500, body), expected);
        }
        let moved =
            HttpAnswer { status: 302, location: Some(b"/login\n"), body: full, ..HttpAnswer::default() };
        assert_eq!(read_answer(&moved), protocol_error("status 302: redirect to /login not followed"));
    }

    #[test]
    fn nothing_but_200_grants() {
        for status in 0..=u16::MAX {
            for body in [&b""[..], br#"{"kind":"k","value":"granted"}"#] {
                let answer = HttpAnswer { status, location: Some(b"/"), body, ..HttpAnswer::default() };
                assert_eq!(read_answer(&answer) == LockOutcome::Granted, status == 200, "{status}");
            }
        }
    }

    #[test]
    fn refusals_are_bounded_to_one_line() {
        let refusal = |kind: &str, value: &str| {
            let body = serde_json::json!({ "kind": kind, "value": value }).to_string();
            let LockOutcome::Denied { lock_kind, value } = answer(409, body.as_bytes()) else {
                panic!("{body}")
            };
            (lock_kind, value)
        };
        let same = |kind: &str, value: &str| (kind.to_owned(), value.to_owned());
        for (kind, value, expected) in [
            ("full", "all held", same("full", "all held")),
            ("a\nb", "held by\r\n  x\t y\u{2028}z", same("a b", "held by x y z")),
            ("\u{1b}[2Jk", "\0\u{7f}\u{9b}", same("\u{fffd}[2Jk", "\u{fffd}\u{fffd}\u{fffd}")),
            ("k", "a\u{202e}b\u{2066}", same("k", "a\u{fffd}b\u{fffd}")),
            ("k", " ", same("k", "")),
            (&"k".repeat(101), &"ä".repeat(1001), same(&("k".repeat(100) + "…"), &("ä".repeat(1000) + "…"))),
        ] {
            assert_eq!(refusal(kind, value), expected, "{kind:?} {value:?}");
        }
        assert_eq!(
            answer(409, br#"{"kind":"\n","value":"v"}"#),
            protocol_error(r#"status 409: not a FleetLock error: {"kind":"\n","value":"v"}"#)
        );
    }

    #[test]
    fn jitter_is_at_most_a_quarter() {
        let pause = Duration::from_secs(4);
        for chance in [0, 1, 512, 1023, 1024, u32::MAX] {
            let drawn = with_jitter(pause, chance);
            assert!(drawn >= pause && drawn <= pause + pause / 4, "{drawn:?}");
        }
        assert_eq!(with_jitter(pause, 1024), pause);
        assert_eq!(with_jitter(Duration::MAX, 1023), Duration::MAX);
    }

    #[test]
    fn retry_after_has_two_forms_and_a_bound() {
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let read = |status, retry_after: &str, date: Option<&str>| {
            let (retry_after, date) = (Some(retry_after.as_bytes()), date.map(str::as_bytes));
            read_retry_after(&HttpAnswer { status, retry_after, date, ..HttpAnswer::default() }, now)
        };
        let seconds = Duration::from_secs;
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("600", Some(600)),
            ("601", Some(600)),
            ("99999999999999999999999", Some(600)),
            ("Sun, 01 Mar 2026 12:00:30 GMT", Some(30)),
            ("Sunday, 01-Mar-26 12:00:30 GMT", Some(30)),
            ("Sun Mar  1 12:00:30 2026", Some(30)),
            ("Sun, 01 Mar 2026 11:00:00 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(600)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("2026-03-01T12:00:30Z", None),
        ] {
            let expected = expected.map(seconds);
            assert_eq!(read(503, text, None), expected.map(RetryAfter::Server), "{text}");
            assert_eq!(read(409, text, None), expected.map(RetryAfter::Slot), "{text}");
            assert_eq!(read(200, text, None), None, "{text}");
        }
        let date = Some("Sun, 01 Mar 2026 13:00:00 GMT");
        let until = "Sun, 01 Mar 2026 13:00:05 GMT";
        assert_eq!(read(429, until, date), Some(RetryAfter::Server(seconds(5))));
        assert_eq!(read(429, until, Some("x")), Some(RetryAfter::Server(seconds(600))));
    }
}
