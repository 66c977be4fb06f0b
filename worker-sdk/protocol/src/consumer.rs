//! Consumer requests: a worker whose credentials do not let it create its own consumer requests one from the
//! orchestrator. Such a worker must not create consumers, because their creator chooses the subject that messages are
//! delivered to, which could be any subject of the orchestrator's account.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{MESSAGE_BYTES_MAX, bounded_message};

/// How long a delivered command may go without an acknowledgement or a progress signal before it is delivered again,
/// unless the request sets another time.
pub const ACK_WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// The longest acknowledgement wait that is granted.
pub const ACK_WAIT_MAX: Duration = Duration::from_hours(1);
/// The result of a successful request.
const DONE: &str = "done";

/// Requests a consumer for the host in the subject; an existing one is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConsumerRequest {
    /// The stream sequence of the first command to deliver; when absent, delivery starts with the host's last command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NonZeroU64>,
    /// The acknowledgement wait, in seconds; [`ACK_WAIT_DEFAULT`] when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_wait_secs: Option<NonZeroU64>,
}

impl ConsumerRequest {
    /// Reads a request; an empty payload means the defaults.
    ///
    /// # Errors
    /// The payload is too large or not the JSON of a request.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        if payload.is_empty() {
            return Ok(Self::default());
        }
        parse_bounded(payload, MESSAGE_BYTES_MAX)
    }

    /// The payload of this request.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers are JSON")
    }

    /// The acknowledgement wait, at most [`ACK_WAIT_MAX`].
    pub fn ack_wait(&self) -> Duration {
        let asked = self.ack_wait_secs.map(|seconds| Duration::from_secs(seconds.get()));
        asked.unwrap_or(ACK_WAIT_DEFAULT).min(ACK_WAIT_MAX)
    }
}

/// The outcome of a [`ConsumerRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerAnswer {
    /// `done`, or the error message.
    pub result: String,
}

impl ConsumerAnswer {
    /// The answer with this result.
    pub fn new(result: Result<(), String>) -> Self {
        Self { result: result.err().map_or_else(|| DONE.to_owned(), |error| bounded_message(&error)) }
    }

    /// Reads an answer from a message's payload.
    ///
    /// # Errors
    /// The payload is not an answer.
    pub fn parse(payload: &[u8]) -> Result<Self, String> {
        // An ellipsis and quotes can make a bounded message slightly longer.
        parse_bounded(payload, 2 * MESSAGE_BYTES_MAX).map_err(|error| error.to_string())
    }

    /// The payload of this answer.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a text is JSON")
    }

    /// The result of the request.
    ///
    /// # Errors
    /// The error message, when the consumer has not been created.
    pub fn into_result(self) -> Result<(), String> {
        if self.result == DONE { Ok(()) } else { Err(self.result) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_match_the_documentation() {
        let request = ConsumerRequest { from: NonZeroU64::new(17), ack_wait_secs: NonZeroU64::new(60) };
        assert_eq!(request.to_payload(), br#"{"from":17,"ack-wait-secs":60}"#);
        assert_eq!(ConsumerRequest::parse(&request.to_payload()).unwrap(), request);
        assert_eq!(ConsumerRequest::parse(b"").unwrap(), ConsumerRequest::default());
        assert_eq!(ConsumerRequest::parse(b"{}").unwrap().ack_wait(), ACK_WAIT_DEFAULT);
        let long = ConsumerRequest::parse(br#"{"ack-wait-secs":999999999999}"#).unwrap();
        assert_eq!(long.ack_wait(), ACK_WAIT_MAX);
        for wrong in ["{", "[]", r#"{"from":0}"#, r#"{"from":-1}"#, r#"{"from":"1"}"#] {
            assert!(ConsumerRequest::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_round_trip() {
        for result in [Ok(()), Err("no such stream".to_owned())] {
            let answer = ConsumerAnswer::new(result.clone());
            assert_eq!(ConsumerAnswer::parse(&answer.to_payload()).unwrap().into_result(), result);
        }
    }
}
