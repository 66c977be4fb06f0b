//! The consumer of a worker that may not make its own: the check makes it, as an orchestrator would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::jetstream;
use async_nats::{Client, Message};
use futures::StreamExt;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ConsumerAnswer, ConsumerRequest, HostName, subject};
use os_upgrade_worker_rules::DeliverFrom;
use tokio::task::JoinSet;

use super::CheckError;
use super::controller::nats;
use crate::driver::consumer_config;

/// What answers requests for the consumer of one host.
#[derive(Debug)]
pub(super) struct ConsumerMaker {
    asked: Arc<AtomicBool>,
    _listener: JoinSet<()>,
}

impl ConsumerMaker {
    pub(super) async fn start(client: Client, host: HostName) -> Result<Self, CheckError> {
        let mut requests = client.subscribe(subject::consumer_request(&host)).await.map_err(nats)?;
        let asked = Arc::<AtomicBool>::default();
        let seen = Arc::clone(&asked);
        let mut listener = JoinSet::new();
        listener.spawn(async move {
            let jetstream = jetstream::new(client.clone());
            while let Some(request) = requests.next().await {
                seen.store(true, Ordering::Relaxed);
                let answer = ConsumerAnswer::new(make(&jetstream, &host, &request).await).to_payload();
                if let Some(reply) = request.reply {
                    // Who does not hear of it asks again.
                    let _ = client.publish(reply, answer.into()).await;
                }
            }
        });
        Ok(Self { asked, _listener: listener })
    }

    /// Whether the worker has asked: it cannot read back what it has published then either.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn make(jetstream: &jetstream::Context, host: &HostName, request: &Message) -> Result<(), String> {
    let request = ConsumerRequest::parse(&request.payload).map_err(|error| with_causes(&error))?;
    let from = request.from.map_or(DeliverFrom::LastOfSubject, |from| DeliverFrom::Sequence(from.get()));
    let stream = jetstream.get_stream_no_info(subject::CONTROL_STREAM).await;
    let stream = stream.map_err(|error| with_causes(&error))?;
    // There may be none.
    let _ = stream.delete_consumer(&subject::consumer(host)).await;
    let made = stream.create_consumer(consumer_config(host, from, request.ack_wait())).await;
    made.map(drop).map_err(|error| with_causes(&error))
}
