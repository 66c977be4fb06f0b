//! What an answer means, without its transport.

use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::limits::ITEM_BYTES_MAX;

use crate::content::ContentBytes;
use crate::failure::Failure;
use crate::retry_after::read_retry_after;
use crate::validator::{Condition, Validator};

/// How many bytes of an answer are read. An item has at most [`ITEM_BYTES_MAX`] of them.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The longest `Retry-After` that is honoured.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// An HTTP answer: the parts that matter.
#[derive(Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub etag: Option<&'a [u8]>,
    pub last_modified: Option<&'a [u8]>,
    pub date: Option<&'a [u8]>,
    pub retry_after: Option<&'a [u8]>,
    pub content_type: Option<&'a [u8]>,
    pub content_encoding: Option<&'a [u8]>,
    /// The body, or why it is not complete; it matters only for 200.
    pub body: Result<ContentBytes, Failure>,
}

/// What was asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// That of the content received last, on whose condition the request depended; `None` without one.
    pub validator: Option<&'a Validator>,
    /// Whether a page of HTML is a proper answer.
    pub html: bool,
}

/// What a provider says about a host. `C` is what is made of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<C = ContentBytes> {
    /// The same as before.
    Unchanged { validator: Validator },
    /// This, which is new or was not known to this leader.
    Content { content: C, validator: Validator },
    /// The host is to have nothing (any more): 404 or 410.
    Removed,
    /// Nothing.
    Failed(Failure),
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply<C = ContentBytes> {
    pub outcome: Outcome<C>,
    /// How long the server wants no requests at all, about whatever host.
    pub retry_after: Option<Duration>,
    /// How often the provider wants to be asked about the host, if it says so.
    pub poll_interval: Option<Duration>,
}

impl<C> From<Failure> for Reply<C> {
    fn from(failure: Failure) -> Self {
        Self { outcome: Outcome::Failed(failure), retry_after: None, poll_interval: None }
    }
}

impl Answer<'_> {
    /// What the answer means. `now` is when it arrived.
    pub fn interpret(self, asked: Asked<'_>, now: DateTime<Utc>) -> Reply {
        let retry_after = requested_pause(self.status, self.retry_after, self.date, now);
        let outcome = match self.status {
            200 => self.interpret_content(asked).unwrap_or_else(Outcome::Failed),
            304 => match asked.validator {
                Some(validator) if validator.condition().is_some() => {
                    Outcome::Unchanged { validator: validator.clone() }
                }
                Some(_) | None => Outcome::Failed(Failure::UnexpectedStatus { status: 304 }),
            },
            404 | 410 => Outcome::Removed,
            status => Outcome::Failed(failure_of(status)),
        };
        Reply { outcome, retry_after, poll_interval: None }
    }

    fn interpret_content(self, asked: Asked<'_>) -> Result<Outcome, Failure> {
        if self.content_encoding.is_some_and(|value| !is_identity(value)) {
            return Err(Failure::Encoded);
        }
        // Portals and sign-on pages answer 200 for every URL.
        if !asked.html && self.content_type.is_some_and(is_html) {
            return Err(Failure::Html);
        }
        let bytes = self.body?;
        if bytes.as_slice().len() > ITEM_BYTES_MAX {
            return Err(Failure::TooLarge { limit: ITEM_BYTES_MAX });
        }
        let validator = Validator::new(bytes.as_slice(), self.etag, self.last_modified, self.date);
        if asked.validator.is_some_and(|last| last.is_same_content(&validator)) {
            return Ok(Outcome::Unchanged { validator });
        }
        Ok(Outcome::Content { content: bytes, validator })
    }
}

impl Asked<'_> {
    /// What to make the request conditional on.
    pub fn condition(&self) -> Option<&Condition> {
        self.validator.and_then(Validator::condition)
    }
}

/// How long a server wants no requests at all. Only one that is asked too often or out of order may say so.
pub(crate) fn requested_pause(
    status: u16,
    retry_after: Option<&[u8]>,
    date: Option<&[u8]>,
    now: DateTime<Utc>,
) -> Option<Duration> {
    let may_pause = matches!(status, 429 | 500..=599);
    retry_after.filter(|_| may_pause).and_then(|value| read_retry_after(value, date, now, RETRY_AFTER_MAX))
}

/// What a status means that has no meaning of its own.
pub(crate) const fn failure_of(status: u16) -> Failure {
    match status {
        429 => Failure::Throttled,
        300..=399 => Failure::Redirected { status },
        400..=499 => Failure::Refused { status },
        500..=599 => Failure::Unavailable { status },
        _ => Failure::UnexpectedStatus { status },
    }
}

/// Whether a `Content-Encoding` says that the body is not encoded.
pub(crate) fn is_identity(encoding: &[u8]) -> bool {
    encoding.trim_ascii().is_empty() || encoding.trim_ascii().eq_ignore_ascii_case(b"identity")
}

fn is_html(content_type: &[u8]) -> bool {
    let kind = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|html| kind.eq_ignore_ascii_case(html))
}

#[cfg(test)]
mod tests;
