//! What workers say of themselves: announcements, versions, heartbeats.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use os_upgrade_protocol::{ApplicationName, HostName, subject};
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
}

impl Bus {
    /// Hands announcements to `take`, those that stand in the stream first, until `stop`.
    pub async fn read_announcements<F>(&self, stop: CancellationToken, mut take: F)
    where
        F: AsyncFnMut(Said),
    {
        self.read(subject::WORKERS_STREAM, 1, stop, async |_, read| match read {
            Read::End => take(Said::AnnouncementsRead).await,
            Read::Message(message) => {
                let Ok(at) = message.info().map(|info| info.published) else { return };
                match subject::worker_parts(&message.subject) {
                    Ok((application, host)) => {
                        take(Said::Announced { application, host, payload: message.payload.clone(), at })
                            .await;
                    }
                    Err(error) => tracing::warn!(subject = %message.subject, %error, "announcement"),
                }
            }
        })
        .await;
    }

    /// Hands versions to `take`, those that stand in the stream first, until `stop`.
    pub async fn read_versions<F>(&self, stop: CancellationToken, mut take: F)
    where
        F: AsyncFnMut(Said),
    {
        self.read(subject::VERSIONS_STREAM, 1, stop, async |_, read| {
            let Read::Message(message) = read else { return };
            let Ok(at) = message.info().map(|info| info.published) else { return };
            match subject::versions_host(&message.subject) {
                Ok(host) => take(Said::Versions { host, payload: message.payload.clone(), at }).await,
                Err(error) => tracing::warn!(subject = %message.subject, %error, "versions"),
            }
        })
        .await;
    }

    /// Hands heartbeats to `take`, until `stop`. Across reconnects the client subscribes again by itself.
    pub async fn read_heartbeats<F>(&self, stop: CancellationToken, mut take: F)
    where
        F: AsyncFnMut(HostName),
    {
        let Ok(mut heartbeats) = self.client.subscribe(subject::PRESENCES).await else { return };
        loop {
            let message = tokio::select! {
                () = stop.cancelled() => return,
                message = heartbeats.next() => message,
            };
            let Some(message) = message else { return };
            match subject::presence_host(&message.subject) {
                Ok(host) => take(host).await,
                Err(error) => tracing::debug!(subject = %message.subject, %error, "heartbeat"),
            }
        }
    }
}
