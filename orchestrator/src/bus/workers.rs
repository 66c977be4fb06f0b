//! What workers say of themselves: announcements, versions, heartbeats.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use os_upgrade_protocol::{ApplicationName, HostName, subject};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Bus;
use super::reader::Read;

/// Something a worker said.
#[derive(Debug)]
pub enum Said {
    /// It announced itself, or withdrew.
    Announced {
        /// The application its subject names.
        application: ApplicationName,
        /// The host its subject names.
        host: HostName,
        /// The payload.
        payload: Bytes,
        /// When the bus took it.
        at: DateTime<Utc>,
    },
    /// It published versions.
    Versions {
        /// The host its subject names.
        host: HostName,
        /// The payload.
        payload: Bytes,
        /// When the bus took it.
        at: DateTime<Utc>,
    },
    /// All announcements that stood in the stream have been handed on.
    AnnouncementsRead,
    /// It is alive.
    Heartbeat(HostName),
}

impl Bus {
    /// Hands what `map` makes of announcements to `sink`, those that stand in the stream first, until `stop`.
    pub async fn read_announcements<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(Said) -> T + Send + Sync,
    ) {
        self.read(subject::WORKERS_STREAM, 1, stop, sink, |_, read| announced(&read).map(&map)).await;
    }

    /// Hands what `map` makes of versions to `sink`, those that stand in the stream first, until `stop`.
    pub async fn read_versions<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(Said) -> T + Send + Sync,
    ) {
        self.read(subject::VERSIONS_STREAM, 1, stop, sink, |_, read| versions(&read).map(&map)).await;
    }

    /// Hands what `map` makes of heartbeats to `sink`, until `stop`.
    pub async fn read_heartbeats<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(Said) -> T + Send + Sync,
    ) {
        // Without them every host's reachability would stay unknown, and that counts as reachable.
        let Some(mut heartbeats) = self.subscribe(subject::PRESENCES, &stop).await else { return };
        loop {
            let message = tokio::select! {
                () = stop.cancelled() => return,
                message = heartbeats.next() => message,
            };
            let Some(message) = message else { return };
            match subject::presence_host(&message.subject) {
                Ok(host) => drop(sink.send(map(Said::Heartbeat(host))).await),
                Err(error) => tracing::debug!(subject = %message.subject, %error, "heartbeat"),
            }
        }
    }
}

fn announced(read: &Read) -> Option<Said> {
    let Read::Message(message) = read else { return Some(Said::AnnouncementsRead) };
    let at = message.info().ok()?.published;
    match subject::worker_parts(&message.subject) {
        Ok((application, host)) => {
            Some(Said::Announced { application, host, payload: message.payload.clone(), at })
        }
        Err(error) => {
            tracing::warn!(subject = %message.subject, %error, "announcement");
            None
        }
    }
}

fn versions(read: &Read) -> Option<Said> {
    let Read::Message(message) = read else { return None };
    let at = message.info().ok()?.published;
    match subject::versions_host(&message.subject) {
        Ok(host) => Some(Said::Versions { host, payload: message.payload.clone(), at }),
        Err(error) => {
            tracing::warn!(subject = %message.subject, %error, "versions");
            None
        }
    }
}
