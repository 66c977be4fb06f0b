//! The host's durable consumer: looked up or created, read, and replaced when it has become silent.

use std::num::NonZeroU64;
use std::time::{Duration, Instant, SystemTime};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::MessagesErrorKind;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_jetstream::consumer;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ConsumerRequest, HostName, header, subject};
use os_upgrade_worker_rules::consumer::{ConsumerState, Plan, SavedState, last_sequence_at_open, plan};
use os_upgrade_worker_rules::{DeliverFrom, Event, Received, StreamState, limits};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use super::input::Input;
use crate::bus::Bus;

/// The interval of the server's idle heartbeats; after two missed ones, 4 s, the consumer counts as silent.
const IDLE_HEARTBEAT: Duration = Duration::from_secs(2);
/// How long one pull request is valid.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
/// Time limit for looking up a consumer. If its server is gone, there is no answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
/// The first pause after a failure; doubled up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Why reading has ended.
struct ReadFailure {
    error: String,
    /// The consumer is dead or deleted and must be replaced.
    replace: bool,
}

/// Reads the commands of `host` and passes them to the loop; returns only when the loop has ended.
pub(super) async fn run(
    bus: Bus,
    host: HostName,
    saved: watch::Receiver<SavedState>,
    inputs: mpsc::Sender<Input>,
) {
    let mut pause = PAUSE_FIRST;
    let mut replace = false;
    let mut throttle = LogThrottle::default();
    loop {
        let stream = bus.await_stream(subject::CONTROL_STREAM).await;
        let known = *saved.borrow();
        let failure = match open(&bus, &stream, &host, known, replace).await {
            Ok((consumer, last_sequence_at_open)) => {
                debug!(last_sequence_at_open, "commands are read");
                let epoch = bus.link().borrow().epoch;
                let reconnected = async {
                    // The sender lives in `bus`, so this cannot fail.
                    let _ = bus.link().wait_for(|link| link.epoch != epoch).await;
                };
                tokio::select! {
                    (alive, failure) = read(&consumer, last_sequence_at_open, &inputs) => {
                        if alive {
                            pause = PAUSE_FIRST;
                            throttle.reset();
                        }
                        failure
                    }
                    () = reconnected => {
                        // It may be another server, or one that has lost data: the consumer is checked again.
                        debug!("reconnected");
                        replace = false;
                        continue;
                    }
                }
            }
            Err(error) => ReadFailure { error, replace },
        };
        if inputs.is_closed() {
            return;
        }
        // Without a connection, the failure does not mean that the consumer is dead.
        replace = failure.replace && bus.is_connected();
        if bus.is_connected() && throttle.is_due(&failure.error, Instant::now()) {
            warn!(replace, "commands cannot be read: {}", failure.error);
        } else {
            debug!("commands cannot be read: {}", failure.error);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Opens the existing consumer, or a new one. Also returns the stream sequence up to which commands may have been
/// delivered to another process.
async fn open(
    bus: &Bus,
    stream: &Stream,
    host: &HostName,
    saved: SavedState,
    replace: bool,
) -> Result<(PullConsumer, u64), String> {
    let name = subject::consumer(host);
    let info = stream.cached_info();
    let state = StreamState { created: utc(info.created), last_sequence: info.state.last_sequence };
    let mut existing = None;
    if !replace {
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, stream.get_consumer(&name)).await;
        existing = found.ok().and_then(Result::ok);
    }
    let seen = existing.as_ref().map(|consumer| consumer_state(consumer, host));
    let last_sequence_at_open = last_sequence_at_open(seen, state);
    let from = match (plan(seen, saved, state), existing) {
        (Plan::Keep, Some(consumer)) => return Ok((consumer, last_sequence_at_open)),
        (Plan::Keep, None) => DeliverFrom::LastOfSubject,
        (Plan::Make(from), _) => from,
    };
    if bus.is_imported() {
        debug!(?from, "requesting the consumer from the orchestrator");
        bus.request_consumer(host, request(from)).await?;
        info!(?from, "the orchestrator has created the consumer");
        let created = tokio::time::timeout(LOOKUP_TIMEOUT, stream.get_consumer(&name)).await;
        let created = created.map_err(|_| "the lookup of the new consumer timed out".to_owned())?;
        return created.map(|consumer| (consumer, last_sequence_at_open)).map_err(|error| error.to_string());
    }
    info!(?from, "creating the consumer");
    let created = consumer::create(stream, host, &request(from)).await?;
    Ok((created, last_sequence_at_open))
}

fn request(from: DeliverFrom) -> ConsumerRequest {
    let from = match from {
        DeliverFrom::Sequence(sequence) => NonZeroU64::new(sequence),
        DeliverFrom::LastOfSubject => None,
    };
    let ack_wait = limits::ACK_WAIT.num_seconds();
    ConsumerRequest { from, ack_wait_secs: u64::try_from(ack_wait).ok().and_then(NonZeroU64::new) }
}

/// An existing consumer in the terms of the rules.
fn consumer_state(consumer: &PullConsumer, host: &HostName) -> ConsumerState {
    let info = consumer.cached_info();
    let config = &info.config;
    let wanted = consumer::config(host, &request(DeliverFrom::LastOfSubject));
    ConsumerState {
        as_configured: config.filter_subject == wanted.filter_subject
            && config.ack_policy == wanted.ack_policy
            && config.max_ack_pending == wanted.max_ack_pending
            && config.ack_wait == wanted.ack_wait,
        delivered: info.delivered.stream_sequence,
        ack_floor: info.ack_floor.stream_sequence,
        pending: info.num_ack_pending,
        waiting: info.num_waiting,
    }
}

/// Passes commands to the loop until reading fails. Also returns whether the consumer has delivered anything.
async fn read(
    consumer: &PullConsumer,
    last_sequence_at_open: u64,
    inputs: &mpsc::Sender<Input>,
) -> (bool, ReadFailure) {
    let messages = consumer
        .stream()
        .max_messages_per_batch(1)
        .heartbeat(IDLE_HEARTBEAT)
        .expires(PULL_EXPIRES)
        .messages()
        .await;
    let mut messages = match messages {
        Ok(messages) => messages,
        Err(error) => {
            let error = with_causes(&error);
            return (false, ReadFailure { error, replace: false });
        }
    };
    let mut read = false;
    loop {
        match messages.next().await {
            Some(Ok(message)) => {
                read = true;
                if let Some(received) = received(&message, last_sequence_at_open)
                    && inputs.send(Input::Event(Event::CommandReceived(received))).await.is_err()
                {
                    let error = "the worker is shutting down".to_owned();
                    return (read, ReadFailure { error, replace: false });
                }
            }
            Some(Err(error)) => {
                let replace = is_fatal(error.kind());
                let error = with_causes(&error);
                return (read, ReadFailure { error, replace });
            }
            None => {
                let error = "the consumer's messages have ended".to_owned();
                return (read, ReadFailure { error, replace: false });
            }
        }
    }
}

/// Whether the error means that the consumer is dead or deleted.
const fn is_fatal(kind: MessagesErrorKind) -> bool {
    match kind {
        MessagesErrorKind::MissingHeartbeat
        | MessagesErrorKind::NoResponders
        | MessagesErrorKind::ConsumerDeleted
        | MessagesErrorKind::PushBasedConsumer => true,
        MessagesErrorKind::Pull | MessagesErrorKind::RequestLimitExceeded | MessagesErrorKind::Other => false,
    }
}

/// Converts by way of the standard library's time, independently of the time crate that the client is built with.
fn utc(time: impl Into<SystemTime>) -> DateTime<Utc> {
    time.into().into()
}

/// The command in the terms of the rules; `None` if the message is not from the stream.
fn received(message: &jetstream::Message, last_sequence_at_open: u64) -> Option<Received> {
    let info = match message.info() {
        Ok(info) => info,
        Err(error) => {
            warn!("a message that is not from the stream is ignored: {error}");
            return None;
        }
    };
    let headers = message.headers.as_ref();
    Some(Received {
        sequence: info.stream_sequence,
        published: utc(info.published),
        delivered: u64::try_from(info.delivered).unwrap_or(0),
        last_sequence_at_open,
        subject: message.subject.to_string(),
        ack_subject: message.reply.as_ref()?.to_string(),
        run_header: headers
            .and_then(|headers| headers.get(header::RUN))
            .map(|value| value.as_str().to_owned()),
        payload: message.payload.to_vec(),
    })
}
