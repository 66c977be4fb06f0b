//! Heartbeats of workers.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::json::{is_false, parse_bounded};
use crate::limits::HEARTBEAT_BYTES_MAX;

/// A heartbeat as sent: `{"time":"2026-11-21T02:00:00.250Z"}`. An empty payload is one as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The worker's time when it was sent. Orchestrators compare their own clock with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DateTime<Utc>>,
    /// Whether it is the agent's, which runs units: it is sent every five seconds. Another one says of the host that it is there, and nothing
    /// of its agent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub units: bool,
}

impl Heartbeat {
    /// Reads a heartbeat from a message's payload. Whatever the payload is, the host is alive, so an unusable one counts
    /// as empty.
    pub fn read(payload: &[u8]) -> Self {
        parse_bounded(payload, HEARTBEAT_BYTES_MAX).unwrap_or_default()
    }

    /// The payload of this heartbeat.
    pub fn to_payload(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("a heartbeat has no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_are_read_whatever_they_contain() {
        let time = DateTime::from_timestamp_millis(1_800_000_000_250);
        for (units, expected) in [
            (false, r#"{"time":"2027-01-15T08:00:00.250Z"}"#),
            (true, r#"{"time":"2027-01-15T08:00:00.250Z","units":true}"#),
        ] {
            let heartbeat = Heartbeat { time, units };
            let sent = heartbeat.to_payload();
            assert_eq!(String::from_utf8(sent.clone()).unwrap(), expected);
            assert_eq!(Heartbeat::read(&sent), heartbeat);
        }
        let more = br#"{"time":"2027-01-15T08:00:00.250Z","load":3}"#;
        assert_eq!(Heartbeat::read(more), Heartbeat { time, units: false });
        let long =
            format!(r#"{{"time":"2027-01-15T08:00:00.250Z","x":"{}"}}"#, "x".repeat(HEARTBEAT_BYTES_MAX));
        for unusable in ["", "{}", "[", "7", r#"{"time":7}"#, r#"{"time":"soon"}"#, r#"{"units":1}"#, &long] {
            assert_eq!(Heartbeat::read(unusable.as_bytes()), Heartbeat::default(), "{unusable}");
        }
    }
}
