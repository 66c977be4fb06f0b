//! The body of a FleetLock request: read within bounds of size and time, and read to its end also where the answer is
//! known before, because a client that is still sending would find its connection closed, and no answer.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::EXPECT;
use futures::StreamExt as _;
use os_upgrade_api_types::fleet_lock::{ClaimError, REQUEST_BYTES_MAX};

use crate::http::extract::BODY_TIMEOUT;
use crate::http::lock_error::{Kind, LockError};

/// Most bytes read of a body that is not looked at.
const DISCARDED_BYTES_MAX: usize = 1024 * 1024;
/// How long a body that is not looked at is waited for.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// The whole body.
///
/// # Errors
/// It is too large, does not come in time, or not to its end.
pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, LockError> {
    if is_held_back(headers) && body.size_hint().lower() > REQUEST_BYTES_MAX as u64 {
        return Err(ClaimError::TooLarge.into());
    }
    match tokio::time::timeout(BODY_TIMEOUT, collect(body)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => Err(ClaimError::TooLarge.into()),
        Ok(Err(error)) => {
            Err(LockError::new(Kind::InvalidBody, format!("the body did not come to its end: {error}")))
        }
        Err(_) => Err(LockError::new(Kind::BodyTimeout, "the body did not arrive in time")),
    }
}

/// Reads a body that does not matter any more, within bounds.
pub(crate) async fn discard(headers: &HeaderMap, body: Body) {
    if !is_held_back(headers) && !body.is_end_stream() {
        // Whether it comes does not matter either.
        let _ = tokio::time::timeout(DISCARD_TIMEOUT, collect(body)).await;
    }
}

/// Whether the client sends its body only when it is asked to, which reading does.
fn is_held_back(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The whole body, or nothing if it is too large; then [`DISCARDED_BYTES_MAX`] of it are read.
async fn collect(body: Body) -> Result<Option<Bytes>, axum::Error> {
    let mut chunks = body.into_data_stream();
    let Some(first) = chunks.next().await.transpose()? else { return Ok(Some(Bytes::new())) };
    // Nearly every body comes in one piece, which needs no copy.
    let mut length = first.len();
    let mut more = Vec::new();
    while let Some(chunk) = chunks.next().await.transpose()? {
        length += chunk.len();
        if length > DISCARDED_BYTES_MAX {
            return Ok(None);
        }
        if length <= REQUEST_BYTES_MAX {
            if more.is_empty() {
                more.extend_from_slice(&first);
            }
            more.extend_from_slice(&chunk);
        }
    }
    Ok((length <= REQUEST_BYTES_MAX).then(|| if more.is_empty() { first } else { more.into() }))
}
