//! Progress of a host with the command under way.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{PROGRESS_BYTES_MAX, PROGRESS_TEXT_BYTES_MAX, bounded};

/// A progress message as sent: `{"command":17,"percent":40,"text":"unpacking linux-image-amd64"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The stream sequence of the command under way.
    pub command: u64,
    /// How much is done, 0 to 100; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What is being done; at most [`PROGRESS_TEXT_BYTES_MAX`] bytes.
    #[serde(default)]
    pub text: String,
}

impl Progress {
    /// Creates progress; `percent` is limited to 100 and `text` is truncated.
    pub fn new(command: u64, percent: impl Into<Option<u8>>, text: &str) -> Self {
        Self { command, percent: percent.into(), text: text.to_owned() }.bounded()
    }

    /// Reads progress from a message's payload, with the same limits as [`Self::new`].
    ///
    /// # Errors
    /// The payload is larger than [`PROGRESS_BYTES_MAX`] or not progress of this protocol.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        parse_bounded(payload, PROGRESS_BYTES_MAX).map(Self::bounded)
    }

    /// The payload of this progress.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("progress has string keys and no fallible part")
    }

    fn bounded(self) -> Self {
        let percent = self.percent.map(|percent| percent.min(100));
        let text = bounded(&self.text, PROGRESS_TEXT_BYTES_MAX);
        Self { percent, text, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_bounded() {
        let json = r#"{"command":17,"percent":40,"text":"unpacking"}"#;
        let progress = Progress::parse(json.as_bytes()).unwrap();
        assert_eq!(progress, Progress::new(17, 40, "unpacking"));
        assert_eq!(String::from_utf8(progress.to_payload()).unwrap(), json);
        let bare = Progress { command: 1, percent: None, text: String::new() };
        assert_eq!(Progress::parse(br#"{"command":1,"step":3}"#).unwrap(), bare);
        assert_eq!(Progress::new(1, 200, "").percent, Some(100));
        assert!(Progress::new(1, 0, &"ä".repeat(500)).text.len() <= PROGRESS_TEXT_BYTES_MAX);
        for wrong in
            ["", "{}", r#"{"command":-1}"#, r#"{"command":1,"percent":300}"#, r#"{"command":1,"text":7}"#]
        {
            assert!(Progress::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
