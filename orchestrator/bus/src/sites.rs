//! Requests between sites, over core NATS. The ready instances of a site listen on one subject, and one of them
//! answers.

use std::convert::Infallible;
use std::time::Duration;

use async_nats::client::{Request, RequestErrorKind};
use async_nats::connection::State;
use async_nats::{Message, Subject, Subscriber};
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::{NameError, subject};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Bus;

/// How long another site's answer may take: longer than any write of an orchestrator.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(8);
/// How often readiness is checked, to begin or end listening.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The queue group in which the instances of a site share requests.
const QUEUE: &str = "orchestrators";

/// Why another site gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The site's name is invalid.
    InvalidName(NameError),
    /// No instance of the site listens.
    NoResponders,
    /// The request was certainly not delivered.
    NotDelivered {
        /// The cause, in a sentence.
        why: String,
    },
    /// The request is larger than the bus accepts.
    TooLarge,
    /// The outcome is unknown.
    Unknown {
        /// What went wrong.
        why: String,
    },
}

/// Answers requests from other sites.
pub trait AnswerSites: Clone + Send + 'static {
    /// Whether this instance should receive requests.
    fn is_ready(&self) -> bool;

    /// The answer to `request`, at most `room` bytes long.
    fn answer(self, request: Bytes, room: usize) -> impl Future<Output = Bytes> + Send;
}

impl Bus {
    /// Sends a request to an orchestrator of the site `name`, once.
    ///
    /// # Errors
    /// There is no answer within [`ANSWER_WITHIN`]; see [`NoAnswer`].
    pub async fn request_site(&self, name: &str, request: Vec<u8>) -> Result<Bytes, NoAnswer> {
        let subject = subject::site(name).map_err(NoAnswer::InvalidName)?;
        // The client library would keep the request, and deliver it when the caller no longer waits.
        if self.client.connection_state() != State::Connected {
            return Err(NoAnswer::NotDelivered { why: "NATS is unreachable".to_owned() });
        }
        let request = Request::new().payload(request.into()).timeout(Some(ANSWER_WITHIN));
        let answered = self.client.send_request(subject, request).await;
        answered.map(|message| message.payload).map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => NoAnswer::NoResponders,
            RequestErrorKind::MaxPayloadExceeded => NoAnswer::TooLarge,
            RequestErrorKind::InvalidSubject => NoAnswer::NotDelivered { why: error.to_string() },
            RequestErrorKind::TimedOut => {
                NoAnswer::Unknown { why: format!("no answer within {} s", ANSWER_WITHIN.as_secs()) }
            }
            RequestErrorKind::Other => NoAnswer::Unknown { why: error.to_string() },
        })
    }

    /// Answers requests to the site `name` by `answers`, until `stop`. Requests under way by then are still answered.
    pub async fn answer_sites(&self, name: &str, answers: impl AnswerSites, stop: CancellationToken) {
        let Ok(subject) = subject::site(name) else { return };
        let under_way = TaskTracker::new();
        let (mut requests, mut draining) = (None, false);
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = check.tick() => match (&mut requests, answers.is_ready()) {
                    (None, true) => requests = self.listen(&subject).await,
                    // Requests that were already sent here are still answered.
                    (Some(listening), false) if !draining => {
                        draining = true;
                        drop(listening.drain().await);
                    }
                    (None, false) | (Some(_), _) => {}
                },
                message = next(&mut requests) => match message {
                    None => (requests, draining) = (None, false),
                    Some(Message { reply: Some(reply), payload, .. }) => {
                        let (bus, answers) = (self.clone(), answers.clone());
                        under_way.spawn(async move {
                            let answer = answers.answer(payload, bus.client.max_payload()).await;
                            bus.publish_answer(reply, answer).await;
                        });
                    }
                    // Without a reply subject the outcome could not be reported.
                    Some(Message { reply: None, .. }) => {}
                },
            }
        }
        drop(requests);
        under_way.close();
        under_way.wait().await;
    }

    async fn listen(&self, subject: &str) -> Option<Subscriber> {
        let listening = self.client.queue_subscribe(subject.to_owned(), QUEUE.to_owned()).await;
        listening.inspect_err(|error| tracing::warn!(subject, %error, "cannot subscribe")).ok()
    }

    async fn publish_answer(&self, to: Subject, answer: Bytes) {
        if let Err(error) = self.client.publish(to, answer).await {
            tracing::debug!(%error, "cannot send the response to another site");
        }
    }
}

/// The next request; pending for as long as this instance does not listen.
async fn next(requests: &mut Option<Subscriber>) -> Option<Message> {
    match requests {
        Some(requests) => requests.next().await,
        None => match std::future::pending::<Infallible>().await {},
    }
}
