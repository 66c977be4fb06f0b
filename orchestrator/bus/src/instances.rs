//! What operators want to know of the instances and of the servers: heartbeats of instances over core NATS, and the
//! copies of the streams.

use std::time::Duration;

use async_nats::connection::State;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use os_upgrade_protocol::subject;
use os_upgrade_site::instances::Heartbeat;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Bus, lease};

/// How long looking at the streams' copies may take.
const COPIES_WITHIN: Duration = Duration::from_secs(2);

/// A stream and where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamCopies {
    /// Its name.
    pub stream: String,
    /// Where it is kept, or why that is not known.
    pub copies: Result<Copies, String>,
}

/// Where a stream is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    /// The server that leads it; `None` while they elect one, and for a server that is alone.
    pub leader: Option<String>,
    /// The others.
    pub replicas: Vec<Replica>,
}

/// A copy that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The server's name.
    pub server: String,
    /// Whether it has everything.
    pub current: bool,
    /// Whether the leader believes it to be down.
    pub offline: bool,
    /// How many of the leader's operations it has yet to make.
    pub lag: u64,
}

impl Bus {
    /// Says something of this instance, if the bus is there.
    pub async fn send_heartbeat(&self, heartbeat: &Heartbeat) {
        if self.client.connection_state() != State::Connected {
            return;
        }
        let Ok(payload) = serde_json::to_vec(heartbeat) else { return };
        // One that is lost is followed by another.
        drop(self.client.publish(subject::instance(&heartbeat.instance), payload.into()).await);
    }

    /// Hands payloads of instances' heartbeats to `sink`, until `stop`.
    pub async fn read_instances(&self, stop: CancellationToken, sink: mpsc::Sender<Bytes>) {
        let Some(mut heartbeats) = self.subscribe(subject::INSTANCES, &stop).await else { return };
        loop {
            let message = tokio::select! {
                () = stop.cancelled() => return,
                message = heartbeats.next() => message,
            };
            let Some(message) = message else { return };
            drop(sink.send(message.payload).await);
        }
    }

    /// Where the streams are kept.
    pub async fn copies(&self) -> Vec<StreamCopies> {
        let lease = lease::stream();
        let names = [
            subject::JOURNAL_STREAM,
            subject::CONTROL_STREAM,
            subject::VERSIONS_STREAM,
            subject::WORKERS_STREAM,
            &lease,
        ];
        join_all(names.map(|name| async move {
            let looked = tokio::time::timeout(COPIES_WITHIN, self.copies_of(name)).await;
            let late = |_| Err("the bus does not answer".to_owned());
            StreamCopies { stream: name.to_owned(), copies: looked.unwrap_or_else(late) }
        }))
        .await
    }

    async fn copies_of(&self, name: &str) -> Result<Copies, String> {
        let stream = self.stream(name).await.map_err(|error| error.to_string())?;
        let Some(cluster) = &stream.cached_info().cluster else {
            return Ok(Copies { leader: None, replicas: Vec::new() });
        };
        let replicas = cluster.replicas.iter().map(|peer| Replica {
            server: peer.name.clone(),
            current: peer.current,
            offline: peer.offline,
            lag: peer.lag.unwrap_or_default(),
        });
        Ok(Copies { leader: cluster.leader.clone(), replicas: replicas.collect() })
    }
}
