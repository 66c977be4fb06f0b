//! Times on the wire: RFC 3339 in UTC, whole seconds, `2026-11-21T05:00:00Z`.

use chrono::{DateTime, SecondsFormat, Utc};

/// `time` in the format of messages.
pub fn format(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The `not-after` field: absent, `null` and `""` all mean that there is no deadline.
pub(crate) mod not_after {
    use std::borrow::Cow;

    use chrono::{DateTime, Datelike, Utc};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "the signature that serde requires")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<DateTime<Utc>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time.map(super::format).unwrap_or_default())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<DateTime<Utc>>, D::Error> {
        let text = Option::<Cow<'de, str>>::deserialize(deserializer)?.unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        let bad = |why: &str| D::Error::custom(format!("not-after {text:?}: {why}"));
        let time = DateTime::parse_from_rfc3339(&text).map_err(|error| bad(&error.to_string()))?.to_utc();
        // Converted to UTC, a time with an offset can fall outside the years that RFC 3339 can express.
        if (0..=9999).contains(&time.year()) { Ok(Some(time)) } else { Err(bad("year out of range in UTC")) }
    }
}
