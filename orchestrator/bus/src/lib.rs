//! NATS: everything that knows how the shell's actions are carried out on it. Nothing is decided here.
//!
//! - [`connect`]: the connection, and the news of its coming and going;
//! - [`streams`]: the streams as the orchestrator needs them, made and inspected;
//! - [`journal`], [`control`], [`workers`]: what is published to each stream, and what is read from it;
//! - [`consumers`]: consumers made for workers that may not make their own;
//! - [`forward`]: requests that instances pass on to the leader;
//! - [`sites`]: requests that sites pass on to each other;
//! - [`instances`]: what instances and servers say of themselves, for operators;
//! - [`scan`]: a stream read once, to its end;
//! - [`lease`]: the key that says who may try to lead.

pub mod connect;
pub mod consumers;
pub mod control;
pub mod forward;
pub mod instances;
pub mod journal;
pub mod lease;
pub mod reader;
pub mod scan;
pub mod sites;
pub mod streams;
pub mod workers;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::{self, Context, kv};
use tokio::sync::{OnceCell, SetOnce};

/// How long the answer to a publish or a request may take before its outcome counts as unknown.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// How many publishes may be without an answer at once; the dispatcher's own bound is lower.
const UNANSWERED_MAX: usize = 4096;

/// The bus, once it has come.
pub type PendingBus = Arc<SetOnce<Bus>>;

/// The bus as the adapters use it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bus {
    client: async_nats::Client,
    jetstream: Context,
    /// The name that the credentials are made out to.
    user: Option<Arc<str>>,
    lease: Arc<OnceCell<kv::Store>>,
    /// Since when the lease has not been answered.
    unanswered: Arc<Mutex<Option<Instant>>>,
}

impl Bus {
    /// The bus over an established connection, with credentials of `user`.
    pub fn new(client: async_nats::Client, user: Option<String>) -> Self {
        let jetstream = jetstream::ContextBuilder::new()
            .timeout(ANSWER_WITHIN)
            .ack_timeout(ANSWER_WITHIN)
            .max_ack_inflight(UNANSWERED_MAX)
            .build(client.clone());
        Self {
            client,
            jetstream,
            user: user.map(Arc::from),
            lease: Arc::default(),
            unanswered: Arc::default(),
        }
    }

    /// Resolves when everything published so far has been handed to the connection; never while that is away.
    pub async fn flush(&self) {
        if let Err(error) = self.client.flush().await {
            tracing::debug!(%error, "flush");
        }
    }

    async fn publish(
        &self,
        subject: String,
        headers: async_nats::HeaderMap,
        payload: bytes::Bytes,
    ) -> Result<PublishAckFuture, PublishError> {
        self.jetstream.publish_with_headers(subject, headers, payload).await
    }
}

/// The last value of a header.
fn header<'a>(headers: &'a async_nats::HeaderMap, name: &str) -> Option<&'a str> {
    headers.get_last(name).map(async_nats::HeaderValue::as_str)
}
