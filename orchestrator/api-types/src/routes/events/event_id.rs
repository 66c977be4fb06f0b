//! The id of an event, with which a client goes on after it.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::FactCursor;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// The id of an event. As text `<epoch>.<sequence>.<place>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// Identifies the journal: when it was created, in nanoseconds since 1970.
    pub epoch: i64,
    /// The fact in the journal that the event tells of.
    pub fact: FactCursor,
}

impl EventId {
    /// The epoch of the journal that was created at this time.
    pub fn epoch_of(journal_created_at: DateTime<Utc>) -> i64 {
        journal_created_at.timestamp_nanos_opt().unwrap_or_default()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}", self.epoch, self.fact)
    }
}

/// Text that is no id of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of an event, such as 18790f3d1c8a0000.42.0")]
pub struct BadEventId(String);

impl FromStr for EventId {
    type Err = BadEventId;

    fn from_str(text: &str) -> Result<Self, BadEventId> {
        let read = || {
            let (epoch, fact) = text.split_once('.')?;
            let fact: FactCursor = fact.parse().ok()?;
            // What SQLite can compare.
            let is_small = i64::try_from(fact.sequence).is_ok() && i64::try_from(fact.place).is_ok();
            Some(Self { epoch: i64::from_str_radix(epoch, 16).ok()?, fact }).filter(|_| is_small)
        };
        read().ok_or_else(|| BadEventId(text.chars().take(100).collect()))
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
