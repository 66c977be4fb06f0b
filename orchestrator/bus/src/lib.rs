//! Carries out the shell's actions on NATS. Nothing is decided here.
//!
//! - [`connect`]: the connection and its state;
//! - [`streams`]: the orchestrator's streams, created and inspected;
//! - [`journal`], [`commands`], [`worker_reports`]: publishing to each stream and reading from it;
//! - [`desired`]: what hosts are to have;
//! - [`side_streams`]: streams beside those that decide, such as what hosts' commands have printed;
//! - [`consumers`]: consumers for workers that may not create their own;
//! - [`latest`]: a queue in which the latest message of each key matters;
//! - [`forward`]: requests that followers pass to the leader;
//! - [`sites`]: requests between sites;
//! - [`instances`]: heartbeats of instances and replicas of streams, for operators;
//! - [`storage`]: what NATS stores, and how much it may;
//! - [`trial`]: what NATS does not tell, found by trying;
//! - [`reader`]: a stream followed across reconnects;
//! - [`scan`]: a stream read once, to its end;
//! - [`lease`]: the key that says which instance may try to lead.

pub mod commands;
pub mod connect;
pub mod consumers;
pub mod desired;
pub mod forward;
pub mod host_reports;
pub mod instances;
pub mod journal;
pub mod latest;
pub mod lease;
mod purge;
pub mod reader;
mod retention;
pub mod scan;
pub mod side_streams;
pub mod sites;
pub mod storage;
pub mod streams;
pub mod trial;
pub mod worker_reports;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::{self, Context, kv, stream};
use os_upgrade_credentials::ORCHESTRATOR;
use tokio::sync::{OnceCell, SetOnce};

/// How long a publish or request may go unanswered before its outcome counts as unknown.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// The most unanswered publishes at once; the dispatcher's own bound is lower.
const UNANSWERED_MAX: usize = 4096;

/// The bus, set once it is connected.
pub type PendingBus = Arc<SetOnce<Bus>>;

/// A connection to the bus. Clones are cheap and share it.
#[derive(Debug, Clone)]
pub struct Bus {
    client: async_nats::Client,
    jetstream: Context,
    /// The name in the credentials, if they have one.
    user: Option<Arc<str>>,
    lease: Arc<OnceCell<LeaseBucket>>,
    /// The settings that the streams but the lease's must have, once all streams were seen to have theirs.
    ensured: Arc<OnceLock<[stream::Config; 4]>>,
    /// When the first of the lease requests was sent that have had no answer so far.
    unanswered_since: Arc<Mutex<Option<Instant>>>,
}

/// The bucket of the lease in use.
#[derive(Debug)]
struct LeaseBucket {
    store: kv::Store,
    /// The settings of its stream.
    config: stream::Config,
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
            ensured: Arc::default(),
            unanswered_since: Arc::default(),
        }
    }

    /// Whether the credentials are those that `os-upgrade nats-config` makes for orchestrators.
    pub fn has_orchestrator_credentials(&self) -> bool {
        self.user.as_deref() == Some(ORCHESTRATOR)
    }

    /// Waits until everything published so far is written to the connection; never returns while disconnected.
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
