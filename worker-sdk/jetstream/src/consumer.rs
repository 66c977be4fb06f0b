//! The durable consumer by which a worker reads its host's commands.
//!
//! A worker makes its own, unless its credentials do not let it: then it asks, and whoever speaks for the control stream
//! makes it and answers.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::stream::Stream;
use async_nats::{Client, jetstream};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ConsumerAnswer, ConsumerRequest, HostName, subject};

/// How long each of the two steps may take, the deletion of the consumer before and the creation.
const STEP_WITHIN: Duration = Duration::from_secs(5);
/// The same for a worker that asks. Together it is less than it waits for the answer.
const REQUESTED_STEP_WITHIN: Duration = Duration::from_secs(2);

/// The consumer of `host` that `request` asks for.
pub fn config(host: &HostName, request: &ConsumerRequest) -> Config {
    Config {
        durable_name: Some(subject::consumer(host)),
        description: Some(format!("the worker of {host}")),
        deliver_policy: request.from.map_or(DeliverPolicy::LastPerSubject, |from| {
            DeliverPolicy::ByStartSequence { start_sequence: from.get() }
        }),
        ack_policy: AckPolicy::Explicit,
        ack_wait: request.ack_wait(),
        max_ack_pending: 1,
        filter_subject: subject::command(host),
        // One per host: replicated, thousands of them would each be a Raft group.
        num_replicas: 1,
        ..Config::default()
    }
}

/// Makes the consumer of `host` on the control stream, in place of any that is there, within ten seconds.
///
/// # Errors
/// JetStream refuses, or does not answer.
pub async fn make<I>(
    control: &Stream<I>,
    host: &HostName,
    request: &ConsumerRequest,
) -> Result<PullConsumer, String> {
    make_within(STEP_WITHIN, control, host, request).await
}

async fn make_within<I>(
    step_within: Duration,
    control: &Stream<I>,
    host: &HostName,
    request: &ConsumerRequest,
) -> Result<PullConsumer, String> {
    // It may not exist, or be on a node that is dead; neither keeps a new one from being made.
    drop(tokio::time::timeout(step_within, control.delete_consumer(&subject::consumer(host))).await);
    match tokio::time::timeout(step_within, control.create_consumer(config(host, request))).await {
        Ok(created) => created.map_err(|error| with_causes(&error)),
        Err(_) => Err("JetStream does not answer".to_owned()),
    }
}

/// The same for a worker that asks for it with `payload`, within four seconds.
///
/// # Errors
/// It is no request, or as [`make`].
pub async fn make_requested(
    jetstream: &jetstream::Context,
    host: &HostName,
    payload: &[u8],
) -> Result<(), String> {
    let request = ConsumerRequest::parse(payload).map_err(|error| with_causes(&error))?;
    let control = jetstream.get_stream_no_info(subject::CONTROL_STREAM).await;
    let control = control.map_err(|error| with_causes(&error))?;
    make_within(REQUESTED_STEP_WITHIN, &control, host, &request).await.map(drop)
}

/// Tells the worker that has sent `request` what came of it. One that does not hear of it asks again.
///
/// # Errors
/// The client has been closed.
pub async fn answer(
    client: &Client,
    request: async_nats::Message,
    made: Result<(), String>,
) -> Result<(), String> {
    let Some(reply) = request.reply else { return Ok(()) };
    let answer = ConsumerAnswer::new(made).to_payload();
    client.publish(reply, answer.into()).await.map_err(|error| with_causes(&error))
}
