//! The durable consumer through which a worker reads its host's commands.
//!
//! A worker creates its own consumer if its credentials allow it. Otherwise it sends a request, and the orchestrator
//! (or the test kit in its place) creates the consumer and answers.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::stream::Stream;
use async_nats::{Client, jetstream};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ConsumerAnswer, ConsumerRequest, HostName, subject};

/// The metadata that tells a consumer from all others of its host.
const CREATION: &str = "os-upgrade-creation";

/// Time limit for deleting the existing consumer. If its server is gone, the cluster deletes it but does not answer.
const DELETED_WITHIN: Duration = Duration::from_secs(1);
/// Time limit for creating the new one.
const CREATED_WITHIN: Duration = Duration::from_secs(5);
/// The same when a worker has requested it. Both together take less than the worker waits.
const REQUESTED_WITHIN: Duration = Duration::from_secs(2);

/// The configuration of the consumer that `request` asks for, for `host`.
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
        // There is one consumer per host; with replicas, each of thousands would be a Raft group.
        num_replicas: 1,
        ..Config::default()
    }
}

/// Creates the consumer of `host` on the control stream, replacing an existing one, within six seconds.
///
/// # Errors
/// JetStream refuses or does not answer, or the existing one has not been deleted in time.
pub async fn create<I>(
    control: &Stream<I>,
    host: &HostName,
    request: &ConsumerRequest,
) -> Result<PullConsumer, String> {
    make_within(CREATED_WITHIN, control, host, request).await
}

async fn make_within<I>(
    created_within: Duration,
    control: &Stream<I>,
    host: &HostName,
    request: &ConsumerRequest,
) -> Result<PullConsumer, String> {
    // The old consumer may not exist, or its server may be gone; a new one can be created in both cases.
    drop(tokio::time::timeout(DELETED_WITHIN, control.delete_consumer(&subject::consumer(host))).await);
    // The cluster may also not have deleted it. With the same configuration, creating would then succeed, with the old
    // consumer and the requests that wait at it.
    let creation = HashMap::from([(CREATION.to_owned(), format!("{:016x}", fastrand::u64(..)))]);
    let config = Config { metadata: creation, ..config(host, request) };
    match tokio::time::timeout(created_within, control.create_consumer_strict(config)).await {
        Ok(created) => created.map_err(|error| with_causes(&error)),
        Err(_) => Err("JetStream does not answer".to_owned()),
    }
}

/// Creates the consumer that a worker requests with `payload`, as [`create`] does, but within three seconds.
///
/// # Errors
/// The payload is not a request, or JetStream refuses or does not answer.
pub async fn create_requested(
    jetstream: &jetstream::Context,
    host: &HostName,
    payload: &[u8],
) -> Result<(), String> {
    let request = ConsumerRequest::parse(payload).map_err(|error| with_causes(&error))?;
    let control = jetstream.get_stream_no_info(subject::CONTROL_STREAM).await;
    let control = control.map_err(|error| with_causes(&error))?;
    make_within(REQUESTED_WITHIN, &control, host, &request).await.map(drop)
}

/// Sends the outcome to the worker that sent `request`. A worker without an answer requests again.
///
/// # Errors
/// The client is closed.
pub async fn answer(
    client: &Client,
    request: async_nats::Message,
    made: Result<(), String>,
) -> Result<(), String> {
    let Some(reply) = request.reply else { return Ok(()) };
    let answer = ConsumerAnswer::new(made).to_payload();
    client.publish(reply, answer.into()).await.map_err(|error| with_causes(&error))
}
