//! Times in whole seconds, like every time in the API.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::time;
use serde::{Serialize, Serializer};

/// Serializes a time in whole seconds, like every time in the API.
pub(crate) fn in_seconds<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time::format(*time))
}

#[expect(clippy::ref_option, reason = "the signature that serde requires")]
pub(crate) fn in_seconds_if_any<S: Serializer>(
    time: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(time::format).serialize(serializer)
}
