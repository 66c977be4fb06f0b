//! The streams as the orchestrator needs them: made when they are missing, checked when they are there, inspected.

use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{self};
use os_upgrade_protocol::subject;
use os_upgrade_shell::journal::JournalError;
use os_upgrade_shell::journal::codec::{Kind, Message, snapshot_start};
use os_upgrade_shell::node::{StoreKnowledge, StreamFacts, Streams};

use super::{Bus, header};

/// Consumers that the control stream takes: one for each host, and the readers. 2.15 would stop at 1 000.
const CONSUMERS_MAX: i32 = 100_000;
/// Consumers that each other stream takes.
const READERS_MAX: i32 = 10_000;
/// Versions kept of every host.
const VERSIONS_KEPT: i64 = 64;
/// How long the server remembers message ids.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);

/// A stream cannot be had as it is needed.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// The server does not give it.
    #[error("cannot use the stream {stream}: {source}")]
    Unusable {
        /// Its name.
        stream: String,
        /// Why not.
        source: async_nats::Error,
    },
    /// It is there, but made differently.
    #[error(
        "the stream {stream} has {setting} = {found}; {wanted} is needed. It is left as it is: change it, or use another NATS account"
    )]
    Incompatible {
        /// Its name.
        stream: String,
        /// What differs.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it would have to be.
        wanted: String,
    },
    /// The last snapshot cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn configs(replicas: usize) -> [Config; 4] {
    let base = Config {
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        num_replicas: replicas,
        max_consumers: READERS_MAX,
        duplicate_window: DUPLICATE_WINDOW,
        ..Config::default()
    };
    let named = |name: &str| Config { name: name.to_owned(), ..base.clone() };
    [
        Config {
            subjects: vec![subject::JOURNAL_FACT.to_owned(), subject::JOURNAL_SNAPSHOT.to_owned()],
            discard: DiscardPolicy::New,
            ..named(subject::JOURNAL_STREAM)
        },
        Config {
            subjects: vec![
                subject::COMMANDS.to_owned(),
                subject::REPLIES.to_owned(),
                subject::LEADER.to_owned(),
            ],
            max_consumers: CONSUMERS_MAX,
            ..named(subject::CONTROL_STREAM)
        },
        Config {
            subjects: vec![subject::VERSIONS.to_owned()],
            max_messages_per_subject: VERSIONS_KEPT,
            ..named(subject::VERSIONS_STREAM)
        },
        Config {
            subjects: vec![subject::WORKERS.to_owned()],
            max_messages_per_subject: 1,
            ..named(subject::WORKERS_STREAM)
        },
    ]
}

impl Bus {
    /// Makes the streams that are missing and checks the others.
    ///
    /// # Errors
    /// One cannot be made, or is there and made differently; it is left as it is.
    pub async fn ensure_streams(&self, replicas: usize) -> Result<(), StreamsError> {
        for config in configs(replicas) {
            let stream = config.name.clone();
            let unusable = |source| StreamsError::Unusable { stream, source };
            let info = match self.jetstream.get_or_create_stream(config.clone()).await {
                Ok(stream) => stream.cached_info().config.clone(),
                Err(error) => return Err(unusable(error.into())),
            };
            check(&info, &config)?;
        }
        Ok(())
    }

    /// Journal and control stream as they are, and where to begin to follow the journal.
    ///
    /// # Errors
    /// The bus does not answer, or the last snapshot cannot be read.
    pub async fn inspect(&self, store: Option<&StoreKnowledge>) -> Result<Streams, StreamsError> {
        let journal = self.stream(subject::JOURNAL_STREAM).await?;
        let control = self.stream(subject::CONTROL_STREAM).await?;
        Ok(Streams {
            journal: facts(&journal),
            control: facts(&control),
            follow_from: follow_from(&journal, store).await?,
        })
    }

    pub(super) async fn stream(&self, name: &str) -> Result<jetstream::stream::Stream, StreamsError> {
        let unusable = |source| StreamsError::Unusable { stream: name.to_owned(), source };
        self.jetstream.get_stream(name).await.map_err(|error| unusable(error.into()))
    }
}

fn check(found: &Config, wanted: &Config) -> Result<(), StreamsError> {
    let mut subjects = (found.subjects.clone(), wanted.subjects.clone());
    subjects.0.sort();
    subjects.1.sort();
    let settings = [
        ("subjects", subjects.0.join(","), subjects.1.join(",")),
        ("storage", format!("{:?}", found.storage), format!("{:?}", wanted.storage)),
        ("retention", format!("{:?}", found.retention), format!("{:?}", wanted.retention)),
        (
            "max-msgs-per-subject",
            unlimited(found.max_messages_per_subject),
            unlimited(wanted.max_messages_per_subject),
        ),
        ("max-age", format!("{:?}", found.max_age), format!("{:?}", wanted.max_age)),
        ("max-msgs", unlimited(found.max_messages), unlimited(wanted.max_messages)),
        ("max-bytes", unlimited(found.max_bytes), unlimited(wanted.max_bytes)),
        ("no-ack", found.no_ack.to_string(), wanted.no_ack.to_string()),
        ("sealed", found.sealed.to_string(), wanted.sealed.to_string()),
    ];
    for (setting, found_value, wanted) in settings {
        if found_value != wanted {
            let stream = found.name.clone();
            return Err(StreamsError::Incompatible { stream, setting, found: found_value, wanted });
        }
    }
    Ok(())
}

/// The server shows "no limit" as -1, a new configuration as 0.
fn unlimited(limit: i64) -> String {
    limit.max(0).to_string()
}

fn facts(stream: &jetstream::stream::Stream) -> StreamFacts {
    let info = stream.cached_info();
    StreamFacts { created: info.created, last_sequence: info.state.last_sequence }
}

/// The start of the newest complete snapshot that the store has reached, so that the store misses nothing; else the
/// beginning.
async fn follow_from(
    journal: &jetstream::stream::Stream,
    store: Option<&StoreKnowledge>,
) -> Result<u64, StreamsError> {
    let beginning = journal.cached_info().state.first_sequence.max(1);
    let Some(store) = store else { return Ok(beginning) };
    let unusable = |source| StreamsError::Unusable { stream: subject::JOURNAL_STREAM.to_owned(), source };
    let last = match journal.get_last_raw_message_by_subject(subject::JOURNAL_SNAPSHOT).await {
        Ok(message) => message,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(beginning),
        Err(error) => return Err(unusable(error.into())),
    };
    let mut candidate = snapshot_start(last.sequence, &read(&last)?);
    while let Some(start) = candidate {
        if start <= store.sequence + 1 {
            return Ok(start);
        }
        let first = journal.get_raw_message(start).await.map_err(|error| unusable(error.into()))?;
        candidate = match read(&first)?.kind {
            Kind::Snapshot { previous } => (previous > 0).then_some(previous),
            Kind::Record => None,
        };
    }
    Ok(beginning)
}

fn read(stored: &StreamMessage) -> Result<Message, JournalError> {
    let lookup = |name: &str| header(&stored.headers, name);
    Message::read(stored.sequence, stored.subject.as_str(), lookup, stored.payload.clone())
}
