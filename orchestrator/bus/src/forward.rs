//! Requests between instances, over core NATS. Every process has a subject of its own, so that only the addressed
//! process answers.

use std::sync::Arc;

use async_nats::client::{Request, RequestErrorKind};
use async_nats::connection::State;
use async_nats::{Message, Subject};
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::subject;
use os_upgrade_shell::forward::{
    ANSWER_WITHIN, Forwarded, Outcome, UNDER_WAY_MAX, decode, decode_outcome, encode, encode_outcome,
    not_forwarded,
};
use os_upgrade_shell::lease::LeaseHolder;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::call::Call;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Bus;

impl Bus {
    /// Forwards a request to the process `to`, once.
    pub async fn forward(&self, to: &LeaseHolder, forwarded: &Forwarded) -> Outcome {
        let payload = encode(forwarded)?;
        if self.client.connection_state() != State::Connected {
            return Err(not_forwarded("NATS is unreachable"));
        }
        let subject = subject::request(&to.instance, &to.nonce);
        let request = Request::new().payload(payload.into()).timeout(Some(ANSWER_WITHIN));
        let leader = &to.instance;
        match self.client.send_request(subject, request).await {
            Ok(message) => decode_outcome(&message.payload),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => {
                    not_forwarded(format_args!("instance {leader}, which led last, is gone"))
                }
                RequestErrorKind::MaxPayloadExceeded | RequestErrorKind::InvalidSubject => {
                    not_forwarded(error)
                }
                RequestErrorKind::TimedOut => {
                    let seconds = ANSWER_WITHIN.as_secs();
                    NotDone::unknown(format!(
                        "instance {leader}, which led last, has not answered within {seconds} s"
                    ))
                }
                RequestErrorKind::Other => NotDone::unknown(error.to_string()),
            }),
        }
    }

    /// Maps the requests forwarded to the process `me` and sends them to `sink`, until `stop`. `answers` tracks the
    /// tasks that return outcomes.
    pub async fn read_forwarded<T: Send>(
        &self,
        me: &LeaseHolder,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(Call) -> T + Send + Sync,
        answers: TaskTracker,
    ) {
        let permits = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        let subject = subject::request(&me.instance, &me.nonce);
        let Some(mut requests) = self.subscribe(&subject, &stop).await else { return };
        loop {
            let message = tokio::select! {
                () = stop.cancelled() => return,
                message = requests.next() => message,
            };
            let Some(Message { reply, payload, .. }) = message else { return };
            // Without a reply subject the outcome could not be reported.
            let Some(reply) = reply else { continue };
            let (Forwarded { lease, request }, permit) = match admit(&permits, &payload) {
                Ok(admitted) => admitted,
                Err(not_done) => {
                    self.publish_outcome(reply, &Err(not_done)).await;
                    continue;
                }
            };
            let (call, outcome) = Call::new(request, Some(lease));
            drop(sink.send(map(call)).await);
            let bus = self.clone();
            answers.spawn(async move {
                // A follower without an answer reports the outcome as unknown.
                if let Ok(outcome) = outcome.await {
                    bus.publish_outcome(reply, &outcome).await;
                }
                drop(permit);
            });
        }
    }

    async fn publish_outcome(&self, subject: Subject, outcome: &Outcome) {
        let payload = match encode_outcome(outcome) {
            Ok(payload) => Bytes::from(payload),
            Err(error) => return tracing::error!(%error, "cannot encode the response to a follower"),
        };
        if let Err(error) = self.client.publish(subject, payload).await {
            tracing::debug!(%error, "cannot send the response to a follower");
        }
    }
}

/// Decodes a follower's request. It counts as under way until the permit is dropped.
fn admit(permits: &Arc<Semaphore>, payload: &[u8]) -> Result<(Forwarded, OwnedSemaphorePermit), NotDone> {
    let forwarded = decode(payload)?;
    let permit = Arc::clone(permits).try_acquire_owned();
    let full = |_| NotDone::unchanged("too many requests of followers are under way");
    Ok((forwarded, permit.map_err(full)?))
}
