//! The streams as the orchestrator needs them: made when they are missing, checked when they are there.
//!
//! [`check`] says what an existing stream must be like, [`inspect`] whether it has lost anything.

mod check;
mod error;
pub mod inspect;
mod layout;

use std::error::Error as _;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind, RequestError, RequestErrorKind};
use async_nats::jetstream::stream::{Config, Stream};
use os_upgrade_credentials::ORCHESTRATOR;
use os_upgrade_protocol::subject;

pub use self::error::StreamsError;
pub use self::layout::Layout;
use self::layout::{RESTORING, SITE, configs};
use super::Bus;

impl Bus {
    /// Checks the streams that are there and makes the others; `had_data` says that journal and control stream have
    /// held something, so that one of them that is missing has been lost, and is left missing.
    ///
    /// # Errors
    /// One cannot be made, or is there and made differently, or is another site's; it is left as it is.
    pub async fn ensure_streams(&self, layout: &Layout<'_>, had_data: bool) -> Result<(), StreamsError> {
        for (index, config) in configs(layout).into_iter().enumerate() {
            let irreplaceable = index < 2;
            match self.find_stream(&config.name).await? {
                Some(found) => self.adopt(&found.cached_info().config, &config).await?,
                None if irreplaceable && had_data => {}
                None => drop(self.make_stream(&config).await?),
            }
        }
        Ok(())
    }

    /// Checks every stream that is there, and changes none: the first problem of each, and the streams not there.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn check_streams(
        &self,
        layout: &Layout<'_>,
    ) -> Result<Vec<(String, Option<Result<(), StreamsError>>)>, StreamsError> {
        let mut checked = Vec::new();
        for config in configs(layout) {
            let found = self.find_stream(&config.name).await?;
            let result = found.map(|found| check::check(&found.cached_info().config, &config));
            checked.push((config.name, result));
        }
        Ok(checked)
    }

    /// Makes the journal anew: what it holds is gone, and its next message has `first_sequence`. Nobody may use it
    /// before [`Self::finish_restoration`].
    ///
    /// # Errors
    /// The bus does not answer or refuses.
    pub async fn renew_journal(
        &self,
        layout: &Layout<'_>,
        first_sequence: u64,
        restoration: &str,
    ) -> Result<Stream, StreamsError> {
        let mut config = Config { first_sequence: Some(first_sequence), ..layout.journal() };
        config.metadata.insert(RESTORING.to_owned(), restoration.to_owned());
        if self.find_stream(&config.name).await?.is_some() {
            let deleted = self.jetstream.delete_stream(&config.name).await;
            deleted.map_err(|error| unusable(&config.name, error))?;
        }
        self.make_stream(&config).await
    }

    /// Empties the control stream, or makes it: its next message has `first_sequence`, or one above it.
    ///
    /// # Errors
    /// The bus does not answer or refuses.
    pub async fn renew_control(
        &self,
        layout: &Layout<'_>,
        first_sequence: u64,
    ) -> Result<Stream, StreamsError> {
        let config = Config { first_sequence: Some(first_sequence), ..layout.control() };
        let Some(stream) = self.find_stream(&config.name).await? else {
            return self.make_stream(&config).await;
        };
        // Consumers of workers stay; a sequence beyond the end is where the stream goes on.
        let next = first_sequence.max(stream.cached_info().state.last_sequence + 1);
        let purged = stream.purge().sequence(next).await;
        purged.map_err(|error| unusable(&config.name, error))?;
        self.stream(&config.name).await
    }

    /// The restoration that the journal has been made anew by and that is not at its end.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn unfinished_restoration(&self) -> Result<Option<String>, StreamsError> {
        let journal = self.find_stream(subject::JOURNAL_STREAM).await?;
        Ok(journal.and_then(|journal| journal.cached_info().config.metadata.get(RESTORING).cloned()))
    }

    /// Lets the journal be used.
    ///
    /// # Errors
    /// The bus does not answer or refuses.
    pub async fn finish_restoration(&self) -> Result<(), StreamsError> {
        let mut config = self.stream(subject::JOURNAL_STREAM).await?.cached_info().config.clone();
        config.metadata.remove(RESTORING);
        let updated = self.jetstream.update_stream(config).await;
        updated.map(drop).map_err(|error| unusable(subject::JOURNAL_STREAM, error))
    }

    async fn make_stream(&self, config: &Config) -> Result<Stream, StreamsError> {
        // One that somebody else has made meanwhile is checked as if it had been there.
        let made = self.jetstream.get_or_create_stream(config.clone()).await;
        let made = made.map_err(|error| unusable(&config.name, error))?;
        check::check(&made.cached_info().config, config)?;
        Ok(made)
    }

    /// Checks a stream that is there; one that does not say whose it is yet is marked.
    async fn adopt(&self, found: &Config, wanted: &Config) -> Result<(), StreamsError> {
        check::check(found, wanted)?;
        if !wanted.metadata.contains_key(SITE) || found.metadata.contains_key(SITE) {
            return Ok(());
        }
        let mut marked = found.clone();
        marked.metadata.extend(wanted.metadata.clone());
        let updated = self.jetstream.update_stream(marked).await;
        updated.map_err(|error| unusable(&wanted.name, error))?;
        Ok(())
    }

    fn no_jetstream(&self) -> StreamsError {
        match self.user.as_deref() {
            Some(user) if user != ORCHESTRATOR => StreamsError::NotForThis { user: user.to_owned() },
            Some(_) | None => StreamsError::NoJetStream,
        }
    }

    pub(super) async fn stream(&self, name: &str) -> Result<Stream, StreamsError> {
        self.jetstream.get_stream(name).await.map_err(|error| unusable(name, error))
    }

    /// The stream, if it is there.
    pub(super) async fn find_stream(&self, name: &str) -> Result<Option<Stream>, StreamsError> {
        match self.jetstream.get_stream(name).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) if has_no_jetstream(&error) => Err(self.no_jetstream()),
            Err(error) => Err(unusable(name, error)),
        }
    }
}

fn is_not_found(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn has_no_jetstream(error: &GetStreamError) -> bool {
    match error.kind() {
        GetStreamErrorKind::JetStream(error) => {
            [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT]
                .contains(&error.error_code())
        }
        GetStreamErrorKind::Request => {
            let source = error.source().and_then(|source| source.downcast_ref::<RequestError>());
            source.is_some_and(|source| source.kind() == RequestErrorKind::NoResponders)
        }
        GetStreamErrorKind::EmptyName | GetStreamErrorKind::InvalidStreamName => false,
    }
}

fn unusable(stream: &str, source: impl Into<async_nats::Error>) -> StreamsError {
    StreamsError::Unusable { stream: stream.to_owned(), source: source.into() }
}
