//! The streams' messages, read one by one from the stream leaders.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::jetstream::{self, message::StreamMessage};
use flate2::read::DeflateDecoder;
use os_upgrade_protocol::subject;
use serde_json::Value;

use crate::wait::eventually;

/// Pause before a read is retried.
const RETRY: Duration = Duration::from_millis(100);

/// The messages of `stream` that match `filter`, in order.
pub async fn stored(jetstream: &jetstream::Context, stream: &str, filter: &str) -> Vec<StreamMessage> {
    stored_from(jetstream, stream, filter, &mut 1).await
}

/// The same from sequence `next` on, which is advanced past them.
pub async fn stored_from(
    jetstream: &jetstream::Context,
    stream: &str,
    filter: &str,
    next: &mut u64,
) -> Vec<StreamMessage> {
    let stream = eventually("the stream", async || jetstream.get_stream(stream).await.ok()).await;
    let mut messages = Vec::new();
    loop {
        match stream.raw_message_builder().sequence(*next).next_by_subject(filter).send().await {
            Ok(message) => {
                *next = message.sequence + 1;
                messages.push(message);
            }
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return messages,
            // The servers of a cluster may be electing a leader.
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Every whole record in the journal from sequence `next` on, with the sequence of its last part. Advances `next`.
pub async fn records(jetstream: &jetstream::Context, next: &mut u64) -> Vec<(u64, Value)> {
    let messages = stored_from(jetstream, subject::JOURNAL_STREAM, subject::JOURNAL_FACT, next).await;
    let mut payload = Vec::new();
    let mut records = Vec::new();
    for message in messages {
        payload.extend_from_slice(&message.payload);
        let header = |name: &str| message.headers.get(name).map_or("", |value| value.as_str());
        // A large record comes in parts, such as 1/2 and 2/2.
        if header("Os-Upgrade-Part").split_once('/').is_none_or(|(part, parts)| part == parts) {
            records.push((message.sequence, record(&payload, header("Os-Upgrade-Encoding"))));
            payload.clear();
        }
    }
    records
}

fn record(payload: &[u8], encoding: &str) -> Value {
    match encoding {
        "deflate" => serde_json::from_reader(DeflateDecoder::new(payload)).unwrap(),
        _ => serde_json::from_slice(payload).unwrap(),
    }
}

/// The commands in the control stream, such as `h01 upgrade`, in order.
pub async fn commands(jetstream: &jetstream::Context) -> Vec<String> {
    let messages = stored(jetstream, subject::CONTROL_STREAM, subject::COMMANDS).await;
    messages
        .iter()
        .map(|message| {
            let command: Value = serde_json::from_slice(&message.payload).unwrap();
            let host = message.subject.rsplit('.').next().unwrap();
            format!("{host} {}", command["action"].as_str().unwrap())
        })
        .collect()
}

/// Fails if a command, such as `h01 upgrade`, is in the control stream twice.
pub async fn assert_no_command_twice(jetstream: &jetstream::Context) {
    let mut seen = BTreeSet::new();
    for command in commands(jetstream).await {
        assert!(!seen.contains(&command), "{command} is there twice");
        seen.insert(command);
    }
}

/// Appends a record of this format to the journal, as another version would. Returns its sequence.
pub async fn append_record(jetstream: &jetstream::Context, format: &str, payload: &str) -> u64 {
    let stream = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap();
    let previous = stream.get_raw_message(stream.cached_info().state.last_sequence).await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("Os-Upgrade-Append-Id", "newer-1");
    headers.insert(
        "Os-Upgrade-Previous-Append-Id",
        previous.headers.get("Os-Upgrade-Append-Id").unwrap().clone(),
    );
    headers.insert("Os-Upgrade-Format", format);
    let payload = payload.to_owned().into();
    let sent = jetstream.publish_with_headers(subject::JOURNAL_FACT, headers, payload).await.unwrap();
    sent.await.unwrap().sequence
}
