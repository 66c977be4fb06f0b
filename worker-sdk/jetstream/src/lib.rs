//! The JetStream objects that orchestrators, workers and the test kit share: the streams that workers use, and one
//! consumer per worker. Callers decide who creates them and which existing ones are acceptable.

pub mod consumer;

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use os_upgrade_protocol::limits::{APPLIED_BYTES_MAX, ITEM_MESSAGE_BYTES_MAX, OUTPUT_MESSAGE_BYTES_MAX};
use os_upgrade_protocol::subject;

/// Consumer limit of the control stream, which has one per host and those of readers. The default of nats-server 2.15
/// would be 1 000. An account that may have fewer cannot have the stream.
pub const CONSUMERS_MAX: i32 = 100_000;
/// Consumer limit of each other stream.
const READERS_MAX: i32 = 10_000;
/// Versions kept for each host.
const VERSIONS_KEPT: i64 = 64;
/// Outputs of commands kept for each host: a run has a `prepare`, an `upgrade` and a `reboot`.
const OUTPUTS_KEPT: i64 = 3;
/// How long output is kept.
const OUTPUT_AGE_MAX: Duration = Duration::from_hours(30 * 24);
/// The size of the stream of output, which NATS reserves: the largest outputs of some 5 000 hosts.
pub const OUTPUT_STREAM_BYTES_MAX: i64 = 1024 * 1024 * 1024;

/// A stream that keeps all messages on `subjects` on disk.
pub fn stream(name: &str, subjects: &[&str]) -> Config {
    Config {
        name: name.to_owned(),
        subjects: subjects.iter().map(|&subject| subject.to_owned()).collect(),
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        max_consumers: READERS_MAX,
        ..Config::default()
    }
}

/// The streams that workers need, with one replica each: commands and replies, versions, announcements.
pub fn worker_streams() -> [Config; 3] {
    [
        Config {
            max_consumers: CONSUMERS_MAX,
            ..stream(subject::CONTROL_STREAM, &[subject::COMMANDS, subject::REPLIES, subject::LEADER])
        },
        Config {
            max_messages_per_subject: VERSIONS_KEPT,
            ..stream(subject::VERSIONS_STREAM, &[subject::VERSIONS])
        },
        Config { max_messages_per_subject: 1, ..stream(subject::WORKERS_STREAM, &[subject::WORKERS]) },
    ]
}

/// The stream of what hosts are to have, with one replica: the last message of each subject, which a host gets by its subject.
pub fn desired_stream() -> Config {
    Config {
        max_messages_per_subject: 1,
        max_message_size: size(ITEM_MESSAGE_BYTES_MAX),
        allow_direct: true,
        ..stream(subject::DESIRED_STREAM, &[subject::DESIRED])
    }
}

/// The stream of what hosts have applied, with one replica: the last report of each.
pub fn applied_stream() -> Config {
    Config {
        max_messages_per_subject: 1,
        max_message_size: size(APPLIED_BYTES_MAX + 1024),
        ..stream(subject::APPLIED_STREAM, &[subject::APPLIED])
    }
}

/// The stream of output, with one replica. Beyond its limits the oldest output is dropped. However much a host publishes, it
/// has three messages in the stream, so it can take no more than a small part of it from the others.
pub fn output_stream() -> Config {
    Config {
        max_messages_per_subject: OUTPUTS_KEPT,
        max_age: OUTPUT_AGE_MAX,
        max_bytes: OUTPUT_STREAM_BYTES_MAX,
        max_message_size: size(OUTPUT_MESSAGE_BYTES_MAX),
        discard: DiscardPolicy::Old,
        ..stream(subject::OUTPUT_STREAM, &[subject::OUTPUTS])
    }
}

fn size(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
