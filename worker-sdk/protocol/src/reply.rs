//! Replies of a worker to commands.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::parse_bounded;
use crate::limits::{REPLY_BYTES_MAX, bounded_message};
use crate::{Action, ParseError};

const DONE: &str = "done";
const REBOOT_REQUIRED: &str = "reboot-required";
/// How an error begins that says that the host is not healthy after its reboot.
const UNHEALTHY: &str = "unhealthy: ";

/// The outcome of a command, in the `result` field of its reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Outcome {
    Done,
    /// `reboot-required`; it has this meaning only in a reply to `upgrade`.
    RebootRequired,
    /// Any other text: the error message, at most 4 KiB.
    Error(String),
}

impl Outcome {
    /// A failure with `message`, changed where it could be mistaken for success.
    pub fn error(message: &str) -> Self {
        let message = message.trim();
        let reads_as_success = [DONE, REBOOT_REQUIRED].iter().any(|word| message.eq_ignore_ascii_case(word));
        if message.is_empty() {
            Self::Error("failed without a message".to_owned())
        } else if reads_as_success {
            Self::Error(format!("error: {message}"))
        } else {
            Self::Error(bounded_message(message))
        }
    }

    /// The host has rebooted, and is not healthy: why.
    pub fn unhealthy(message: &str) -> Self {
        Self::error(&format!("{UNHEALTHY}{}", Self::error(message).as_str()))
    }

    /// Why the host is not healthy after its reboot, if that is what this says.
    pub fn why_unhealthy(&self) -> Option<&str> {
        match self {
            Self::Error(message) => message.strip_prefix(UNHEALTHY),
            Self::Done | Self::RebootRequired => None,
        }
    }

    /// The text on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Done => DONE,
            Self::RebootRequired => REBOOT_REQUIRED,
            Self::Error(message) => message,
        }
    }
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        match text.as_str() {
            DONE => Self::Done,
            REBOOT_REQUIRED => Self::RebootRequired,
            _ => Self::error(&text),
        }
    }
}

impl From<Outcome> for String {
    fn from(outcome: Outcome) -> Self {
        outcome.as_str().to_owned()
    }
}

/// A reply as sent: `{"action":"upgrade","result":"done"}`. The host is the last token of the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The requested action.
    pub action: Action,
    /// Its outcome.
    pub result: Outcome,
}

/// A reply whose result may be anything.
#[derive(Deserialize)]
struct Claimed {
    action: Action,
    #[serde(default)]
    result: Option<Value>,
}

