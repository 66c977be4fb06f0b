//! What a FleetLock server's answer means. How it comes here is the client's business.

use os_upgrade_kernel::LockOutcome;
use os_upgrade_protocol::json;
use os_upgrade_protocol::limits::bounded_message;
use serde::Deserialize;

/// How much of an answer's body is read, in bytes. One that has more is handed in with more than this.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much of a body that is not FleetLock's is quoted, in characters.
const EXCERPT_CHARS_MAX: usize = 200;

/// An answer over HTTP, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HttpAnswer<'a> {
    /// Its status.
    pub status: u16,
    /// Where it redirects to, if it does.
    pub location: Option<&'a [u8]>,
    /// Its body; only that of an error, 400 to 599, is of any interest.
    pub body: &'a [u8],
}

/// The body that FleetLock gives errors.
#[derive(Deserialize)]
struct Refusal {
    kind: String,
    value: String,
}

/// What `answer` means. 200 alone grants, whatever its body; an error with a FleetLock body is a no; anything else is
/// not FleetLock's.
pub fn read_answer(answer: &HttpAnswer<'_>) -> LockOutcome {
    let HttpAnswer { status, location, body } = *answer;
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

fn read_error(status: u16, body: &[u8]) -> LockOutcome {
    if body.len() > ANSWER_BYTES_MAX {
        return protocol(&format!("status {status}: a body of more than {ANSWER_BYTES_MAX} bytes"));
    }
    if body.is_empty() {
        return protocol(&format!("status {status}: no body"));
    }
    match json::object::<Refusal>(body) {
        Ok(Refusal { kind, value }) if !kind.is_empty() => {
            LockOutcome::Denied { lock_kind: bounded_message(&kind), value: bounded_message(&value) }
        }
        Ok(_) | Err(_) => protocol(&format!("status {status}: not a FleetLock error: {}", excerpt(body))),
    }
}

fn protocol(detail: &str) -> LockOutcome {
    LockOutcome::Protocol { detail: bounded_message(detail) }
}

/// The beginning of `bytes` on one line.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = line.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character });
    plain.take(EXCERPT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &[u8]) -> LockOutcome {
        read_answer(&HttpAnswer { status, location: None, body })
    }

    fn odd(detail: &str) -> LockOutcome {
        LockOutcome::Protocol { detail: detail.to_owned() }
    }

    #[test]
    fn only_200_grants_and_every_other_answer_is_told_apart() {
        let full = br#"{"kind":"failed_lock_semaphore_full","value":"all slots are held","more":1}"#;
        let denied = |kind: &str, value: &str| LockOutcome::Denied {
            lock_kind: kind.to_owned(),
            value: value.to_owned(),
        };
        for body in [&b""[..], full, b"<html>", b"\xff"] {
            assert_eq!(answer(200, body), LockOutcome::Granted);
            for status in [100, 201, 202, 204, 206, 304, 399, 600, 0, u16::MAX] {
                assert_eq!(answer(status, body), odd(&format!("status {status}: only 200 grants")));
            }
        }
        for status in [400, 401, 409, 423, 429, 500, 503, 599] {
            assert_eq!(answer(status, full), denied("failed_lock_semaphore_full", "all slots are held"));
        }
        let not = "status 500: not a FleetLock error: ";
        for (body, expected) in [
            (&br#"{"kind":"","value":"x"}"#[..], odd(&format!(r#"{not}{{"kind":"","value":"x"}}"#))),
            (br#"{"kind":7,"value":"x"}"#, odd(&format!(r#"{not}{{"kind":7,"value":"x"}}"#))),
            (br#"["k","v"]"#, odd(&format!(r#"{not}["k","v"]"#))),
            (br#"{"kind":"k"}"#, odd(&format!(r#"{not}{{"kind":"k"}}"#))),
            (
                b"<html>\n  <b>log in</b>\x07</html>",
                odd(&format!("{not}<html> <b>log in</b>\u{fffd}</html>")),
            ),
            (b"", odd("status 500: no body")),
            (&vec![b' '; ANSWER_BYTES_MAX + 1], odd("status 500: a body of more than 65536 bytes")),
        ] {
            assert_eq!(answer(500, body), expected);
        }
        let moved = HttpAnswer { status: 302, location: Some(b"/login\n"), body: full };
        assert_eq!(read_answer(&moved), odd("status 302: redirect to /login not followed"));
    }

    #[test]
    fn nothing_but_200_grants() {
        for status in 0..=u16::MAX {
            for body in [&b""[..], br#"{"kind":"k","value":"granted"}"#] {
                let granted =
                    read_answer(&HttpAnswer { status, location: Some(b"/"), body }) == LockOutcome::Granted;
                assert_eq!(granted, status == 200, "{status}");
            }
        }
    }
}
