//! Reads what journal and control stream contain, to compare it with what is known, and where to begin to follow.

use std::net::IpAddr;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, RawMessageErrorKind, Stream};
use chrono::{DateTime, Utc};
use os_upgrade_protocol::subject;
use os_upgrade_shell::instance::{Acknowledged, StreamFacts, Streams};
use os_upgrade_shell::journal::codec::{APPEND_ID, Kind, Message, PREVIOUS_ID, snapshot_start};
use os_upgrade_shell::journal::{AppendId, JournalError};

use super::{StreamsError, unusable};
use crate::{ANSWER_WITHIN, Bus, header};

/// How open a server is to clients, by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerAccess {
    /// It requires credentials.
    pub wants_credentials: bool,
    /// It requires TLS.
    pub wants_tls: bool,
    /// It listens on a loopback address.
    pub is_loopback: bool,
}

impl Bus {
    /// Reads what the streams contain of what is `known`, and where to begin to follow the journal.
    ///
    /// # Errors
    /// The bus does not answer, or the last snapshot cannot be read.
    pub async fn inspect(&self, known: &Acknowledged) -> Result<Streams, StreamsError> {
        let journal = self.find_stream(subject::JOURNAL_STREAM).await?;
        let control = self.find_stream(subject::CONTROL_STREAM).await?;
        let at_known = match &journal {
            Some(journal) => at_known(journal, known).await?,
            None => None,
        };
        if let Some(stream) = &journal
            && known.journal.sequence > 0
            && at_known.is_none()
            && self.stream(subject::JOURNAL_STREAM).await?.cached_info().state.first_sequence
                != stream.cached_info().state.first_sequence
        {
            let trimmed = "it was trimmed while it was inspected";
            return Err(unusable(subject::JOURNAL_STREAM, async_nats::Error::from(trimmed)));
        }
        let at_mark = match (&control, &known.mark) {
            (Some(control), Some(mark)) => message(control, mark.sequence).await?,
            (Some(_) | None, _) => None,
        };
        let follow_from = match &journal {
            Some(journal) if known.asks_start => snapshot_before(journal, u64::MAX).await?,
            Some(_) | None => None,
        };
        let begins_with_snapshot = match &journal {
            Some(journal) => begins_later(journal, known) && begins_with_snapshot(journal).await?,
            None => false,
        };
        let beginning =
            journal.as_ref().map_or(1, |journal| journal.cached_info().state.first_sequence.max(1));
        Ok(Streams {
            journal: journal.as_ref().map(facts),
            control: control.as_ref().map(facts),
            at_known,
            at_mark: at_mark.map(|message| message.subject.to_string()),
            follow_from: follow_from.unwrap_or(beginning),
            begins_with_snapshot,
            settings: self.check_settings(&[journal.as_ref(), control.as_ref()]).await,
        })
    }
}

impl Bus {
    /// The sequence of the last message of the stream `name`; 0 without messages or without the stream.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn last_sequence(&self, name: &str) -> Result<u64, StreamsError> {
        let stream = self.find_stream(name).await?;
        Ok(stream.map_or(0, |stream| stream.cached_info().state.last_sequence))
    }

    /// The sequence of the first message of the stream `name` to `subjects`; `None` if there is none.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn first_sequence(&self, name: &str, subjects: &str) -> Result<Option<u64>, StreamsError> {
        let Some(stream) = self.find_stream(name).await? else { return Ok(None) };
        match stream.get_first_raw_message_by_subject(subjects, 1).await {
            Ok(message) => Ok(Some(message.sequence)),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unusable(name, error)),
        }
    }

    /// The server's time, from its info about the stream `name`; `None` if there is no answer.
    pub async fn server_time(&self, name: &str) -> Option<DateTime<Utc>> {
        #[derive(serde::Deserialize)]
        struct Answer {
            ts: DateTime<Utc>,
        }
        let request = self.client.request(format!("$JS.API.STREAM.INFO.{name}"), bytes::Bytes::new());
        let answer = tokio::time::timeout(ANSWER_WITHIN, request).await.ok()?.ok()?;
        serde_json::from_slice::<Answer>(&answer.payload).ok().map(|answer| answer.ts)
    }

    /// The connected server's name, address and version, for operators.
    pub fn server(&self) -> String {
        let info = self.client.server_info();
        format!("{} at {}:{}, version {}", info.server_name, info.host, info.port, info.version)
    }

    /// How open the connected server is.
    pub fn server_access(&self) -> ServerAccess {
        let info = self.client.server_info();
        ServerAccess {
            wants_credentials: info.auth_required,
            wants_tls: info.tls_required,
            is_loopback: info.host.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        }
    }

    /// From where to follow the journal for a store that has it up to `stored`: from the newest complete snapshot that
    /// precedes what is missing there, else from the beginning. `None` if the journal does not exist.
    ///
    /// # Errors
    /// The bus does not answer, or a snapshot cannot be read.
    pub async fn follow_for_store(&self, stored: u64) -> Result<Option<u64>, StreamsError> {
        let Some(journal) = self.find_stream(subject::JOURNAL_STREAM).await? else { return Ok(None) };
        let beginning = journal.cached_info().state.first_sequence.max(1);
        Ok(Some(snapshot_before(&journal, stored + 1).await?.unwrap_or(beginning)))
    }

    /// When the control stream was created.
    ///
    /// # Errors
    /// The bus does not answer, or has no such stream.
    pub async fn control_created(&self) -> Result<DateTime<Utc>, StreamsError> {
        Ok(self.stream(subject::CONTROL_STREAM).await?.cached_info().created)
    }

    /// The subject of the message at `sequence` of the stream `name`, if there is one.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn subject_at(&self, name: &str, sequence: u64) -> Result<Option<String>, StreamsError> {
        let Some(stream) = self.find_stream(name).await? else { return Ok(None) };
        Ok(message(&stream, sequence).await?.map(|message| message.subject.to_string()))
    }
}

