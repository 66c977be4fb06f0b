//! Reads the body of a FleetLock request, within limits of size and time. The body is read to its end even if the
//! answer is known earlier: a client that is still sending would find its connection closed, without an answer.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::EXPECT;
use futures::StreamExt as _;
use os_upgrade_api_types::routes::fleet_lock::{ClaimError, REQUEST_BYTES_MAX};

use crate::http::extract::BODY_TIMEOUT;
use crate::http::lock_error::{Kind, LockError};

/// Most bytes read of a body that is discarded.
const DISCARDED_BYTES_MAX: usize = 1024 * 1024;
/// How long to wait for a body that is discarded.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// The whole body.
///
/// # Errors
/// It is too large, does not arrive in time, or is incomplete.
pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, LockError> {
    if awaits_continue(headers) && body.size_hint().lower() > REQUEST_BYTES_MAX as u64 {
        return Err(ClaimError::TooLarge.into());
    }
    match tokio::time::timeout(BODY_TIMEOUT, collect(body)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => Err(ClaimError::TooLarge.into()),
        Ok(Err(error)) => Err(LockError::new(Kind::InvalidBody, format!("the body is incomplete: {error}"))),
        Err(_) => Err(LockError::new(Kind::BodyTimeout, "the body did not arrive in time")),
    }
}

/// Reads and discards a body, within limits.
pub(crate) async fn discard(headers: &HeaderMap, body: Body) {
    if !awaits_continue(headers) && !body.is_end_stream() {
        // Errors and timeouts do not matter here.
        let _ = tokio::time::timeout(DISCARD_TIMEOUT, collect(body)).await;
    }
}

/// Whether the client waits for `100 Continue`, which reading the body would send.
fn awaits_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The whole body; `None` if it is too large. Up to [`DISCARDED_BYTES_MAX`] are read.
async fn collect(body: Body) -> Result<Option<Bytes>, axum::Error> {
    let mut chunks = body.into_data_stream();
    let Some(first) = chunks.next().await.transpose()? else { return Ok(Some(Bytes::new())) };
    // Nearly every body arrives in one chunk, which is not copied.
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
