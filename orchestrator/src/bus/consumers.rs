//! Consumers made for workers that may not make their own: to make one means to say where its messages go, which could be
//! anywhere in this account, the API of JetStream included. What comes here has been let through for its own host only.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures::StreamExt;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ConsumerAnswer, ConsumerRequest, HostName, subject};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Bus;

/// The instances of a site share requests by this name.
const QUEUE: &str = "orchestrators";
/// How many consumers are made at once; further requests wait.
const UNDER_WAY_MAX: usize = 16;
/// How long each of the two steps may take. Together it is less than a worker waits for the answer.
const STEP_WITHIN: Duration = Duration::from_secs(2);
/// The pause before it is listened again.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Bus {
    /// Makes consumers as workers ask for them, until `stop`. Any instance may, whoever leads: nothing is decided here.
    pub async fn make_consumers(&self, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        let under_way = TaskTracker::new();
        let hosts = Arc::new(Mutex::new(HashSet::new()));
        while !stop.is_cancelled() {
            match self.client.queue_subscribe(subject::CONSUMER_REQUESTS, QUEUE.to_owned()).await {
                Ok(mut requests) => {
                    while let Some(Some(message)) = stop.run_until_cancelled(requests.next()).await {
                        // Not before there is room: what waits is bounded by the subscription.
                        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
                        let (bus, hosts) = (self.clone(), Arc::clone(&hosts));
                        under_way.spawn(async move {
                            bus.make_consumer(message, &hosts).await;
                            drop(permit);
                        });
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot listen for workers that ask for a consumer"),
            }
            stop.run_until_cancelled(tokio::time::sleep(LISTEN_AGAIN_AFTER)).await;
        }
        under_way.close();
        under_way.wait().await;
    }

    async fn make_consumer(&self, message: Message, hosts: &Mutex<HashSet<HostName>>) {
        let lock = || hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match subject::consumer_request_host(&message.subject) {
            // The server stumbles over one that is deleted and made at the same time.
            Ok(host) if !lock().insert(host.clone()) => Err("it is being made; ask again".to_owned()),
            Ok(host) => {
                let made = self.try_make_consumer(&host, &message.payload).await;
                lock().remove(&host);
                made
            }
            Err(error) => Err(error.to_string()),
        };
        match &made {
            Ok(()) => tracing::debug!(subject = %message.subject, "a worker's consumer is made"),
            // One line each would let a host fill the log.
            Err(error) => {
                tracing::debug!(subject = %message.subject, error, "a worker's consumer is not made");
            }
        }
        let Some(reply) = message.reply else { return };
        let answer = ConsumerAnswer::new(made).to_payload();
        // Who does not hear of it asks again.
        if let Err(error) = self.client.publish(reply, answer.into()).await {
            tracing::debug!(%error, "answer about a consumer");
        }
    }

    async fn try_make_consumer(&self, host: &HostName, payload: &[u8]) -> Result<(), String> {
        let request = ConsumerRequest::parse(payload).map_err(|error| with_causes(&error))?;
        let stream = self.jetstream.get_stream_no_info(subject::CONTROL_STREAM).await;
        let stream = stream.map_err(|error| with_causes(&error))?;
        let name = subject::consumer(host);
        // It may not exist, or be on a node that is dead; neither keeps a new one from being made.
        drop(tokio::time::timeout(STEP_WITHIN, stream.delete_consumer(&name)).await);
        let created = stream.create_consumer(config(host, name, &request));
        match tokio::time::timeout(STEP_WITHIN, created).await {
            Ok(created) => created.map(drop).map_err(|error| with_causes(&error)),
            Err(_) => Err("JetStream does not answer".to_owned()),
        }
    }
}

fn config(host: &HostName, name: String, request: &ConsumerRequest) -> pull::Config {
    pull::Config {
        durable_name: Some(name),
        description: Some(format!("the worker of {host}")),
        deliver_policy: request.from.map_or(DeliverPolicy::LastPerSubject, |from| {
            DeliverPolicy::ByStartSequence { start_sequence: from.get() }
        }),
        ack_policy: AckPolicy::Explicit,
        ack_wait: request.ack_wait(),
        max_ack_pending: 1,
        filter_subject: subject::command(host),
        // One per host: replicated, thousands of them would each be a Raft group.
        num_replicas: 1,
        ..pull::Config::default()
    }
}
