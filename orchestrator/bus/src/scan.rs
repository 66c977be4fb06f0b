//! Reading a stream once, to its present end: for backups, restorations and checks.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, push};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use os_upgrade_shell::control_stream::RawControl;
use os_upgrade_shell::journal::JournalError;
use os_upgrade_shell::journal::codec;

use super::{Bus, commands, journal};

/// How long to wait for the next message.
const NEXT_WITHIN: Duration = Duration::from_secs(30);

/// Why a stream could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The stream cannot be read.
    #[error("cannot read the stream {stream}: {source}")]
    Unreadable {
        /// Its name.
        stream: String,
        /// The bus's error.
        source: async_nats::Error,
    },
    /// No message arrived for too long.
    #[error("the stream {stream} delivered no message within {} s", NEXT_WITHIN.as_secs())]
    Stalled {
        /// Its name.
        stream: String,
    },
    /// The caller refused a message.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
}

/// A message of a scanned stream.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'a> {
    pub sequence: u64,
    message: &'a Message,
}

impl Scanned<'_> {
    /// Its subject.
    pub fn subject(&self) -> &str {
        self.message.subject.as_str()
    }

    /// Its payload.
    pub fn payload(&self) -> &Bytes {
        &self.message.payload
    }

    /// When it was stored; `None` if its metadata is invalid.
    pub fn time(&self) -> Option<DateTime<Utc>> {
        self.message.info().ok().map(|info| info.published)
    }

    /// Its headers, each with all of its values.
    pub fn headers(&self) -> BTreeMap<String, Vec<String>> {
        let headers = self.message.headers.iter().flat_map(async_nats::HeaderMap::iter);
        headers
            .map(|(name, values)| (name.to_string(), values.iter().map(ToString::to_string).collect()))
            .collect()
    }

    /// Parses it as a message of the journal.
    ///
    /// # Errors
    /// It is not one.
    pub fn as_journal(&self) -> Result<codec::Message, JournalError> {
        journal::read_delivered(self.sequence, self.message)
    }

    /// Converts it to a message of the control stream; `None` if its metadata is invalid.
    pub fn as_control(&self) -> Option<RawControl> {
        commands::raw(self.sequence, self.message)
    }
}

impl Bus {
    /// Passes the messages of the stream `name` from sequence `from` on to `take`, in order, up to the one that is last
    /// when reading begins. A missing stream counts as empty.
    ///
    /// # Errors
    /// The bus or `take` fails.
    pub async fn scan(
        &self,
        name: &str,
        from: u64,
        take: impl FnMut(&Scanned<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<(), ScanError> {
        self.scan_with(name, DeliverPolicy::ByStartSequence { start_sequence: from.max(1) }, &[], take).await
    }

    /// Like [`Self::scan`], but only with the last message of each subject that matches one of `filters`.
    ///
    /// # Errors
    /// The bus or `take` fails.
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
        // A consumer that starts beyond the end would wait for new messages.
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
