//! Requests between sites, over core NATS: the instances of a site that can take a write listen on one subject, and one
//! of them answers.

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

/// How long another site's answer may take. More than an orchestrator takes for any write.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(8);
/// How often it is looked whether this instance is to listen.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The instances of a site share its requests by this name.
const QUEUE: &str = "orchestrators";

/// Why there is no answer of another site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// It has no name of a site.
    NoName(NameError),
    /// Nobody listens there.
    Nobody,
    /// It was certainly not delivered.
    NotDelivered {
        /// Why not.
        why: String,
    },
    /// The bus takes no message of this size.
    TooLarge,
    /// Nobody knows what becomes of it.
    Unknown {
        /// What went wrong.
        why: String,
    },
}

/// Answers requests of other sites.
pub trait AnswerSites: Clone + Send + 'static {
    /// Whether this instance is to be asked.
    fn is_ready(&self) -> bool;

    /// The answer to `request`, of at most `room` bytes.
    fn answer(self, request: Bytes, room: usize) -> impl Future<Output = Bytes> + Send;
}

impl Bus {
    /// Asks an orchestrator of the site `name`, once.
    ///
    /// # Errors
    /// There is no answer within [`ANSWER_WITHIN`].
    pub async fn ask_site(&self, name: &str, request: Vec<u8>) -> Result<Bytes, NoAnswer> {
        let subject = subject::site(name).map_err(NoAnswer::NoName)?;
        // The library would keep it, and deliver it when nobody waits any more.
        if self.client.connection_state() != State::Connected {
            return Err(NoAnswer::NotDelivered { why: "the bus is away".to_owned() });
        }
        let request = Request::new().payload(request.into()).timeout(Some(ANSWER_WITHIN));
        let answered = self.client.send_request(subject, request).await;
        answered.map(|message| message.payload).map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => NoAnswer::Nobody,
            RequestErrorKind::MaxPayloadExceeded => NoAnswer::TooLarge,
            RequestErrorKind::InvalidSubject => NoAnswer::NotDelivered { why: error.to_string() },
            RequestErrorKind::TimedOut => {
                NoAnswer::Unknown { why: format!("no answer within {} s", ANSWER_WITHIN.as_secs()) }
            }
            RequestErrorKind::Other => NoAnswer::Unknown { why: error.to_string() },
        })
    }

    /// Has `answers` answer what other sites ask the site `name`, until `stop`; what is under way then is answered.
    pub async fn answer_sites(&self, name: &str, answers: impl AnswerSites, stop: CancellationToken) {
        let Ok(subject) = subject::site(name) else { return };
        let under_way = TaskTracker::new();
        let (mut requests, mut leaving) = (None, false);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = look.tick() => match (&mut requests, answers.is_ready()) {
                    (None, true) => requests = self.listen(&subject).await,
                    // What was sent here before is still answered, or its asker would wait in vain.
                    (Some(listening), false) if !leaving => {
                        leaving = true;
                        drop(listening.drain().await);
                    }
                    (None, false) | (Some(_), _) => {}
                },
                message = next(&mut requests) => match message {
                    None => (requests, leaving) = (None, false),
                    Some(Message { reply: Some(reply), payload, .. }) => {
                        let (bus, answers) = (self.clone(), answers.clone());
                        under_way.spawn(async move {
                            let answer = answers.answer(payload, bus.client.max_payload()).await;
                            bus.publish_answer(reply, answer).await;
                        });
                    }
                    // Nobody could be told what became of it.
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
            tracing::debug!(%error, "answer to another site");
        }
    }
}

/// The next request; never, while this instance does not listen.
async fn next(requests: &mut Option<Subscriber>) -> Option<Message> {
    match requests {
        Some(requests) => requests.next().await,
        None => match std::future::pending::<Infallible>().await {},
    }
}
