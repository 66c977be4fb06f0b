//! Sending answers: what is held until an answer is sent, and how long that may take.
//!
//! An answer is sent once its last byte has been passed to the system, or to TLS, which buffers at most 64 KiB. Until
//! then its request counts as under way. Otherwise slow readers could hold any amount of memory, and their connection
//! could be closed in the middle of an answer.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// How long sending a whole answer may take.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns `response`, which drops `held` once it is sent or its connection has ended.
pub(super) fn hold_until_sent<H: Send + Sync + 'static>(response: Response, held: H) -> Response {
    response.map(|body| Body::new(Held { body, held: Arc::new(held) }))
}

/// A body whose pieces all share `held`. The HTTP library drops a body as soon as it has the last piece, and a piece
/// as soon as it is sent.
struct Held<H> {
    body: Body,
    held: Arc<H>,
}

impl<H: Send + Sync + 'static> HttpBody for Held<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| Bytes::from_owner(Piece { bytes, _held: Arc::clone(&self.held) }))
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct Piece<H> {
    bytes: Bytes,
    _held: Arc<H>,
}

impl<H> AsRef<[u8]> for Piece<H> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// When the answer being sent on a connection was begun; `None` between answers. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(super) struct Sending(Arc<Mutex<Option<Instant>>>);

/// An answer that is being sent, until this is dropped.
#[derive(Debug)]
pub(super) struct SendGuard(Sending);

impl Sending {
    /// Records that an answer begins to be sent.
    pub(super) fn begin(&self) -> SendGuard {
        *self.since() = Some(Instant::now());
        SendGuard(self.clone())
    }

    /// Waits until sending an answer takes too long. Poll it in the task that sends, after sending, so that it notices
    /// each new answer.
    pub(super) async fn overdue(&self) {
        let mut timer = pin!(tokio::time::sleep(SEND_TIMEOUT));
        std::future::poll_fn(|cx| {
            loop {
                let Some(since) = *self.since() else { return Poll::Pending };
                // The timer may still be set for an earlier answer and fire early. Resetting it for each answer would
                // cost more.
                ready!(timer.as_mut().poll(cx));
                let until = since + SEND_TIMEOUT;
                if until <= Instant::now() {
                    return Poll::Ready(());
                }
                timer.as_mut().reset(until);
            }
        })
        .await;
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SendGuard {
    fn drop(&mut self) {
        *self.0.since() = None;
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    #[tokio::test]
    async fn last_piece_keeps_held_value() {
        let held = Arc::new(());
        let response = hold_until_sent("answer".into_response(), Arc::clone(&held));
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(6));
        let piece = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let piece = piece.unwrap().unwrap().into_data().unwrap();
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!((&piece[..], Arc::strong_count(&held)), (&b"answer"[..], 2));
        drop(piece);
        assert_eq!(Arc::strong_count(&held), 1);
        drop(hold_until_sent(().into_response(), Arc::clone(&held)));
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_own_timeout() {
        let sending = Sending::default();
        let mut overdue = pin!(sending.overdue());
        let mut within = async |limit| tokio::time::timeout(limit, overdue.as_mut()).await.is_err();
        let almost = SEND_TIMEOUT.checked_sub(Duration::from_millis(1)).unwrap();
        for _ in 0..3 {
            let begun = sending.begin();
            assert!(within(almost).await);
            drop(begun);
            assert!(within(SEND_TIMEOUT * 2).await, "no answer is being sent");
        }
        let _begun = sending.begin();
        assert!(within(almost).await);
        assert!(!within(Duration::from_millis(10)).await);
    }
}
