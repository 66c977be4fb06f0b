//! The journal's stream.

use async_nats::HeaderMap;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::Record;
use os_upgrade_protocol::{header as names, subject};
use os_upgrade_shell::instance::Event;
use os_upgrade_shell::journal::append::{AppendOutcome, ReadBack};
use os_upgrade_shell::journal::codec::{APPEND_ID, Content, Message, decode};
use os_upgrade_shell::journal::{AppendId, JournalError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::reader::{Delivery, Read};
use super::storage::storage_limit;
use super::streams::StreamsError;
use super::streams::inspect::{message, stored};
use super::{Bus, header};

impl Bus {
    /// Publishes `message` on condition that `expected` is the journal's last sequence.
    pub async fn append(&self, expected: u64, message: &Message) -> AppendOutcome {
        let mut headers = HeaderMap::new();
        for (name, value) in message.headers() {
            headers.insert(name, value);
        }
        headers.insert(names::EXPECTED_LAST_SEQUENCE, expected.to_string());
        let acked = async {
            let sent =
                self.publish(message.kind.subject().to_owned(), headers, message.payload.clone()).await;
            sent?.await
        };
        match acked.await {
            Ok(ack) => AppendOutcome::Stored { sequence: ack.sequence },
            Err(error) => {
                tracing::debug!(%error, expected, "append");
                storage_limit(&error).map_or(AppendOutcome::Unknown, AppendOutcome::Full)
            }
        }
    }

    /// Reads the first message of the journal from `sequence` on, from the stream's leader.
    pub async fn read_back(&self, sequence: u64) -> ReadBack {
        use async_nats::jetstream::stream::RawMessageErrorKind;
        let Ok(stream) = self.stream(subject::JOURNAL_STREAM).await else {
            return ReadBack::Failed;
        };
        match stream.get_first_raw_message_by_subject(">", sequence).await {
            Ok(message) => {
                let append_id = header(&message.headers, APPEND_ID).map(AppendId::new);
                ReadBack::Found { sequence: message.sequence, append_id }
            }
            // The stream's last sequence is from before this read, so an append that expects it comes after nothing new.
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                ReadBack::Absent { last: stream.cached_info().state.last_sequence }
            }
            Err(_) => ReadBack::Failed,
        }
    }

    /// The record whose last message is at `sequence` in the journal; `None` if there is none.
    ///
    /// # Errors
    /// The bus does not answer, or the message cannot be read.
    pub async fn record_at(&self, sequence: u64) -> Result<Option<Record>, StreamsError> {
        let Some(journal) = self.find_stream(subject::JOURNAL_STREAM).await? else { return Ok(None) };
        let Some(last) = message(&journal, sequence).await? else { return Ok(None) };
        let last = stored(&last)?;
        let mut payload = Vec::new();
        for sequence in (sequence + 1).saturating_sub(u64::from(last.parts))..sequence {
            let Some(part) = message(&journal, sequence).await? else { return Ok(None) };
            payload.extend_from_slice(&part.payload);
        }
        payload.extend_from_slice(&last.payload);
        match decode(&last, &payload) {
            Ok(Content::Record(record)) => Ok(Some(record)),
            Ok(Content::Snapshot(_)) => Ok(None),
            Err(source) => Err(JournalError::Undecodable { sequence, source }.into()),
        }
    }

    /// Maps the journal's messages from sequence `from` on and sends them to `sink`, until `stop`.
    pub async fn follow_journal<T: Send>(
        &self,
        from: u64,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(Event) -> T + Send + Sync,
    ) {
        let map = |sequence, read| Some(map(followed(sequence, read)));
        self.read((subject::JOURNAL_STREAM, Delivery::Pushed), from, stop, sink, map).await;
    }

    /// Sends the journal's messages from sequence `from` on to `sink`, until `stop`, for a slow reader of many.
    pub async fn read_journal(&self, from: u64, stop: CancellationToken, sink: mpsc::Sender<Event>) {
        let map = |sequence, read| Some(followed(sequence, read));
        self.read((subject::JOURNAL_STREAM, Delivery::Pulled), from, stop, sink, map).await;
    }
}

fn followed(sequence: u64, read: Read) -> Event {
    let Read::Message(stored) = read else { return Event::JournalEnd };
    // Without its time, that of the record in it counts.
    let stored_at = stored.info().map_or(DateTime::<Utc>::MAX_UTC, |info| info.published);
    Event::Journal { sequence, stored_at, message: read_delivered(sequence, &stored) }
}

/// Parses a delivered message of the journal.
pub(crate) fn read_delivered(
    sequence: u64,
    delivered: &async_nats::jetstream::Message,
) -> Result<Message, JournalError> {
    let headers = delivered.headers.clone().unwrap_or_default();
    let lookup = |name: &str| header(&headers, name);
    Message::read(sequence, delivered.subject.as_str(), lookup, delivered.payload.clone())
}