impl Reply {
    /// Reads a reply that conforms to the protocol from a message's payload.
    ///
    /// # Errors
    /// The payload is larger than [`REPLY_BYTES_MAX`] or not a reply of this protocol.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        parse_bounded(payload, REPLY_BYTES_MAX)
    }

    /// Reads a reply as the orchestrator takes it: every result other than the words of success is an error message, so
    /// one that is missing or no text is an error too.
    ///
    /// # Errors
    /// The payload is larger than [`REPLY_BYTES_MAX`], is not a JSON object, or has no action of this protocol.
    pub fn parse_any_result(payload: &[u8]) -> Result<Self, ParseError> {
        let Claimed { action, result } = parse_bounded(payload, REPLY_BYTES_MAX)?;
        let result = match result {
            Some(Value::String(text)) => Outcome::from(text),
            Some(other) => Outcome::error(&format!("the reply's result is not a text: {other}")),
            None => Outcome::error("the reply has no result"),
        };
        Ok(Self { action, result })
    }

    /// The payload of this reply.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a reply has string keys and no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MESSAGE_BYTES_MAX;

    /// The payloads of the specification, key by key.
    #[test]
    fn failed_health_checks_are_told_from_other_errors() {
        let unhealthy = Outcome::unhealthy("a unit has failed");
        assert_eq!(unhealthy.as_str(), "unhealthy: a unit has failed");
        assert_eq!(Outcome::from(String::from(unhealthy)).why_unhealthy(), Some("a unit has failed"));
        assert_eq!(Outcome::unhealthy(" ").why_unhealthy(), Some("failed without a message"));
        assert!(Outcome::unhealthy(&"x".repeat(5000)).as_str().len() <= MESSAGE_BYTES_MAX);
        assert_eq!(Outcome::error("it is unhealthy: no").why_unhealthy(), None);
        assert_eq!(Outcome::Done.why_unhealthy(), None);
    }

    #[test]
    fn specification_replies_round_trip() {
        for (json, action, result) in [
            (r#"{"action":"prepare","result":"done"}"#, Action::Prepare, Outcome::Done),
            (r#"{"action":"upgrade","result":"done"}"#, Action::Upgrade, Outcome::Done),
            (r#"{"action":"upgrade","result":"reboot-required"}"#, Action::Upgrade, Outcome::RebootRequired),
            (r#"{"action":"reboot","result":"done"}"#, Action::Reboot, Outcome::Done),
            (
                r#"{"action":"reboot","result":"no space left"}"#,
                Action::Reboot,
                Outcome::Error("no space left".to_owned()),
            ),
        ] {
            let reply = Reply { action, result };
            assert_eq!(Reply::parse(json.as_bytes()).unwrap(), reply);
            assert_eq!(String::from_utf8(reply.to_payload()).unwrap(), json);
        }
    }

    #[test]
    fn errors_never_read_as_success() {
        for text in ["done", "Done", " reboot-required\n", "", "  "] {
            let outcome = Outcome::error(text);
            assert!(matches!(Outcome::from(String::from(outcome.clone())), Outcome::Error(_)), "{text:?}");
            assert!(matches!(outcome, Outcome::Error(message) if !message.is_empty()), "{text:?}");
        }
        assert_eq!(Outcome::error(&"x".repeat(5000)).as_str().len(), MESSAGE_BYTES_MAX);
    }

    #[test]
    fn malformed_replies_are_rejected() {
        for json in [
            "",
            "null",
            "{}",
            r#"{"action":"prepare"}"#,
            r#"{"action":"prepare","result":1}"#,
            r#"["upgrade","done"]"#,
        ] {
            assert!(matches!(Reply::parse(json.as_bytes()), Err(ParseError::Json(_))), "{json}");
        }
        assert!(matches!(Reply::parse(&vec![b'x'; 1 << 20]), Err(ParseError::TooLarge { .. })));
        assert!(matches!(Reply::parse_any_result(&vec![b'x'; 1 << 20]), Err(ParseError::TooLarge { .. })));
        let extra = r#"{"action":"prepare","result":"done","took":3}"#;
        assert!(Reply::parse(extra.as_bytes()).is_ok());
    }

    #[test]
    fn any_other_result_is_an_error() {
        let error = |message: &str| Outcome::Error(message.to_owned());
        for (json, result) in [
            (r#"{"action":"upgrade","result":"done"}"#, Outcome::Done),
            (r#"{"action":"upgrade","result":"reboot-required"}"#, Outcome::RebootRequired),
            (r#"{"action":"upgrade","result":"no space left"}"#, error("no space left")),
            (r#"{"action":"upgrade"}"#, error("the reply has no result")),
            (r#"{"action":"upgrade","result":null}"#, error("the reply has no result")),
            (r#"{"action":"upgrade","result":0}"#, error("the reply's result is not a text: 0")),
            (r#"{"action":"upgrade","result":true}"#, error("the reply's result is not a text: true")),
            (
                r#"{"action":"upgrade","result":{"code": 1}}"#,
                error(r#"the reply's result is not a text: {"code":1}"#),
            ),
            (
                r#"{"action":"upgrade","result":["done"]}"#,
                error(r#"the reply's result is not a text: ["done"]"#),
            ),
        ] {
            let reply = Reply { action: Action::Upgrade, result };
            assert_eq!(Reply::parse_any_result(json.as_bytes()).unwrap(), reply, "{json}");
        }
        for json in
            ["", "null", "{}", r#"{"result":"done"}"#, r#"{"action":"explode"}"#, r#"["upgrade","done"]"#]
        {
            assert!(matches!(Reply::parse_any_result(json.as_bytes()), Err(ParseError::Json(_))), "{json}");
        }
        let long = format!(r#"{{"action":"upgrade","result":["{}"]}}"#, "x".repeat(5_000));
        let Outcome::Error(message) = Reply::parse_any_result(long.as_bytes()).unwrap().result else {
            panic!()
        };
        assert_eq!(message.len(), MESSAGE_BYTES_MAX);
    }
}
