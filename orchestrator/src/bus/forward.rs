//! Requests between instances, over core NATS: every process listens on a subject of its own, so that nobody but the
//! process that is meant answers.

use std::sync::Arc;

use async_nats::client::{Request, RequestErrorKind};
use async_nats::connection::State;
use async_nats::{Message, Subject};
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::subject;
use os_upgrade_shell::forward::{ANSWER_WITHIN, Outcome, Passed, Told, UNDER_WAY_MAX, decode, encode};
use os_upgrade_shell::lease::LeaseHolder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::Bus;

/// A request that a follower has passed on to this process.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub passed: Passed,
    /// The way back.
    pub reply: ReplyTo,
}

/// Where the answer to a request goes. While it is there, the request counts as under way.
#[derive(Debug)]
pub struct ReplyTo {
    subject: Subject,
    _permit: OwnedSemaphorePermit,
}

impl Bus {
    /// Passes a request on to the process `to`, once.
    pub async fn forward(&self, to: &LeaseHolder, passed: &Passed) -> Outcome {
        let payload = match encode(passed) {
            Ok(payload) => payload,
            Err(why) => return Outcome::NotDelivered { why },
        };
        if self.client.connection_state() != State::Connected {
            return Outcome::NotDelivered { why: "the bus is away".to_owned() };
        }
        let subject = subject::request(&to.instance, &to.nonce);
        let request = Request::new().payload(payload.into()).timeout(Some(ANSWER_WITHIN));
        let leader = &to.instance;
        match self.client.send_request(subject, request).await {
            Ok(message) => Outcome::read(&message.payload),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => {
                    Outcome::NotDelivered { why: format!("instance {leader}, which led last, is gone") }
                }
                RequestErrorKind::MaxPayloadExceeded | RequestErrorKind::InvalidSubject => {
                    Outcome::NotDelivered { why: error.to_string() }
                }
                RequestErrorKind::TimedOut => {
                    let seconds = ANSWER_WITHIN.as_secs();
                    let why =
                        format!("instance {leader}, which led last, has not answered within {seconds} s");
                    Outcome::Unknown { why }
                }
                RequestErrorKind::Other => Outcome::Unknown { why: error.to_string() },
            },
        }
    }

    /// Hands what `map` makes of requests for the process `me` to `sink`, until `stop`.
    pub async fn read_forwarded<T: Send>(
        &self,
        me: &LeaseHolder,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(Asked) -> T + Send + Sync,
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
            // Nobody could be told what became of it.
            let Some(subject) = reply else { continue };
            match asked(&permits, subject.clone(), &payload) {
                Ok(asked) => drop(sink.send(map(asked)).await),
                Err(reason) => self.publish_told(subject, &Told::Unavailable { reason }).await,
            }
        }
    }

    /// Tells a follower what became of its request.
    pub async fn answer_forwarded(&self, to: ReplyTo, told: &Told) {
        self.publish_told(to.subject.clone(), told).await;
        drop(to);
    }

    async fn publish_told(&self, subject: Subject, told: &Told) {
        let payload = match serde_json::to_vec(told) {
            Ok(payload) => Bytes::from(payload),
            Err(error) => return tracing::error!(%error, "an answer for a follower cannot be written"),
        };
        // A follower that does not hear of it says that the outcome is not known.
        if let Err(error) = self.client.publish(subject, payload).await {
            tracing::debug!(%error, "answer to a follower");
        }
    }
}

fn asked(permits: &Arc<Semaphore>, subject: Subject, payload: &[u8]) -> Result<Asked, String> {
    let passed = decode(payload)?;
    let permit = Arc::clone(permits).try_acquire_owned();
    let full = |_| "too many requests of followers are under way; nothing was changed".to_owned();
    Ok(Asked { passed, reply: ReplyTo { subject, _permit: permit.map_err(full)? } })
}
