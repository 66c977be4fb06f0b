//! What goes between sites: a line of JSON that says what is asked or answered, and behind it the body as it is.

use std::io::{self, Read as _, Write as _};

use axum::body::Bytes;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use os_upgrade_auth::Caller;
use os_upgrade_protocol::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Bodies of answers from this size on are compressed, in bytes.
const LARGE_BYTES: usize = 64 * 1_024;
/// Largest body of an answer when it is not compressed, in bytes.
const BODY_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// A request. Fields may be added; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Asked {
    /// `GET`, say.
    pub(crate) method: String,
    /// The path and the query, without `site`.
    pub(crate) target: String,
    /// What the body is, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    /// Who asks, and where.
    pub(crate) caller: Caller,
    /// When, by the clock there.
    pub(crate) sent: DateTime<Utc>,
}

/// An answer. Fields may be added; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Answered {
    /// Of HTTP.
    pub(crate) status: u16,
    /// What the body is, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    /// Whether the body is compressed.
    #[serde(default)]
    gzip: bool,
}

impl Answered {
    /// One with `status` and a body of this type.
    pub(crate) const fn new(status: u16, content_type: Option<String>) -> Self {
        Self { status, content_type, gzip: false }
    }
}

/// A request with its body, as it goes over the bus.
pub(crate) fn encode_request(asked: &Asked, body: &[u8]) -> serde_json::Result<Vec<u8>> {
    joined(asked, body)
}

/// The request and the body of a message.
pub(crate) fn decode_request(message: &Bytes) -> Result<(Asked, Bytes), String> {
    parted(message)
}

/// An answer with its body, as it goes over the bus.
pub(crate) fn encode_answer(mut answered: Answered, body: &[u8]) -> Result<Vec<u8>, String> {
    answered.gzip = body.len() >= LARGE_BYTES;
    let compressed;
    let body = if answered.gzip {
        compressed = compress(body).map_err(|error| error.to_string())?;
        &compressed
    } else {
        body
    };
    joined(&answered, body).map_err(|error| error.to_string())
}

/// The answer and the body of a message.
pub(crate) fn decode_answer(message: &Bytes) -> Result<(Answered, Bytes), String> {
    let (mut answered, mut body) = parted::<Answered>(message)?;
    if std::mem::take(&mut answered.gzip) {
        body = decompress(&body).map_err(|error| error.to_string())?.into();
    }
    Ok((answered, body))
}

fn joined(head: &impl Serialize, body: &[u8]) -> serde_json::Result<Vec<u8>> {
    // A line break within a text is escaped in JSON.
    let mut message = serde_json::to_vec(head)?;
    message.push(b'\n');
    message.extend_from_slice(body);
    Ok(message)
}

fn parted<T: DeserializeOwned>(message: &Bytes) -> Result<(T, Bytes), String> {
    let end = message.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
    let head = json::object(&message[..end]).map_err(|error| error.to_string())?;
    Ok((head, message.slice(end + 1..)))
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(bytes).take(BODY_BYTES_MAX + 1).read_to_end(&mut plain)?;
    if read as u64 > BODY_BYTES_MAX {
        return Err(io::Error::other(format!("its body has more than {BODY_BYTES_MAX} bytes")));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use os_upgrade_auth::{Rights, Role};

    use super::*;

    #[test]
    fn requests_and_answers_come_as_they_went() {
        let asked = Asked {
            method: "POST".to_owned(),
            target: "/v1/state/os-upgrade/cancel".to_owned(),
            content_type: Some("application/json".to_owned()),
            caller: Caller { actor: "token e\nve".to_owned(), rights: Rights::Role(Role::Operator) },
            sent: "2026-11-21T05:00:00Z".parse().unwrap(),
        };
        let message = encode_request(&asked, b"{}\n{}").unwrap();
        assert_eq!(decode_request(&message.into()), Ok((asked, Bytes::from_static(b"{}\n{}"))));

        for size in [0, LARGE_BYTES, 10 * LARGE_BYTES] {
            let body = vec![b'\n'; size];
            let answered = Answered::new(200, None);
            let message = encode_answer(answered.clone(), &body).unwrap();
            assert!(message.len() < LARGE_BYTES, "{size}: {}", message.len());
            assert_eq!(decode_answer(&message.into()), Ok((answered, Bytes::from(body))), "{size}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let whole = encode_answer(Answered::new(200, None), &vec![b'x'; LARGE_BYTES]).unwrap();
        assert!(decode_answer(&whole.clone().into()).is_ok());
        let cut = &whole[..whole.len() - 9];
        for message in
            [b"".as_slice(), b"{}", b"\n", b"{}\n", b"[200]\n", b"{\"status\":-1}\n", b"\xff\n", cut]
        {
            let message = Bytes::copy_from_slice(message);
            assert!(decode_request(&message).is_err(), "{message:?}");
            assert!(decode_answer(&message).is_err(), "{message:?}");
        }
    }
}
