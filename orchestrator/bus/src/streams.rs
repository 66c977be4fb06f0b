//! The orchestrator's streams: missing ones are created, existing ones are checked.
//!
//! [`check`] compares settings of existing streams, [`inspect`] reads what journal and control stream contain.

mod check;
mod error;
pub mod inspect;
mod layout;

use std::error::Error as _;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind, RequestError, RequestErrorKind};
use async_nats::jetstream::stream::{Config, Stream};
use futures::future::join_all;
use os_upgrade_credentials::ORCHESTRATOR;
use os_upgrade_protocol::subject;
use os_upgrade_shell::instance::StreamSettings;

pub use self::error::StreamsError;
pub use self::layout::Layout;
pub(crate) use self::layout::{LEASE_BUCKET, LEASE_STREAM};
use self::layout::{RESTORING, SITE, configs, settings};
use super::Bus;

/// The streams that a restoration marks. The mark of the journal is removed last: it alone means that everything is
/// restored but the marks.
const RESTORED: [&str; 2] = [subject::CONTROL_STREAM, subject::JOURNAL_STREAM];

/// A restoration that is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    pub id: String,
    /// Whether it has created the journal that is there. Otherwise that is the one from before, or there is none.
    pub has_journal: bool,
}

impl Bus {
    /// Checks existing streams and creates missing ones. `had_data`: journal and control stream are known to have
    /// existed, so a missing one is lost and is not created.
    ///
    /// # Errors
    /// A stream cannot be created, or exists with other settings or for another site. It is not changed.
    pub async fn ensure_streams(&self, layout: &Layout<'_>, had_data: bool) -> Result<(), StreamsError> {
        // Before anything is created, because a restoration may have deleted the journal.
        for stream in RESTORED {
            if self.restoration_of(stream).await?.is_some() {
                return Err(StreamsError::Restoring { stream: stream.to_owned() });
            }
        }
        let configs = configs(layout);
        for (index, config) in configs.iter().enumerate() {
            let irreplaceable = index < 2;
            if irreplaceable && had_data && self.find_stream(&config.name).await?.is_none() {
                continue;
            }
            self.ensure_stream(config).await?;
        }
        self.ensure_lease(layout).await?;
        self.ensured.get_or_init(|| configs);
        Ok(())
    }

    /// Checks the stream, or creates it if it does not exist.
    pub(super) async fn ensure_stream(&self, config: &Config) -> Result<(), StreamsError> {
        match self.find_stream(&config.name).await? {
            Some(found) => self.adopt(&found.cached_info().config, config).await,
            None => self.make_stream(config).await.map(drop),
        }
    }

    /// The stream with settings that can be used in place of `wanted`; `None` if it does not exist.
    ///
    /// # Errors
    /// It exists with other settings, or the bus does not answer.
    pub(super) async fn find_checked(&self, wanted: &Config) -> Result<Option<Stream>, StreamsError> {
        let found = self.find_stream(&wanted.name).await?;
        found.map(|stream| check::check(&stream.cached_info().config, wanted).map(|()| stream)).transpose()
    }

