//! The consumer of a worker that may not make its own: the check makes it, as an orchestrator would.

use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Client, jetstream};
use futures::StreamExt;
use os_upgrade_jetstream::consumer;
use os_upgrade_protocol::{HostName, subject};
use tokio::task::JoinSet;

use super::error::{CheckError, nats};

/// What answers requests for the consumer of one host.
#[derive(Debug)]
pub(super) struct ConsumerMaker {
    /// What came of the last request.
    made: Arc<Mutex<Option<Result<(), String>>>>,
    _listener: JoinSet<()>,
}

impl ConsumerMaker {
    pub(super) async fn start(client: Client, host: HostName) -> Result<Self, CheckError> {
        let mut requests = client.subscribe(subject::consumer_request(&host)).await.map_err(nats)?;
        let last = Arc::<Mutex<_>>::default();
        let made = Arc::clone(&last);
        let mut listener = JoinSet::new();
        listener.spawn(async move {
            let jetstream = jetstream::new(client.clone());
            while let Some(request) = requests.next().await {
                let made = consumer::make_requested(&jetstream, &host, &request.payload).await;
                let told = consumer::answer(&client, request, made.clone()).await;
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.and(told));
            }
        });
        Ok(Self { made, _listener: listener })
    }

    /// Whether the worker has asked: it cannot read back what it has published then either.
    pub(super) fn is_asked(&self) -> bool {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Why the worker has not been given the consumer that it has asked for.
    pub(super) fn trouble(&self) -> Option<String> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()?.err()
    }
}
