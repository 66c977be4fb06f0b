//! An answer of the server, and whether it is as expected.

use std::fmt;
use std::time::Duration;

use os_upgrade_protocol::text::one_line;
use os_upgrade_shell::fleet_lock::RetryAfter;
use serde_json::Value;

use super::case::Expected;
use super::names::Names;

/// How much of a body is shown, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// An answer over HTTP.
    Http(Reply),
    /// No answer, for this reason.
    None(String),
}

/// The relevant parts of an answer over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) allow: Option<String>,
    pub(super) retry_after: Option<RetryAfter>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// `kind` and `value`, if the body is an object with both, neither empty.
    fn error(&self) -> Option<(String, String)> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let text = |key: &str| body[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some((text("kind")?, text("value")?))
    }

    fn is(&self, expected: Expected, names: &Names) -> bool {
        let allow = self.status != 405 || self.allow.as_deref() == Some("POST");
        match expected {
            Expected::Granted => {
                self.status == 200
                    && serde_json::from_slice::<Value>(&self.body).is_ok_and(|body| body.is_object())
            }
            Expected::Refused => (400..600).contains(&self.status) && self.error().is_some(),
            Expected::ClientError => (400..500).contains(&self.status) && self.error().is_some(),
            Expected::Status4xx5xx => (400..600).contains(&self.status),
            Expected::Status(status) => self.status == status && allow,
            Expected::Error(status, kind) => {
                self.status == status && allow && self.error().is_some_and(|(found, _)| found == kind)
            }
            Expected::Full => {
                let full = |(kind, value): (String, String)| {
                    kind == "failed_lock_semaphore_full" && names.is_named_in(&value)
                };
                self.status == 409 && self.error().is_some_and(full)
            }
        }
    }
}

impl Answer {
    /// Whether it is as expected.
    pub(super) fn is(&self, expected: Expected, names: &Names) -> bool {
        match self {
            Self::Http(reply) => reply.is(expected, names),
            Self::None(_) => false,
        }
    }

    /// Its status, if there is one.
    pub(super) const fn status(&self) -> Option<u16> {
        match self {
            Self::Http(reply) => Some(reply.status),
            Self::None(_) => None,
        }
    }

    /// How long the server is busy, if it reports that in Retry-After.
    pub(super) const fn pause(&self) -> Option<Duration> {
        match self {
            Self::Http(Reply { retry_after: Some(RetryAfter::Server(pause)), .. }) => Some(*pause),
            Self::Http(_) | Self::None(_) => None,
        }
    }

    /// Whether a client would take it for a grant.
    pub(super) fn is_success(&self) -> bool {
        self.status().is_some_and(|status| (200..300).contains(&status))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reply = match self {
            Self::Http(reply) => reply,
            Self::None(cause) => return write!(f, "no answer: {cause}"),
        };
        write!(f, "{}", reply.status)?;
        if let Some(location) = &reply.location {
            write!(f, " to {}", shown(location))?;
        }
        if reply.status == 405 {
            write!(f, " (allow: {})", reply.allow.as_deref().map(shown).unwrap_or_default())?;
        }
        match reply.error() {
            Some((kind, value)) => write!(f, " {}: {}", shown(&kind), shown(&value)),
            None if reply.body.is_empty() => f.write_str(", no body"),
            None => write!(f, " {}", shown(&String::from_utf8_lossy(&reply.body))),
        }
    }
}

fn shown(text: &str) -> String {
    one_line(text, SHOWN_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() }
    }

    const ERROR: &str = r#"{"kind":"k","value":"v"}"#;

    #[test]
    fn answers_match_expectations() {
        use Expected::{ClientError, Error, Full, Granted, Refused, Status, Status4xx5xx};
        let names = Names::new("default", 0x1234_5678_9abc_def0);
        let full = |id: &str| format!(r#"{{"kind":"failed_lock_semaphore_full","value":"held by {id}"}}"#);
        let all = [Granted, Refused, ClientError, Status4xx5xx, Status(405), Error(400, "k"), Full];
        let post = |allow: &str| Reply { allow: Some(allow.to_owned()), ..reply(405, "") };
        for (reply, expected) in [
            (reply(200, "{}"), vec![Granted]),
            (reply(200, ERROR), vec![Granted]),
            (reply(200, ""), vec![]),
            (reply(200, "[]"), vec![]),
            (reply(200, "<html>"), vec![]),
            (reply(202, "{}"), vec![]),
            (reply(302, ERROR), vec![]),
            (reply(400, ERROR), vec![Refused, ClientError, Status4xx5xx, Error(400, "k")]),
            (reply(400, r#"{"kind":"","value":"v"}"#), vec![Status4xx5xx]),
            (reply(400, r#"{"kind":"k"}"#), vec![Status4xx5xx]),
            (reply(409, &full("conformance-12345678-a")), vec![Refused, ClientError, Status4xx5xx, Full]),
            (reply(409, &full("h01")), vec![Refused, ClientError, Status4xx5xx]),
            (reply(500, ERROR), vec![Refused, Status4xx5xx]),
            (reply(500, "<html>"), vec![Status4xx5xx]),
            (post("POST"), vec![Status4xx5xx, Status(405)]),
            (post("GET"), vec![Status4xx5xx]),
        ] {
            let answer = Answer::Http(reply);
            let matching: Vec<_> = all.into_iter().filter(|one| answer.is(*one, &names)).collect();
            assert_eq!(matching, expected, "{answer}");
        }
        assert!(all.into_iter().all(|one| !Answer::None("timed out".to_owned()).is(one, &names)));
    }

    #[test]
    fn answers_are_shown_on_one_line() {
        let moved = Reply { location: Some("/login".to_owned()), ..reply(302, "") };
        for (answer, expected) in [
            (Answer::None("timed out".to_owned()), "no answer: timed out".to_owned()),
            (Answer::Http(moved), "302 to /login, no body".to_owned()),
            (Answer::Http(reply(400, ERROR)), "400 k: v".to_owned()),
            (Answer::Http(reply(500, "<b>\n\u{1b}[1m </b>")), "500 <b> \u{fffd}[1m </b>".to_owned()),
            (Answer::Http(reply(500, &"x".repeat(200))), format!("500 {}…", "x".repeat(120))),
        ] {
            assert_eq!(answer.to_string(), expected);
        }
    }
}
