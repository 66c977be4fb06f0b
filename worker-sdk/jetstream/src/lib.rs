//! The JetStream objects that orchestrators, workers and the test kit share: the streams that workers use, and one
//! consumer per worker. Callers decide who creates them and which existing ones are acceptable.

pub mod consumer;

use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};
use os_upgrade_protocol::subject;

/// Consumer limit of the control stream, which has one per host and those of readers. The default of nats-server 2.15
/// would be 1 000.
const CONSUMERS_MAX: i32 = 100_000;
/// Consumer limit of each other stream.
const READERS_MAX: i32 = 10_000;
/// Versions kept for each host.
const VERSIONS_KEPT: i64 = 64;

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

/// The streams that workers use, with one replica each: commands and replies, versions, announcements.
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
