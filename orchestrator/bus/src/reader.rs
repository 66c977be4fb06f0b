//! Reading a stream in order from a sequence on, or a subject of core NATS, for as long as somebody wants to, across
//! reconnects.

use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, push};
use async_nats::jetstream::stream::RawMessageErrorKind;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Bus;

/// How long to wait before reading is begun again after an error.
pub(super) const RETRY: Duration = Duration::from_millis(250);

/// After so long without a message the stream is asked whether there is one. A consumer lives on one server of a cluster,
/// and that this one is gone shows by its missing heartbeats after 10 s only.
const SILENT_FOR: Duration = Duration::from_secs(2);

/// What a reader hands on.
pub(super) enum Read {
    /// A message, with its place in the stream.
    Message(Box<async_nats::jetstream::Message>),
    /// Everything that stood in the stream when reading began has been handed on.
    End,
}

impl Bus {
    /// Reads `stream` from sequence `from` on and hands what `map` makes of each message to `sink`, once and in
    /// order, until `stop`. A sink that is full holds the reader back.
    pub(super) async fn read<T: Send>(
        &self,
        stream: &str,
        from: u64,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(u64, Read) -> Option<T> + Send + Sync,
    ) {
        let mut reading = Reading { next: from.max(1), end_said: false, sink, map };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                error = self.read_once(stream, &mut reading) => {
                    tracing::debug!(stream, %error, "reading is begun again");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    /// Subscribes to a subject of core NATS, however often it takes; `None` when it is told to stop. Across reconnects
    /// the client subscribes again by itself.
    pub(super) async fn subscribe(&self, subject: &str, stop: &CancellationToken) -> Option<Subscriber> {
        loop {
            match self.client.subscribe(subject.to_owned()).await {
                Ok(subscriber) => return Some(subscriber),
                Err(error) => tracing::warn!(subject, %error, "cannot subscribe"),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    async fn read_once<T: Send, M: Fn(u64, Read) -> Option<T> + Send + Sync>(
        &self,
        name: &str,
        reading: &mut Reading<T, M>,
    ) -> async_nats::Error {
        let stream = match self.stream(name).await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        let last = stream.cached_info().state.last_sequence;
        if reading.next > last {
            reading.say_end(last).await;
        }
        // A consumer that starts beyond the end would miss what comes next; one message is read again instead.
        let deliver_policy = match reading.next {
            0 | 1 => DeliverPolicy::All,
            next => DeliverPolicy::ByStartSequence { start_sequence: next - 1 },
        };
        let config = push::OrderedConfig {
            deliver_subject: self.client.new_inbox(),
            deliver_policy,
            replay_policy: ReplayPolicy::Instant,
            ..push::OrderedConfig::default()
        };
        let consumer = match stream.create_consumer(config).await {
            Ok(consumer) => consumer,
            Err(error) => return error.into(),
        };
        let mut messages = match consumer.messages().await {
            Ok(messages) => messages,
            Err(error) => return error.into(),
        };
        loop {
            let Ok(message) = tokio::time::timeout(SILENT_FOR, messages.next()).await else {
                match self.has_come_to(name, reading.next).await {
                    Some(true) => return "the consumer is silent, and the stream has gone on".into(),
                    // What stood at its end has been deleted.
                    Some(false) => reading.say_end(last).await,
                    None => {}
                }
                continue;
            };
            let Some(message) = message else { return "the subscription ended".into() };
            let message = match message {
                Ok(message) => message,
                Err(error) => return error.into(),
            };
            let sequence = match message.info() {
                Ok(info) => info.stream_sequence,
                Err(error) => return error,
            };
            if sequence < reading.next {
                continue;
            }
            reading.next = sequence + 1;
            reading.hand_on(sequence, Read::Message(Box::new(message))).await;
            if sequence >= last {
                reading.say_end(sequence).await;
            }
        }
    }

    /// Whether a message stands in the stream at `sequence` or after it; `None` when that cannot be found out. Where it
    /// ends says nothing, for its last messages may have been deleted.
    async fn has_come_to(&self, name: &str, sequence: u64) -> Option<bool> {
        let stream = self.stream(name).await.ok()?;
        match stream.get_first_raw_message_by_subject(">", sequence).await {
            Ok(_) => Some(true),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Some(false),
            Err(_) => None,
        }
    }
}

/// How far a reader has come.
struct Reading<T, M> {
    next: u64,
    end_said: bool,
    sink: mpsc::Sender<T>,
    map: M,
}

impl<T: Send, M: Fn(u64, Read) -> Option<T> + Send + Sync> Reading<T, M> {
    async fn hand_on(&mut self, sequence: u64, read: Read) {
        if let Some(item) = (self.map)(sequence, read) {
            // Nobody listens any more when everything is about to stop.
            drop(self.sink.send(item).await);
        }
    }

    async fn say_end(&mut self, sequence: u64) {
        if !self.end_said {
            self.end_said = true;
            self.hand_on(sequence, Read::End).await;
        }
    }
}
