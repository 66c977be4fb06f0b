//! The text form of times in the store.

use chrono::{DateTime, SecondsFormat, Utc};

/// `2026-11-21T05:00:00.123456789Z`.
pub(super) fn to_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Nanos, true)
}
