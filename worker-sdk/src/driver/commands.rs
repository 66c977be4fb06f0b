//! The host's durable consumer: looked up or created, read, and replaced when it has become silent.

use std::num::NonZeroU64;
use std::time::{Duration, Instant, SystemTime};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::MessagesErrorKind;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self};
use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_jetstream::consumer;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ConsumerRequest, HostName, header, subject};
use os_upgrade_worker_rules::consumer::{
    ConsumerState, Contention, Plan, SavedState, last_sequence_at_open, plan,
};
use os_upgrade_worker_rules::{DeliverFrom, Event, Received, limits};
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

/// How often a worker looks whether another one of its host still runs.
const STAND_BY_INTERVAL: Duration = Duration::from_secs(5);

/// How a consumer was opened.
#[derive(Debug, Clone, Copy)]
struct Opened {
    /// The stream sequence up to which commands may have been delivered to another process.
    last_sequence: u64,
    /// The number of the connection before that. What comes over a later one is not of a consumer that was checked.
    connection: u64,
}

/// Why reading has ended.
struct ReadFailure {
    error: String,
    /// What to do about the consumer.
    remedy: Remedy,
}

/// What to do about a consumer that can no longer be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    Check,
    /// Replace it: it is dead.
    Replace,
    /// Replace it, unless whoever has deleted it reads another one.
    ReplaceLater,
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
    let mut contention = Contention::default();
    loop {
        // Read first: what is looked at then is at least as new as this connection.
        let connection = bus.connections();
        let stream = bus.await_stream(subject::CONTROL_STREAM).await;
        let known = *saved.borrow();
        let begun = Instant::now();
        let failure = match open(&bus, &stream, &host, known, replace).await {
            Ok((consumer, last_sequence)) => {
                debug!(last_sequence, "commands are read");
                let opened = Opened { last_sequence, connection };
                let reconnected = async {
                    // The sender lives in `bus`, so this cannot fail.
                    let _ = bus.link().wait_for(|link| link.epoch > connection).await;
                };
                tokio::select! {
                    (alive, failure) = read(&bus, &consumer, opened, &inputs) => {
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
            // The existing one was to be replaced. Looking at it again would take seconds if its server is gone.
            Err(error) => ReadFailure { error, remedy: Remedy::Replace },
        };
        if inputs.is_closed() {
            return;
        }
        // Without a connection, the failure does not mean that the consumer is dead.
        replace = failure.remedy != Remedy::Check && bus.is_connected();
        if bus.is_connected() && throttle.is_due(&failure.error, Instant::now()) {
            warn!(replace, "commands cannot be read: {}", failure.error);
        } else {
            debug!("commands cannot be read: {}", failure.error);
        }
        if replace && failure.remedy == Remedy::ReplaceLater {
            let lasted = TimeDelta::from_std(begun.elapsed()).unwrap_or(TimeDelta::MAX);
            let pause = contention.deleted(lasted).to_std().unwrap_or_default();
            tokio::time::sleep(pause).await;
            stand_by(&bus, &host, &inputs, &mut throttle).await;
            replace = false;
            continue;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Waits while another process reads the consumer that it has put in place of this one's: with one consumer after the other,
/// both would be given the same command.
async fn stand_by(bus: &Bus, host: &HostName, inputs: &mpsc::Sender<Input>, throttle: &mut LogThrottle) {
    let why = "another worker of this host seems to run: it has replaced the consumer, and this one waits until it ends";
    while !inputs.is_closed() && is_read(bus, host).await {
        if throttle.is_due(why, Instant::now()) {
            warn!("{why}");
        }
        tokio::time::sleep(STAND_BY_INTERVAL).await;
    }
}

/// Whether requests for commands wait at the host's consumer. None is of this process, which has not opened it.
async fn is_read(bus: &Bus, host: &HostName) -> bool {
    let stream = bus.await_stream(subject::CONTROL_STREAM).await;
    let name = subject::consumer(host);
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, stream.get_consumer(&name)).await;
    let found: Option<PullConsumer> = found.ok().and_then(Result::ok);
    found.is_some_and(|consumer| consumer.cached_info().num_waiting > 0)
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
    let last_sequence = stream.cached_info().state.last_sequence;
    let mut existing = None;
    if !replace {
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, stream.get_consumer(&name)).await;
        existing = found.ok().and_then(Result::ok);
    }
    let seen = existing.as_ref().map(|consumer| consumer_state(consumer, host));
    let last_sequence_at_open = last_sequence_at_open(seen, last_sequence);
    let from = match (plan(seen, saved, last_sequence), existing) {
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
    bus: &Bus,
    consumer: &PullConsumer,
    opened: Opened,
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
            return (false, ReadFailure { error, remedy: Remedy::Check });
        }
    };
    let mut read = false;
    loop {
        match messages.next().await {
            // The consumer is about to be checked, and delivers it again.
            Some(Ok(_)) if bus.connections() > opened.connection => {}
            Some(Ok(message)) => {
                read = true;
                if let Some(received) = received(&message, opened)
                    && inputs.send(Input::Event(Event::CommandReceived(received))).await.is_err()
                {
                    let error = "the worker is shutting down".to_owned();
                    return (read, ReadFailure { error, remedy: Remedy::Check });
                }
            }
            Some(Err(error)) => {
                let remedy = remedy(error.kind());
                let error = with_causes(&error);
                return (read, ReadFailure { error, remedy });
            }
            None => {
                let error = "the consumer's messages have ended".to_owned();
                return (read, ReadFailure { error, remedy: Remedy::Check });
            }
        }
    }
}

const fn remedy(kind: MessagesErrorKind) -> Remedy {
    match kind {
        MessagesErrorKind::MissingHeartbeat
        | MessagesErrorKind::NoResponders
        | MessagesErrorKind::PushBasedConsumer => Remedy::Replace,
        MessagesErrorKind::ConsumerDeleted => Remedy::ReplaceLater,
        MessagesErrorKind::Pull | MessagesErrorKind::RequestLimitExceeded | MessagesErrorKind::Other => {
            Remedy::Check
        }
    }
}

/// Converts by way of the standard library's time, independently of the time crate that the client is built with.
fn utc(time: impl Into<SystemTime>) -> DateTime<Utc> {
    time.into().into()
}

/// The command in the terms of the rules; `None` if the message is not from the stream.
fn received(message: &jetstream::Message, opened: Opened) -> Option<Received> {
    let info = match message.info() {
        Ok(info) => info,
        Err(error) => {
            // Whoever may write to this process's inbox sets the rate.
            debug!("a message that is not from the stream is ignored: {error}");
            return None;
        }
    };
    let header = |name| Some(message.headers.as_ref()?.get(name)?.as_str().to_owned());
    Some(Received {
        sequence: info.stream_sequence,
        published: utc(info.published),
        delivered: u64::try_from(info.delivered).unwrap_or(0),
        last_sequence_at_open: opened.last_sequence,
        connection: opened.connection,
        subject: message.subject.to_string(),
        ack_subject: message.reply.as_ref()?.to_string(),
        run_header: header(header::RUN),
        id_header: header(header::COMMAND_ID),
        payload: message.payload.to_vec(),
    })
}