fn facts(stream: &Stream) -> StreamFacts {
    let info = stream.cached_info();
    StreamFacts {
        created: info.created,
        first_sequence: info.state.first_sequence,
        last_sequence: info.state.last_sequence,
    }
}

/// The message at `sequence`; `None` if there is none.
pub(crate) async fn message(stream: &Stream, sequence: u64) -> Result<Option<StreamMessage>, StreamsError> {
    match stream.get_raw_message(sequence).await {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(unusable(&stream.cached_info().config.name, error)),
    }
}

/// The append id of the journal's message at the last known sequence. If that message was trimmed, the id that the next
/// message names as its predecessor's.
async fn at_known(journal: &Stream, known: &Acknowledged) -> Result<Option<AppendId>, StreamsError> {
    let sequence = known.journal.sequence;
    if sequence == 0 {
        return Ok(None);
    }
    if let Some(found) = message(journal, sequence).await? {
        return Ok(header(&found.headers, APPEND_ID).map(AppendId::new));
    }
    let next = message(journal, sequence + 1).await?;
    Ok(next.and_then(|next| header(&next.headers, PREVIOUS_ID).map(AppendId::new)))
}

/// Whether the journal begins later than it is known to have begun, or after its last known message.
fn begins_later(journal: &Stream, known: &Acknowledged) -> bool {
    let first = journal.cached_info().state.first_sequence;
    known.journal_from.is_some_and(|needed| needed < first) || known.journal.sequence + 1 < first
}

/// Whether the journal's first message is the first part of a complete snapshot.
async fn begins_with_snapshot(journal: &Stream) -> Result<bool, StreamsError> {
    let first = journal.cached_info().state.first_sequence;
    let Some(found) = message(journal, first).await? else { return Ok(false) };
    // One that was cut off is followed by a complete one, or by nothing that can be read without it.
    Ok(stored(&found)?.begins_snapshot()
        && snapshot_before(journal, u64::MAX).await?.is_some_and(|start| start >= first))
}

/// The sequence at which the newest complete snapshot starts that begins at `latest` or before; `None` if there is none.
async fn snapshot_before(journal: &Stream, latest: u64) -> Result<Option<u64>, StreamsError> {
    let beginning = journal.cached_info().state.first_sequence;
    let unusable = |source| unusable(subject::JOURNAL_STREAM, source);
    let last = match journal.get_last_raw_message_by_subject(subject::JOURNAL_SNAPSHOT).await {
        Ok(message) => message,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
        Err(error) => return Err(unusable(async_nats::Error::from(error))),
    };
    let mut candidate = snapshot_start(last.sequence, &stored(&last)?);
    while let Some(start) = candidate.filter(|start| *start >= beginning) {
        if start <= latest {
            return Ok(Some(start));
        }
        let Some(first) = message(journal, start).await? else { return Ok(None) };
        candidate = match stored(&first)?.kind {
            Kind::Snapshot { previous } => (previous > 0).then_some(previous),
            Kind::Record => None,
        };
    }
    Ok(None)
}

/// Parses a stored message of the journal.
pub(crate) fn stored(stored: &StreamMessage) -> Result<Message, JournalError> {
    let lookup = |name: &str| header(&stored.headers, name);
    Message::read(stored.sequence, stored.subject.as_str(), lookup, stored.payload.clone())
}
