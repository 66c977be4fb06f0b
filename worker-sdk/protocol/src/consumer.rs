//! Requests for a consumer: a worker whose credentials do not let it make its own asks the orchestrator for it. To make
//! a consumer means to say where its messages go, which could be anywhere in the orchestrator's account.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{MESSAGE_BYTES_MAX, bounded_message};

/// How long a delivered command may be without a sign of life before it comes again, unless the request says so.
pub const ACK_WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// The longest such time that is granted.
pub const ACK_WAIT_MAX: Duration = Duration::from_hours(1);
/// The result of a request that has been done.
const DONE: &str = "done";

/// Asks for the consumer of the subject's host, in place of any that is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConsumerRequest {
    /// The stream sequence of the first command to deliver; when absent, the host's last command and what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NonZeroU64>,
    /// See [`ACK_WAIT_DEFAULT`], in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_wait_secs: Option<NonZeroU64>,
}

impl ConsumerRequest {
    /// Reads a request; an empty payload asks for nothing special.
    ///
    /// # Errors
    /// It is too large, or not such JSON.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        if payload.is_empty() {
            return Ok(Self::default());
        }
        parse_bounded(payload, MESSAGE_BYTES_MAX)
    }

    /// The request as it is sent.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers are JSON")
    }

    /// The acknowledgement wait, within its bounds.
    pub fn ack_wait(&self) -> Duration {
        let asked = self.ack_wait_secs.map(|seconds| Duration::from_secs(seconds.get()));
        asked.unwrap_or(ACK_WAIT_DEFAULT).min(ACK_WAIT_MAX)
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerAnswer {
    /// `done`, or what went wrong.
    pub result: String,
}

impl ConsumerAnswer {
    /// The answer that says `result`.
    pub fn new(result: Result<(), String>) -> Self {
        Self { result: result.err().map_or_else(|| DONE.to_owned(), |error| bounded_message(&error)) }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(payload: &[u8]) -> Result<Self, String> {
        // An ellipsis and quotes may make a bounded message somewhat longer.
        parse_bounded(payload, 2 * MESSAGE_BYTES_MAX).map_err(|error| error.to_string())
    }

    /// The answer as it is sent.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a text is JSON")
    }

    /// The result.
    ///
    /// # Errors
    /// It has not been done.
    pub fn into_result(self) -> Result<(), String> {
        if self.result == DONE { Ok(()) } else { Err(self.result) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_as_documented() {
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
