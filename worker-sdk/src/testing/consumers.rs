//! The consumer of a worker that may not create its own: the check creates it, as an orchestrator would.

use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Client, jetstream};
use futures::StreamExt;
use os_upgrade_jetstream::consumer;
use os_upgrade_protocol::{HostName, subject};
use tokio::task::JoinSet;

use super::error::{CheckError, nats};

/// Answers requests for the consumer of one host.
#[derive(Debug)]
pub(super) struct ConsumerCreator {
    /// The outcome of the last request; `None` before the first.
    last_outcome: Arc<Mutex<Option<Result<(), String>>>>,
    _listener: JoinSet<()>,
}

impl ConsumerCreator {
    pub(super) async fn start(client: Client, host: HostName) -> Result<Self, CheckError> {
        let mut requests = client.subscribe(subject::consumer_request(&host)).await.map_err(nats)?;
        let last = Arc::<Mutex<_>>::default();
        let last_outcome = Arc::clone(&last);
        let mut listener = JoinSet::new();
        listener.spawn(async move {
            let jetstream = jetstream::new(client.clone());
            while let Some(request) = requests.next().await {
                let created = consumer::create_requested(&jetstream, &host, &request.payload).await;
                let answered = consumer::answer(&client, request, created.clone()).await;
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(created.and(answered));
            }
        });
        Ok(Self { last_outcome, _listener: listener })
    }

    /// Whether the worker has requested a consumer. Then it cannot read back published messages either.
    pub(super) fn was_requested(&self) -> bool {
        self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Why the last requested consumer has not been created; `None` if it has, or none was requested.
    pub(super) fn error(&self) -> Option<String> {
        self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()?.err()
    }
}
