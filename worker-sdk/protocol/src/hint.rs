//! Hints inform a busy worker that its run is stopping, and why. A hint retracts no command, and it may be lost.

use serde::{Deserialize, Serialize};

use crate::RunId;
use crate::json::parse_bounded;
use crate::limits::MESSAGE_BYTES_MAX;

/// Why a run is stopping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HintCause {
    /// An operator has cancelled it.
    Cancelled,
    /// More hosts have failed than the run allows.
    Failed,
    /// Absent, or a cause that this version does not know.
    #[default]
    #[serde(other)]
    Unsaid,
}

/// A hint as sent: `{"run":"r1","cause":"cancelled"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hint {
    /// The run that is stopping; commands of other runs are not affected. When absent, the hint is for whatever is under
    /// way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Why it is stopping.
    #[serde(default)]
    pub cause: HintCause,
}

impl Hint {
    /// Reads a hint. An empty payload, as older orchestrators send, and an invalid one count as a hint without run and
    /// cause.
    pub fn read(payload: &[u8]) -> Self {
        parse_bounded(payload, MESSAGE_BYTES_MAX).unwrap_or_default()
    }

    /// The payload of this hint.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a hint has string keys and no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_match_the_documentation() {
        let run = RunId::new("r1").unwrap();
        for (cause, json) in [
            (HintCause::Cancelled, r#"{"run":"r1","cause":"cancelled"}"#),
            (HintCause::Failed, r#"{"run":"r1","cause":"failed"}"#),
        ] {
            let hint = Hint { run: Some(run.clone()), cause };
            assert_eq!(String::from_utf8(hint.to_payload()).unwrap(), json);
            assert_eq!(Hint::read(json.as_bytes()), hint);
        }
        let unsaid = Hint { run: Some(run), cause: HintCause::Unsaid };
        assert_eq!(Hint::read(br#"{"run":"r1","cause":"moonlight","more":1}"#), unsaid);
        for payload in ["", "{}", "stop!", r#"{"run":7}"#] {
            assert_eq!(Hint::read(payload.as_bytes()), Hint::default(), "{payload}");
        }
    }
}
