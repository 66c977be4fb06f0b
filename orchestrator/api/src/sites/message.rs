//! The messages between sites: a line of JSON with the head of a request or an answer, followed by the raw body.

use std::collections::BTreeMap;
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

/// Bodies of answers of at least this size are compressed, in bytes.
const LARGE_BYTES: usize = 64 * 1_024;
/// Largest body of an answer after decompression, in bytes.
const BODY_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// A request. Fields may be added; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SiteRequest {
    /// The HTTP method, such as `GET`.
    pub(crate) method: String,
    /// The path and the query, without `site`.
    pub(crate) target: String,
    /// The `Content-Type` of the body; absent when the client sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    /// Its `Prefer`; absent when the client sent none that is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prefer: Option<String>,
    /// Who calls, and the site where the request arrived.
    pub(crate) caller: Caller,
    /// When the request was forwarded, by the clock of that site.
    pub(crate) sent: DateTime<Utc>,
}

/// An answer. Fields may be added; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SiteAnswer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The `Content-Type` of the body; absent without a body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    /// Its other headers that reach the client, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether the body is compressed with gzip.
    #[serde(default)]
    gzip: bool,
}

impl SiteAnswer {
    /// An answer with `status`, and a body of this type.
    pub(crate) const fn new(status: u16, content_type: Option<String>) -> Self {
        Self { status, content_type, headers: BTreeMap::new(), gzip: false }
    }
}

/// Encodes a request and its body for the bus.
pub(crate) fn encode_request(head: &SiteRequest, body: &[u8]) -> serde_json::Result<Vec<u8>> {
    join(head, body)
}

/// The request in a message, and its body.
pub(crate) fn decode_request(message: &Bytes) -> Result<(SiteRequest, Bytes), String> {
    split(message)
}

/// Encodes an answer and its body for the bus.
pub(crate) fn encode_answer(mut head: SiteAnswer, body: &[u8]) -> Result<Vec<u8>, String> {
    head.gzip = body.len() >= LARGE_BYTES;
    let compressed;
    let body = if head.gzip {
        compressed = compress(body).map_err(|error| error.to_string())?;
        &compressed
    } else {
        body
    };
    join(&head, body).map_err(|error| error.to_string())
}

/// The answer in a message, and its body.
pub(crate) fn decode_answer(message: &Bytes) -> Result<(SiteAnswer, Bytes), String> {
    let (mut head, mut body) = split::<SiteAnswer>(message)?;
    if std::mem::take(&mut head.gzip) {
        body = decompress(&body).map_err(|error| error.to_string())?.into();
    }
    Ok((head, body))
}

fn join(head: &impl Serialize, body: &[u8]) -> serde_json::Result<Vec<u8>> {
    // JSON escapes line breaks within strings, so the first one ends the head.
    let mut message = serde_json::to_vec(head)?;
    message.push(b'\n');
    message.extend_from_slice(body);
    Ok(message)
}

fn split<T: DeserializeOwned>(message: &Bytes) -> Result<(T, Bytes), String> {
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
    fn messages_round_trip() {
        let request = SiteRequest {
            method: "POST".to_owned(),
            target: "/v1/state/os-upgrade/cancel".to_owned(),
            content_type: Some("application/json".to_owned()),
            prefer: Some("return=representation".to_owned()),
            caller: Caller { actor: "token e\nve".to_owned(), rights: Rights::Role(Role::Operator) },
            sent: "2026-11-21T05:00:00Z".parse().unwrap(),
        };
        let message = encode_request(&request, b"{}\n{}").unwrap();
        assert_eq!(decode_request(&message.into()), Ok((request, Bytes::from_static(b"{}\n{}"))));

        for size in [0, LARGE_BYTES, 10 * LARGE_BYTES] {
            let body = vec![b'\n'; size];
            let answer = SiteAnswer::new(200, None);
            let message = encode_answer(answer.clone(), &body).unwrap();
            assert!(message.len() < LARGE_BYTES, "{size}: {}", message.len());
            assert_eq!(decode_answer(&message.into()), Ok((answer, Bytes::from(body))), "{size}");
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        let whole = encode_answer(SiteAnswer::new(200, None), &vec![b'x'; LARGE_BYTES]).unwrap();
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
