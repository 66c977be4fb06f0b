//! Messages of workers about themselves: announcements, versions, heartbeats, progress. And hints to workers.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::stream::{self, RawMessageErrorKind};
use async_nats::{Client, Message};
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::limits::{
    ANNOUNCEMENT_BYTES_MAX, APPLIED_BYTES_MAX, PROGRESS_BYTES_MAX, VERSIONS_BYTES_MAX,
};
use os_upgrade_protocol::{Heartbeat, Hint, HostName, NameError, subject};
use os_upgrade_shell::inventory::WorkerMessage;
use tokio_util::sync::CancellationToken;

use super::Bus;
use super::latest::Latest;
use super::reader::{Delivery, Read, subscribe};

/// How often it is checked whether messages were lost.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The key under which it waits that messages were lost, or that all announcements were read. No subject is like it.
const NOTICE: &str = " ";

/// A connection for what workers say over core NATS. The server and the client drop such messages when there are too
/// many; on a connection of its own that delays nothing else. Clones share it.
#[derive(Debug, Clone)]
pub struct WorkerConnection {
    pub(super) client: Client,
    /// Counts occasions on which messages may have been lost.
    losses: Arc<AtomicU64>,
}

impl WorkerConnection {
    pub(super) fn new(client: Client, losses: Arc<AtomicU64>) -> Self {
        Self { client, losses }
    }

    /// Puts heartbeats and progress into `queue`, and [`WorkerMessage::ReportsLost`] whenever some may have been lost,
    /// until `stop`.
    pub async fn read_reports(&self, stop: CancellationToken, queue: Latest<WorkerMessage>) {
        let subscribe = async |subject| subscribe(&self.client, subject, &stop).await;
        let Some(heartbeats) = subscribe(subject::PRESENCES).await else { return };
        let Some(progress) = subscribe(subject::PROGRESSES).await else { return };
        let mut messages = futures::stream::select(heartbeats, progress);
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        let mut losses = 0;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                message = messages.next() => {
                    let Some(message) = message else { return };
                    let subject = message.subject.clone();
                    match report(message) {
                        Ok(report) => if queue.try_put(&key(&subject, &report), report).is_err() {
                            self.losses.fetch_add(1, Ordering::Relaxed);
                        },
                        Err(error) => tracing::debug!(%subject, %error, "not a host"),
                    }
                }
                _ = check.tick() => {
                    let now = self.losses.load(Ordering::Relaxed);
                    if now != losses || self.client.connection_state() != State::Connected {
                        losses = now;
                        queue.force(NOTICE, WorkerMessage::ReportsLost);
                    }
                }
            }
        }
    }
}

/// A payload that is larger than `max` bytes stays so, but takes no more room than that needs.
fn cut(payload: Bytes, max: usize) -> Bytes {
    // A slice would keep the whole.
    if payload.len() > max { Bytes::copy_from_slice(&payload[..=max]) } else { payload }
}

/// The key under which a report on `subject` waits. Those of an agent wait beside those of the host's other workers, which say nothing of the
/// agent and must not take its place. No subject ends so.
fn key<'a>(subject: &'a str, report: &WorkerMessage) -> Cow<'a, str> {
    if matches!(report, WorkerMessage::Heartbeat { units: true, .. }) {
        format!("{subject} units").into()
    } else {
        subject.into()
    }
}

fn report(message: Message) -> Result<WorkerMessage, NameError> {
    if message.subject.starts_with(subject::PRESENCE_PREFIX) {
        let host = subject::presence_host(&message.subject)?;
        let Heartbeat { time, units } = Heartbeat::read(&message.payload);
        Ok(WorkerMessage::Heartbeat { host, time, units })
    } else {
        let host = subject::progress_host(&message.subject)?;
        Ok(WorkerMessage::Progress { host, payload: cut(message.payload, PROGRESS_BYTES_MAX) })
    }
}

impl Bus {
    /// Puts announcements into `queue`, stored ones first, until `stop`.
    pub async fn read_announcements(&self, stop: CancellationToken, queue: Latest<WorkerMessage>) {
        self.read((subject::WORKERS_STREAM, Delivery::Pushed), 1, stop, &queue, announced).await;
    }

    /// Puts versions into `queue`, stored ones first, until `stop`.
    pub async fn read_versions(&self, stop: CancellationToken, queue: Latest<WorkerMessage>) {
        self.read((subject::VERSIONS_STREAM, Delivery::Pushed), 1, stop, &queue, |_, read| versions(&read))
            .await;
    }

