//! By what a later answer is known to be the same: an `ETag`, else `Last-Modified`, and always the SHA-256 of the content.
//!
//! A validator is kept in the leader's memory only: the hash of a short secret, which an `ETag` may be too, lets anybody who reads it
//! find the secret by trying.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest as _, Sha256};

use crate::retry_after::http_date;

/// The longest `ETag` that is kept, in bytes. Those of file servers have some dozens.
const ETAG_BYTES_MAX: usize = 256;
/// The longest `Last-Modified` that is kept, in bytes. No form of a date is longer than 33.
const DATE_BYTES_MAX: usize = 40;
/// How old a file must have been when it was sent for its time to tell it from the next version: the time has whole seconds, and a
/// file may change twice within one (RFC 9110, 8.8.2.2).
const MODIFIED_BEFORE_MIN: TimeDelta = TimeDelta::seconds(2);

/// What identifies a content that was received.
#[derive(Clone, PartialEq, Eq)]
pub struct Validator {
    condition: Option<Condition>,
    digest: [u8; 32],
}

/// What a GET is made conditional on.
#[derive(Clone, PartialEq, Eq)]
pub enum Condition {
    /// `If-None-Match` with this `ETag`, as the server sent it, weak or not.
    ETag(String),
    /// `If-Modified-Since` with this `Last-Modified`, as the server sent it.
    LastModified(String),
}

impl Validator {
    /// The validator of `content`, which was sent with these headers.
    pub fn new(
        content: &[u8],
        etag: Option<&[u8]>,
        last_modified: Option<&[u8]>,
        date: Option<&[u8]>,
    ) -> Self {
        let condition = etag
            .and_then(read_etag)
            .map(Condition::ETag)
            .or_else(|| Some(Condition::LastModified(read_last_modified(last_modified?, date?)?)));
        Self { condition, digest: Sha256::digest(content).into() }
    }

    /// What a GET can be made conditional on; `None` if the server sent nothing of the kind.
    pub const fn condition(&self) -> Option<&Condition> {
        self.condition.as_ref()
    }

    /// Whether both are of the same content.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// The digest is left out: it tells a short secret.
impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").field("condition", &self.condition).finish_non_exhaustive()
    }
}

/// The value is left out: an `ETag` may be a digest.
impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ETag(_) => "ETag",
            Self::LastModified(_) => "LastModified",
        })
    }
}

/// An `ETag` that can be sent back: `"..."` or `W/"..."` of visible ASCII.
fn read_etag(value: &[u8]) -> Option<String> {
    let text = str::from_utf8(value).ok().filter(|text| text.len() <= ETAG_BYTES_MAX)?;
    let opaque = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?.strip_suffix('"')?;
    opaque.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"').then(|| text.to_owned())
}

/// A `Last-Modified` that tells this version of a file from the next one.
fn read_last_modified(value: &[u8], date: &[u8]) -> Option<String> {
    let text = str::from_utf8(value).ok().filter(|text| text.len() <= DATE_BYTES_MAX)?;
    let modified: DateTime<Utc> = http_date(text)?;
    let sent = http_date(str::from_utf8(date).ok()?)?;
    (sent - modified >= MODIFIED_BEFORE_MIN).then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 01 Mar 2026 12:00:09 GMT";

    fn condition(etag: Option<&str>, last_modified: Option<&str>, date: Option<&str>) -> Option<Condition> {
        let bytes = |text: Option<&'static str>| text.map(str::as_bytes);
        let leak = |text: Option<&str>| text.map(|text| &*text.to_owned().leak());
        Validator::new(b"x", bytes(leak(etag)), bytes(leak(last_modified)), bytes(leak(date)))
            .condition()
            .cloned()
    }

    #[test]
    fn etags_are_kept_as_they_were_sent() {
        let long = format!("\"{}\"", "x".repeat(254));
        for etag in ["\"a\"", "W/\"a\"", "\"\"", "\"a/b:c\\\"", long.as_str()] {
            assert_eq!(condition(Some(etag), None, None), Some(Condition::ETag(etag.to_owned())), "{etag}");
        }
        let longer = format!("\"{}\"", "x".repeat(255));
        for etag in
            ["", "a", "\"", "w/\"a\"", "\"a", "\"a b\"", "\"a\"b\"", "\"ä\"", "\"a\tb\"", longer.as_str()]
        {
            assert_eq!(condition(Some(etag), None, None), None, "{etag}");
        }
    }

    #[test]
    fn modification_times_count_once_they_are_past() {
        let modified = |text: &str| Some(Condition::LastModified(text.to_owned()));
        for (text, date, expected) in [
            ("Sun, 01 Mar 2026 12:00:07 GMT", Some(DATE), true),
            ("Sun Mar  1 12:00:07 2026", Some(DATE), true),
            // It may change again within this second.
            ("Sun, 01 Mar 2026 12:00:08 GMT", Some(DATE), false),
            ("Sun, 01 Mar 2026 12:00:09 GMT", Some(DATE), false),
            ("Sun, 01 Mar 2026 13:00:00 GMT", Some(DATE), false),
            ("Sun, 01 Mar 2026 12:00:07 GMT", None, false),
            ("yesterday", Some(DATE), false),
        ] {
            assert_eq!(condition(None, Some(text), date).is_some(), expected, "{text}");
        }
        let text = "Sun, 01 Mar 2026 11:00:00 GMT";
        assert_eq!(condition(Some("none"), Some(text), Some(DATE)), modified(text));
        assert_eq!(
            condition(Some("\"a\""), Some(text), Some(DATE)),
            Some(Condition::ETag("\"a\"".to_owned()))
        );
    }

    #[test]
    fn nothing_that_tells_a_secret_is_displayed() {
        let validator = Validator::new(b"hunter2", Some(b"\"2ab96390\""), None, None);
        assert_eq!(format!("{validator:?}"), "Validator { condition: Some(ETag), .. }");
        assert!(validator.is_same_content(&Validator::new(b"hunter2", None, None, None)));
        assert!(!validator.is_same_content(&Validator::new(b"hunter3", Some(b"\"2ab96390\""), None, None)));
    }
}
