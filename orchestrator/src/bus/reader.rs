//! Reading a stream in order from a sequence on, for as long as somebody wants to, across reconnects.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, push};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Bus;

/// How long to wait before reading is begun again after an error.
const RETRY: Duration = Duration::from_millis(250);

/// What a reader hands on.
pub(super) enum Read {
    /// A message, with its place in the stream.
    Message(Box<async_nats::jetstream::Message>),
    /// Everything that stood in the stream when reading began has been handed on.
    End,
}

impl Bus {
    /// Reads `stream` from sequence `from` on and hands every message to `take` once, in order, until `stop`.
    /// `take` may wait: that holds the reader back.
    pub(super) async fn read<F>(&self, stream: &str, from: u64, stop: CancellationToken, mut take: F)
    where
        F: AsyncFnMut(u64, Read),
    {
        let mut next = from.max(1);
        let mut end_said = false;
        loop {
            let reading = self.read_once(stream, &mut next, &mut end_said, &mut take);
            tokio::select! {
                () = stop.cancelled() => return,
                error = reading => tracing::debug!(stream, %error, "reading is begun again"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    async fn read_once<F>(
        &self,
        name: &str,
        next: &mut u64,
        end_said: &mut bool,
        take: &mut F,
    ) -> async_nats::Error
    where
        F: AsyncFnMut(u64, Read),
    {
        let stream = match self.stream(name).await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        let last = stream.cached_info().state.last_sequence;
        if !*end_said && *next > last {
            *end_said = true;
            take(last, Read::End).await;
        }
        // A consumer that starts beyond the end would miss what comes next; one message is read again instead.
        let deliver_policy = match *next {
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
        while let Some(message) = messages.next().await {
            let message = match message {
                Ok(message) => message,
                Err(error) => return error.into(),
            };
            let sequence = match message.info() {
                Ok(info) => info.stream_sequence,
                Err(error) => return error,
            };
            if sequence < *next {
                continue;
            }
            *next = sequence + 1;
            take(sequence, Read::Message(Box::new(message))).await;
            if !*end_said && sequence >= last {
                *end_said = true;
                take(sequence, Read::End).await;
            }
        }
        "the subscription ended".into()
    }
}
