//! Information for operators: heartbeats of instances over core NATS, and the replicas of the streams.

use std::time::Duration;

use async_nats::connection::State;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use os_upgrade_protocol::subject;
use os_upgrade_site::instances::Heartbeat;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Bus;
use super::streams::LEASE_STREAM;

/// How long reading a stream's replicas may take.
const REPLICATION_WITHIN: Duration = Duration::from_secs(2);

/// A stream and its replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReplication {
    /// Its name.
    pub stream: String,
    /// Its replicas, or why they are unknown.
    pub replication: Result<Replication, String>,
}

/// The servers that store a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// The server that leads it; `None` during an election, and without a cluster.
    pub leader: Option<String>,
    /// The other servers.
    pub replicas: Vec<Replica>,
}

/// A follower of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The server's name.
    pub server: String,
    /// Whether it is up to date.
    pub current: bool,
    /// Whether the leader considers it offline.
    pub offline: bool,
    /// How many of the leader's operations it lacks.
    pub lag: u64,
}

impl Bus {
    /// Publishes a heartbeat of this instance, if the bus is connected.
    pub async fn send_heartbeat(&self, heartbeat: &Heartbeat) {
        if self.client.connection_state() != State::Connected {
            return;
        }
        let Ok(payload) = serde_json::to_vec(heartbeat) else { return };
        // A lost heartbeat is followed by another.
        drop(self.client.publish(subject::instance(&heartbeat.instance), payload.into()).await);
    }

    /// Sends the payloads of instances' heartbeats to `sink`, until `stop`.
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

    /// The replicas of every stream.
    pub async fn replication(&self) -> Vec<StreamReplication> {
        let names = [
            subject::JOURNAL_STREAM,
            subject::CONTROL_STREAM,
            subject::VERSIONS_STREAM,
            subject::WORKERS_STREAM,
            LEASE_STREAM,
        ];
        join_all(names.map(|name| async move {
            let replication = tokio::time::timeout(REPLICATION_WITHIN, self.replication_of(name)).await;
            let late = |_| Err("NATS does not answer".to_owned());
            StreamReplication { stream: name.to_owned(), replication: replication.unwrap_or_else(late) }
        }))
        .await
    }

    async fn replication_of(&self, name: &str) -> Result<Replication, String> {
        let stream = self.stream(name).await.map_err(|error| error.to_string())?;
        let Some(cluster) = &stream.cached_info().cluster else {
            return Ok(Replication { leader: None, replicas: Vec::new() });
        };
        let replicas = cluster.replicas.iter().map(|peer| Replica {
            server: peer.name.clone(),
            current: peer.current,
            offline: peer.offline,
            lag: peer.lag.unwrap_or_default(),
        });
        Ok(Replication { leader: cluster.leader.clone(), replicas: replicas.collect() })
    }
}
