//! Reading what stands in a stream now, once and to its end: for backups, restorations and checks.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, push};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use os_upgrade_shell::control::RawControl;
use os_upgrade_shell::journal::JournalError;
use os_upgrade_shell::journal::codec;

use super::{Bus, control, journal};

/// How long the next message may take.
const NEXT_WITHIN: Duration = Duration::from_secs(30);

/// A stream could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The bus does not give it.
    #[error("cannot read the stream {stream}: {source}")]
    Unreadable {
        /// Its name.
        stream: String,
        /// Why not.
        source: async_nats::Error,
    },
    /// Nothing came for too long.
    #[error("the stream {stream} brought no message within {} s", NEXT_WITHIN.as_secs())]
    Stalled {
        /// Its name.
        stream: String,
    },
    /// A message could not be taken in.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
}

/// A message as it stands in its stream.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'a> {
    /// Its sequence.
    pub sequence: u64,
    message: &'a Message,
}

impl Scanned<'_> {
    /// Its subject.
    pub fn subject(&self) -> &str {
        self.message.subject.as_str()
    }

    /// What it carries.
    pub fn payload(&self) -> &Bytes {
        &self.message.payload
    }

    /// When it was stored.
    pub fn time(&self) -> Option<DateTime<Utc>> {
        self.message.info().ok().map(|info| info.published)
    }

    /// Its headers with their values, each of which may stand there several times.
    pub fn headers(&self) -> BTreeMap<String, Vec<String>> {
        let headers = self.message.headers.iter().flat_map(async_nats::HeaderMap::iter);
        headers
            .map(|(name, values)| (name.to_string(), values.iter().map(ToString::to_string).collect()))
            .collect()
    }

    /// The same as a message of the journal.
    ///
    /// # Errors
    /// It is none.
    pub fn as_journal(&self) -> Result<codec::Message, JournalError> {
        journal::read_delivered(self.sequence, self.message)
    }

    /// The same as a message of the control stream; none if it does not say when it was stored.
    pub fn as_control(&self) -> Option<RawControl> {
        control::raw(self.sequence, self.message)
    }
}

impl Bus {
    /// Hands the messages of the stream `name` from `from` on to `take`, in order, up to the last that stands there
    /// when reading begins. A stream that is not there has none.
    ///
    /// # Errors
    /// The bus fails, or `take` does.
    pub async fn scan(
        &self,
        name: &str,
        from: u64,
        take: impl FnMut(&Scanned<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<(), ScanError> {
        self.scan_with(name, DeliverPolicy::ByStartSequence { start_sequence: from.max(1) }, &[], take).await
    }

    /// The same with the last message of each subject that one of `filters` covers.
    ///
    /// # Errors
    /// The bus fails, or `take` does.
    pub async fn scan_last(
        &self,
        name: &str,
        filters: &[&str],
        take: impl FnMut(&Scanned<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<(), ScanError> {
        self.scan_with(name, DeliverPolicy::LastPerSubject, filters, take).await
    }

    async fn scan_with(
        &self,
        name: &str,
        deliver_policy: DeliverPolicy,
        filters: &[&str],
        mut take: impl FnMut(&Scanned<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<(), ScanError> {
        let unreadable =
            |source: async_nats::Error| ScanError::Unreadable { stream: name.to_owned(), source };
        let found = self.find_stream(name).await.map_err(|error| unreadable(error.into()))?;
        let Some(stream) = found else { return Ok(()) };
        let last = stream.cached_info().state.last_sequence;
        // A consumer that starts beyond the end would wait for what comes next.
        let beyond = matches!(deliver_policy, DeliverPolicy::ByStartSequence { start_sequence } if start_sequence > last);
        if beyond || stream.cached_info().state.messages == 0 {
            return Ok(());
        }
        let config = push::OrderedConfig {
            deliver_subject: self.client.new_inbox(),
            deliver_policy,
            filter_subjects: filters.iter().map(|filter| (*filter).to_owned()).collect(),
            replay_policy: ReplayPolicy::Instant,
            ..push::OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(|error| unreadable(error.into()))?;
        if consumer.cached_info().num_pending == 0 && consumer.cached_info().delivered.consumer_sequence == 0
        {
            return Ok(());
        }
        let mut messages = consumer.messages().await.map_err(|error| unreadable(error.into()))?;
        loop {
            let next = tokio::time::timeout(NEXT_WITHIN, messages.next()).await;
            let message = match next {
                Ok(Some(message)) => message.map_err(|error| unreadable(error.into()))?,
                Ok(None) => return Err(unreadable("the subscription ended".into())),
                Err(_) => return Err(ScanError::Stalled { stream: name.to_owned() }),
            };
            let info = message.info().map_err(&unreadable)?;
            let (sequence, pending) = (info.stream_sequence, info.pending);
            take(&Scanned { sequence, message: &message }).map_err(ScanError::Refused)?;
            if pending == 0 || sequence >= last {
                return Ok(());
            }
        }
    }
}
