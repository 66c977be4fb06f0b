//! Messages of workers about themselves: announcements, versions, heartbeats, progress. And hints to workers.

use async_nats::Message;
use async_nats::connection::State;
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::{Heartbeat, Hint, HostName, NameError, subject};
use os_upgrade_shell::inventory::WorkerMessage;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Bus;
use super::reader::Read;

impl Bus {
    /// Maps announcements and sends them to `sink`, stored ones first, until `stop`.
    pub async fn read_announcements<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(WorkerMessage) -> T + Send + Sync,
    ) {
        self.read(subject::WORKERS_STREAM, 1, stop, sink, |_, read| announced(&read).map(&map)).await;
    }

    /// Maps versions and sends them to `sink`, stored ones first, until `stop`.
    pub async fn read_versions<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(WorkerMessage) -> T + Send + Sync,
    ) {
        self.read(subject::VERSIONS_STREAM, 1, stop, sink, |_, read| versions(&read).map(&map)).await;
    }

    /// Maps heartbeats and sends them to `sink`, until `stop`.
    pub async fn read_heartbeats<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(WorkerMessage) -> T + Send + Sync,
    ) {
        // Without heartbeats, every host's reachability would stay unknown, which counts as reachable.
        let heartbeat = |message: Message| {
            let host = subject::presence_host(&message.subject)?;
            Ok(WorkerMessage::Heartbeat { host, time: Heartbeat::read(&message.payload).time })
        };
        self.read_core(subject::PRESENCES, stop, sink, |message| heartbeat(message).map(&map)).await;
    }

    /// Maps progress messages and sends them to `sink`, until `stop`.
    pub async fn read_progress<T: Send>(
        &self,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(WorkerMessage) -> T + Send + Sync,
    ) {
        let progress = |message: Message| {
            let host = subject::progress_host(&message.subject)?;
            Ok(WorkerMessage::Progress { host, payload: message.payload })
        };
        self.read_core(subject::PROGRESSES, stop, sink, |message| progress(message).map(&map)).await;
    }

    /// Sends the messages on a core NATS subject to `sink`, until `stop`.
    async fn read_core<T: Send>(
        &self,
        subject: &str,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        read: impl Fn(Message) -> Result<T, NameError> + Send + Sync,
    ) {
        let Some(mut messages) = self.subscribe(subject, &stop).await else { return };
        loop {
            let message = tokio::select! {
                () = stop.cancelled() => return,
                message = messages.next() => message,
            };
            let Some(message) = message else { return };
            let at = message.subject.clone();
            match read(message) {
                Ok(item) => drop(sink.send(item).await),
                Err(error) => tracing::debug!(subject = %at, %error, "not a host"),
            }
        }
    }

    /// Sends a hint to the workers of these hosts. Nothing relies on it, so failures are ignored.
    pub async fn hint(&self, hint: &Hint, hosts: Vec<HostName>) {
        let payload = Bytes::from(hint.to_payload());
        for host in hosts {
            if self.client.connection_state() != State::Connected {
                return;
            }
            drop(self.client.publish(subject::hint(&host), payload.clone()).await);
        }
    }
}

fn announced(read: &Read) -> Option<WorkerMessage> {
    let Read::Message(message) = read else { return Some(WorkerMessage::AllAnnounced) };
    let at = message.info().ok()?.published;
    match subject::worker_parts(&message.subject) {
        Ok((application, host)) => {
            Some(WorkerMessage::Announced { application, host, payload: message.payload.clone(), at })
        }
        Err(error) => {
            tracing::warn!(subject = %message.subject, %error, "announcement");
            None
        }
    }
}

fn versions(read: &Read) -> Option<WorkerMessage> {
    let Read::Message(message) = read else { return None };
    let at = message.info().ok()?.published;
    match subject::versions_host(&message.subject) {
        Ok(host) => Some(WorkerMessage::Versions { host, payload: message.payload.clone(), at }),
        Err(error) => {
            tracing::warn!(subject = %message.subject, %error, "versions");
            None
        }
    }
}
