//! What orchestrators, workers and the test kit make in JetStream alike: the streams that workers use, and the consumer
//! that each of them has. Who makes them, and what is thought of those that are there, is not said here.

pub mod consumer;

use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};
use os_upgrade_protocol::subject;

/// Consumers that the control stream takes: one for each host, and the readers. nats-server 2.15 would stop at 1 000.
const CONSUMERS_MAX: i32 = 100_000;
/// Consumers that each other stream takes.
const READERS_MAX: i32 = 10_000;
/// Versions kept of every host.
const VERSIONS_KEPT: i64 = 64;

/// A stream of this name that keeps everything on `subjects`, on disk.
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

/// The streams that workers use, with one copy each: commands and replies, versions, announcements.
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
