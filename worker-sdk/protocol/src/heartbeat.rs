//! Heartbeats of workers.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::json::parse_bounded;
use crate::limits::HEARTBEAT_BYTES_MAX;

/// A heartbeat as sent: `{"time":"2026-11-21T02:00:00.250Z"}`. An empty payload is one as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The worker's time when it was sent. Orchestrators compare their own clock with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DateTime<Utc>>,
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
        let sent = Heartbeat { time }.to_payload();
        assert_eq!(String::from_utf8(sent.clone()).unwrap(), r#"{"time":"2027-01-15T08:00:00.250Z"}"#);
        assert_eq!(Heartbeat::read(&sent), Heartbeat { time });
        assert_eq!(Heartbeat::read(br#"{"time":"2027-01-15T08:00:00.250Z","load":3}"#), Heartbeat { time });
        let long =
            format!(r#"{{"time":"2027-01-15T08:00:00.250Z","x":"{}"}}"#, "x".repeat(HEARTBEAT_BYTES_MAX));
        for unusable in ["", "{}", "[", "7", r#"{"time":7}"#, r#"{"time":"soon"}"#, &long] {
            assert_eq!(Heartbeat::read(unusable.as_bytes()), Heartbeat::default(), "{unusable}");
        }
    }
}