    /// Puts what hosts have of what they are to have into `queue`, stored reports first, until `stop`.
    pub async fn read_applied(&self, stop: CancellationToken, queue: Latest<WorkerMessage>) {
        self.read((subject::APPLIED_STREAM, Delivery::Pulled), 1, stop, &queue, |_, read| applied(&read))
            .await;
    }

    /// Deletes the messages with these sequences from the stream of announcements, one after the other. Returns how many
    /// were deleted, or are not there: the next one could not be deleted.
    ///
    /// They are named by sequence only. The subject of a message may be what its sender likes, such as one with a wildcard.
    pub async fn delete_announcements(&self, sequences: &[u64]) -> usize {
        let Ok(stream) = self.jetstream.get_stream_no_info(subject::WORKERS_STREAM).await else { return 0 };
        let mut deleted = 0;
        for sequence in sequences {
            if !is_deleted(&stream, *sequence).await {
                break;
            }
            deleted += 1;
        }
        deleted
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

/// Deletes a message. Returns whether it is certainly not in the stream any more.
async fn is_deleted<I>(stream: &stream::Stream<I>, sequence: u64) -> bool {
    let Err(error) = stream.delete_message(sequence).await else { return true };
    let found = stream.get_raw_message(sequence).await;
    let is_gone = found.is_err_and(|error| error.kind() == RawMessageErrorKind::NoMessageFound);
    if !is_gone {
        tracing::debug!(%error, sequence, "cannot delete an announcement that does not count");
    }
    is_gone
}

fn announced(sequence: u64, read: Read) -> Option<(String, WorkerMessage)> {
    let Read::Message(message) = read else { return Some((NOTICE.to_owned(), WorkerMessage::AllAnnounced)) };
    let at = message.info().ok()?.published;
    let subject = message.subject.to_string();
    let announced = match subject::worker_parts(&subject) {
        Ok((application, host)) => {
            let payload = cut(message.payload.clone(), ANNOUNCEMENT_BYTES_MAX);
            WorkerMessage::Announced { application, host, payload, sequence, at }
        }
        Err(error) => {
            tracing::warn!(subject, %error, "announcement");
            WorkerMessage::Stray { sequence }
        }
    };
    Some((subject, announced))
}

fn versions(read: &Read) -> Option<(String, WorkerMessage)> {
    let Read::Message(message) = read else { return None };
    let at = message.info().ok()?.published;
    let subject = message.subject.to_string();
    match subject::versions_host(&subject) {
        Ok(host) => {
            let payload = cut(message.payload.clone(), VERSIONS_BYTES_MAX);
            Some((subject, WorkerMessage::Versions { host, payload, at }))
        }
        Err(error) => {
            tracing::warn!(subject, %error, "versions");
            None
        }
    }
}

fn applied(read: &Read) -> Option<(String, WorkerMessage)> {
    let Read::Message(message) = read else { return None };
    let subject = message.subject.to_string();
    match subject::applied_host(&subject) {
        Ok(host) => {
            let payload = cut(message.payload.clone(), APPLIED_BYTES_MAX);
            Some((subject, WorkerMessage::Applied { host, payload }))
        }
        Err(error) => {
            tracing::warn!(subject, %error, "report on what a host has");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::Announcement;

    use super::*;

    #[test]
    fn heartbeats_of_workers_do_not_replace_those_of_the_agent() {
        let heartbeat =
            |units| WorkerMessage::Heartbeat { host: HostName::new("h1").unwrap(), time: None, units };
        let subject = "os-upgrade.presence.h1";
        assert_eq!(key(subject, &heartbeat(false)), subject);
        assert_eq!(key(subject, &heartbeat(true)), "os-upgrade.presence.h1 units");
    }

    #[test]
    fn large_payload_is_cut_and_still_too_large() {
        let large = Bytes::from(vec![b' '; 1 << 20]);
        let kept = cut(large, ANNOUNCEMENT_BYTES_MAX);
        assert_eq!(kept.len(), ANNOUNCEMENT_BYTES_MAX + 1);
        assert!(Announcement::parse(&kept).is_err());
        assert_eq!(cut(Bytes::from_static(b"{}"), ANNOUNCEMENT_BYTES_MAX), "{}");
    }
}
