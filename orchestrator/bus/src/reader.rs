//! Continuous reading of a stream, in order from a sequence on, or of a core NATS subject, across reconnects.

use std::marker::PhantomData;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, pull, push};
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::{Client, Subscriber};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Bus;
use super::latest::Latest;

/// How long to wait after an error before reading again.
pub(super) const RETRY: Duration = Duration::from_millis(250);

/// After this long without a message, the stream is checked for one. A consumer lives on one server of a cluster; if
/// that server fails, the missing heartbeats show it only after 10 s.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Messages of a stream, in order.
type Messages = BoxStream<'static, Result<Message, async_nats::Error>>;

/// Where the messages of a reader go.
pub(super) trait Sink<T> {
    /// Takes a message, once there is room for it.
    fn take(&self, item: T) -> impl Future<Output = ()> + Send;
}

impl<T: Send> Sink<T> for mpsc::Sender<T> {
    async fn take(&self, item: T) {
        // The receiver is closed only at the end of the process.
        drop(self.send(item).await);
    }
}

impl<T: Send> Sink<(String, T)> for &Latest<T> {
    async fn take(&self, (key, item): (String, T)) {
        self.put(key, item).await;
    }
}

/// How messages get from the server to a reader.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delivery {
    /// As soon as they are stored. Up to 32 MiB that were stored before wait in this process.
    Pushed,
    /// As the reader asks for them, so that few wait in this process.
    Pulled,
}

/// What a reader passes to its sink.
pub(super) enum Read {
    Message(Box<Message>),
    /// Everything that was in the stream when reading began has been passed. Passed once.
    End,
}

impl Bus {
    /// Reads `stream` from sequence `from` on, maps each message and sends it to `sink`, once and in order, until
    /// `stop`. The reader waits while `sink` is full.
    pub(super) async fn read<T: Send>(
        &self,
        (stream, delivery): (&str, Delivery),
        from: u64,
        stop: CancellationToken,
        sink: impl Sink<T> + Send + Sync,
        map: impl Fn(u64, Read) -> Option<T> + Send + Sync,
    ) {
        let mut reading = Reading { next: from.max(1), end_reported: false, sink, map, item: PhantomData };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                error = self.read_once(stream, delivery, &mut reading) => {
                    tracing::debug!(stream, %error, "reading again");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    /// Subscribes to a core NATS subject, retrying until it succeeds; `None` after `stop`. The client resubscribes
    /// after a reconnect.
    pub(super) async fn subscribe(&self, subject: &str, stop: &CancellationToken) -> Option<Subscriber> {
        subscribe(&self.client, subject, stop).await
    }

    async fn read_once<T: Send, S: Sink<T> + Sync, M: Fn(u64, Read) -> Option<T> + Send + Sync>(
        &self,
        name: &str,
        delivery: Delivery,
        reading: &mut Reading<T, S, M>,
    ) -> async_nats::Error {
        let stream = match self.stream(name).await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        let last = stream.cached_info().state.last_sequence;
        if reading.next > last {
            reading.report_end(last).await;
        }
        // A consumer that starts beyond the end would miss the next messages; one message is read again instead.
        let deliver_policy = match reading.next {
            0 | 1 => DeliverPolicy::All,
            next => DeliverPolicy::ByStartSequence { start_sequence: next - 1 },
        };
        let opened = match delivery {
            Delivery::Pushed => self.pushed(&stream, deliver_policy).await,
            Delivery::Pulled => pulled(&stream, deliver_policy).await,
        };
        let mut messages = match opened {
            Ok(messages) => messages,
            Err(error) => return error,
        };
        loop {
            let Ok(message) = tokio::time::timeout(SILENCE_MAX, messages.next()).await else {
                match self.has_message_from(name, reading.next).await {
                    Some(true) => return "the consumer is silent, and the stream has more messages".into(),
                    // The messages at its end have been deleted.
                    Some(false) => reading.report_end(last).await,
                    None => {}
                }
                continue;
            };
            let Some(message) = message else { return "the subscription ended".into() };
            let message = match message {
                Ok(message) => message,
                Err(error) => return error,
            };
            let sequence = match message.info() {
                Ok(info) => info.stream_sequence,
                Err(error) => return error,
            };
            if sequence < reading.next {
                continue;
            }
            reading.next = sequence + 1;
            reading.pass(sequence, Read::Message(Box::new(message))).await;
            if sequence >= last {
                reading.report_end(sequence).await;
            }
        }
    }

    async fn pushed(
        &self,
        stream: &Stream,
        deliver_policy: DeliverPolicy,
    ) -> Result<Messages, async_nats::Error> {
        let config = push::OrderedConfig {
            deliver_subject: self.client.new_inbox(),
            deliver_policy,
            replay_policy: ReplayPolicy::Instant,
            ..push::OrderedConfig::default()
        };
        let messages = stream.create_consumer(config).await?.messages().await?;
        Ok(messages.err_into().boxed())
    }

    /// Whether the stream has a message at `sequence` or later; `None` if unknown. Its last sequence does not show
    /// that, because its last messages may have been deleted.
    async fn has_message_from(&self, name: &str, sequence: u64) -> Option<bool> {
        let stream = self.stream(name).await.ok()?;
        match stream.get_first_raw_message_by_subject(">", sequence).await {
            Ok(_) => Some(true),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Some(false),
            Err(_) => None,
        }
    }
}

async fn pulled(stream: &Stream, deliver_policy: DeliverPolicy) -> Result<Messages, async_nats::Error> {
    let config = pull::OrderedConfig {
        deliver_policy,
        replay_policy: ReplayPolicy::Instant,
        ..pull::OrderedConfig::default()
    };
    let messages = stream.create_consumer(config).await?.messages().await?;
    Ok(messages.err_into().boxed())
}

/// Subscribes to a core NATS subject, retrying until it succeeds; `None` after `stop`. The client resubscribes after a
/// reconnect.
pub(super) async fn subscribe(
    client: &Client,
    subject: &str,
    stop: &CancellationToken,
) -> Option<Subscriber> {
    loop {
        match client.subscribe(subject.to_owned()).await {
            Ok(subscriber) => return Some(subscriber),
            Err(error) => tracing::warn!(subject, %error, "cannot subscribe"),
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

/// The position of a reader, and where its messages go.
struct Reading<T, S, M> {
    next: u64,
    end_reported: bool,
    sink: S,
    map: M,
    item: PhantomData<T>,
}

impl<T: Send, S: Sink<T> + Sync, M: Fn(u64, Read) -> Option<T> + Send + Sync> Reading<T, S, M> {
    async fn pass(&mut self, sequence: u64, read: Read) {
        if let Some(item) = (self.map)(sequence, read) {
            self.sink.take(item).await;
        }
    }

    async fn report_end(&mut self, sequence: u64) {
        if !self.end_reported {
            self.end_reported = true;
            self.pass(sequence, Read::End).await;
        }
    }
}