    /// Checks every stream without changing any. For each, returns its name and its first problem; `None` if it does
    /// not exist.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn check_streams(
        &self,
        layout: &Layout<'_>,
    ) -> Result<Vec<(String, Option<Result<(), StreamsError>>)>, StreamsError> {
        let mut checked = Vec::new();
        for config in settings(layout) {
            let found = self.find_stream(&config.name).await?;
            let result = found.map(|found| check::check(&found.cached_info().config, &config));
            checked.push((config.name, result));
        }
        Ok(checked)
    }

    /// Whether the streams still have the settings of [`Self::ensure_streams`]; `found` are those that were just looked up.
    async fn check_settings(&self, found: &[Option<&Stream>]) -> StreamSettings {
        let lease = || self.lease.get().map(|lease| &lease.config);
        let ensured = self.ensured.get().into_iter().flat_map(|configs| configs.iter().chain(lease()));
        let check = async |wanted: &Config| {
            let known = found.iter().flatten().map(|stream| &stream.cached_info().config);
            match known.into_iter().find(|config| config.name == wanted.name) {
                Some(config) => check::check(config, wanted),
                None => self.find_checked(wanted).await.map(drop),
            }
        };
        let mut settings = StreamSettings::Unchanged;
        for checked in join_all(ensured.map(check)).await {
            match checked {
                Ok(()) => {}
                Err(error @ StreamsError::Incompatible { .. }) => {
                    return StreamSettings::Changed(error.to_string());
                }
                Err(_) => settings = StreamSettings::Unknown,
            }
        }
        settings
    }

    /// Deletes the journal and creates it again; its first message will have `first_sequence`. No orchestrator uses it
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

    /// Marks the control stream as that of a restoration. No orchestrator uses it before [`Self::finish_restoration`].
    ///
    /// # Errors
    /// The bus does not answer or refuses.
    pub async fn begin_restoration(&self, restoration: &str) -> Result<(), StreamsError> {
        let mut config = self.stream(subject::CONTROL_STREAM).await?.cached_info().config.clone();
        config.metadata.insert(RESTORING.to_owned(), restoration.to_owned());
        let updated = self.jetstream.update_stream(config).await;
        updated.map(drop).map_err(|error| unusable(subject::CONTROL_STREAM, error))
    }

    /// Empties the control stream, or creates it. Its next message will have at least `first_sequence`. No orchestrator
    /// uses it before [`Self::finish_restoration`].
    ///
    /// # Errors
    /// The bus does not answer or refuses.
    pub async fn renew_control(
        &self,
        layout: &Layout<'_>,
        first_sequence: u64,
        restoration: &str,
    ) -> Result<Stream, StreamsError> {
        let mut config = Config { first_sequence: Some(first_sequence), ..layout.control() };
        let Some(stream) = self.find_stream(&config.name).await? else {
            config.metadata.insert(RESTORING.to_owned(), restoration.to_owned());
            return self.make_stream(&config).await;
        };
        self.begin_restoration(restoration).await?;
        // Purging keeps workers' consumers. A sequence beyond the end becomes the stream's next one.
        let next = first_sequence.max(stream.cached_info().state.last_sequence + 1);
        let purged = stream.purge().sequence(next).await;
        purged.map_err(|error| unusable(&config.name, error))?;
        self.stream(&config.name).await
    }

    /// The restoration that is not finished; `None` if there is none.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn unfinished_restoration(&self) -> Result<Option<Unfinished>, StreamsError> {
        let journal = self.restoration_of(subject::JOURNAL_STREAM).await?;
        let has_journal = journal.is_some();
        let id = match journal {
            Some(id) => Some(id),
            None => self.restoration_of(subject::CONTROL_STREAM).await?,
        };
        Ok(id.map(|id| Unfinished { id, has_journal }))
    }

    async fn restoration_of(&self, stream: &str) -> Result<Option<String>, StreamsError> {
        let found = self.find_stream(stream).await?;
        Ok(found.and_then(|found| found.cached_info().config.metadata.get(RESTORING).cloned()))
    }

    /// Ends the restoration, so that orchestrators use the streams.
    ///
    /// # Errors
    /// The bus does not answer or refuses.
    pub async fn finish_restoration(&self) -> Result<(), StreamsError> {
        for stream in RESTORED {
            let mut config = self.stream(stream).await?.cached_info().config.clone();
            if config.metadata.remove(RESTORING).is_some() {
                let updated = self.jetstream.update_stream(config).await;
                updated.map_err(|error| unusable(stream, error))?;
            }
        }
        Ok(())
    }

    async fn make_stream(&self, config: &Config) -> Result<Stream, StreamsError> {
        // A stream that another instance has created meanwhile is checked, too.
        let made = self.jetstream.get_or_create_stream(config.clone()).await;
        let made = made.map_err(|error| unusable(&config.name, error))?;
        check::check(&made.cached_info().config, config)?;
        Ok(made)
    }

    /// Checks an existing stream, and adds the site to its metadata if it is missing.
    async fn adopt(&self, found: &Config, wanted: &Config) -> Result<(), StreamsError> {
        check::check(found, wanted)?;
        if !wanted.metadata.contains_key(SITE) || found.metadata.contains_key(SITE) {
            return Ok(());
        }
        let mut tagged = found.clone();
        tagged.metadata.extend(wanted.metadata.clone());
        let updated = self.jetstream.update_stream(tagged).await;
        updated.map_err(|error| unusable(&wanted.name, error))?;
        Ok(())
    }

    fn no_jetstream(&self) -> StreamsError {
        match self.user.as_deref() {
            Some(user) if user != ORCHESTRATOR => StreamsError::NotAnOrchestrator { user: user.to_owned() },
            Some(_) | None => StreamsError::NoJetStream,
        }
    }

    pub(super) async fn stream(&self, name: &str) -> Result<Stream, StreamsError> {
        self.jetstream.get_stream(name).await.map_err(|error| unusable(name, error))
    }

    /// The stream; `None` if it does not exist.
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

pub(super) fn unusable(stream: &str, source: impl Into<async_nats::Error>) -> StreamsError {
    StreamsError::Unusable { stream: stream.to_owned(), source: source.into() }
}
