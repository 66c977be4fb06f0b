//! The orchestrators' own message in the stream of what hosts are to have: the fence of the instance that writes there.

use serde::{Deserialize, Serialize};

use crate::json::parse_bounded;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::{ParseError, Revision};

/// Who writes to the stream of what hosts are to have, on the subject [`DESIRED_LEADER`](crate::subject::DESIRED_LEADER):
/// `{"site":"hall-1","epoch":0,"sequence":17,"leader":"a1"}`. Whoever reads another site's fence there shares the stream by mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredFence {
    pub site: String,
    /// The restoration, and the sequence of the leader's fence in the control stream. Of two leaders the later one has the greater.
    #[serde(flatten)]
    pub revision: Revision,
    /// The instance, for people.
    pub leader: String,
}

impl DesiredFence {
    /// Reads a fence from a message's payload.
    ///
    /// # Errors
    /// The payload is too large, or is not a JSON object of this shape.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        parse_bounded(payload, MESSAGE_BYTES_MAX)
    }

    /// The payload of this fence.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers have no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_read_back() {
        let payload = r#"{"site":"hall-1","epoch":0,"sequence":17,"leader":"a1"}"#;
        let fence = DesiredFence::parse(payload.as_bytes()).unwrap();
        assert_eq!(fence.revision, Revision { epoch: 0, sequence: 17 });
        assert_eq!(String::from_utf8(fence.to_payload()).unwrap(), payload);
        for none in ["", "{}", "[]", r#"{"site":7,"epoch":0,"sequence":1,"leader":"a"}"#] {
            assert!(DesiredFence::parse(none.as_bytes()).is_err(), "{none}");
        }
    }
}
