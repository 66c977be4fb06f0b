//! Consumers created for workers that may not create their own. A client that creates a consumer chooses the subject to
//! which its messages are delivered, which could be any in this account, including the JetStream API. The server lets a
//! worker request a consumer here for its own host only.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::Message;
use futures::StreamExt;
use os_upgrade_jetstream::consumer;
use os_upgrade_protocol::{HostName, subject};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Bus;
use super::worker_reports::WorkerConnection;

/// The queue group in which the instances of a site share requests.
const QUEUE: &str = "orchestrators";
/// The most consumers created at once; further requests wait.
const UNDER_WAY_MAX: usize = 16;
/// The pause before subscribing again.
const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);

impl Bus {
    /// Creates the consumers that workers request over `workers`, until `stop`. Any instance may do so, leading or not.
    pub async fn create_consumers(&self, workers: &WorkerConnection, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        let under_way = TaskTracker::new();
        let hosts = Arc::new(Mutex::new(HashSet::new()));
        while !stop.is_cancelled() {
            match workers.client.queue_subscribe(subject::CONSUMER_REQUESTS, QUEUE.to_owned()).await {
                Ok(mut requests) => {
                    while let Some(Some(message)) = stop.run_until_cancelled(requests.next()).await {
                        // Waiting requests stay in the subscription, which bounds them.
                        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
                        let (bus, workers, hosts) = (self.clone(), workers.clone(), Arc::clone(&hosts));
                        under_way.spawn(async move {
                            bus.make_consumer(&workers, message, &hosts).await;
                            drop(permit);
                        });
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot listen for workers that ask for a consumer"),
            }
            stop.run_until_cancelled(tokio::time::sleep(RESUBSCRIBE_DELAY)).await;
        }
        under_way.close();
        under_way.wait().await;
    }

    async fn make_consumer(
        &self,
        workers: &WorkerConnection,
        message: Message,
        hosts: &Mutex<HashSet<HostName>>,
    ) {
        let lock = || hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match subject::consumer_request_host(&message.subject) {
            // The server does not cope with a consumer that is deleted and created at the same time.
            Ok(host) if !lock().insert(host.clone()) => Err("it is being created; ask again".to_owned()),
            Ok(host) => {
                let made = consumer::create_requested(&self.jetstream, &host, &message.payload).await;
                lock().remove(&host);
                made
            }
            Err(error) => Err(error.to_string()),
        };
        match &made {
            Ok(()) => tracing::debug!(subject = %message.subject, "a worker's consumer is created"),
            // At a higher level, a host could fill the log.
            Err(error) => {
                tracing::debug!(subject = %message.subject, error, "a worker's consumer is not created");
            }
        }
        if let Err(error) = consumer::answer(&workers.client, message, made).await {
            tracing::debug!(error, "cannot send the response to a request for a consumer");
        }
    }
}
