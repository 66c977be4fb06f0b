//! Deletes what the streams have of a removed host. Of a host that has announced itself since, what is newer stays.

use async_nats::HeaderMap;
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{InfoError, RawMessageErrorKind, Stream};
use bytes::Bytes;
use futures::TryStreamExt as _;
use os_upgrade_kernel::Purge;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{header as names, subject};

use super::Bus;

/// Why something could not be deleted, as a sentence for the log.
type Failed = String;

impl Bus {
    /// Deletes what the streams have of a removed host. Returns whether everything is gone; repeating it does no harm.
    pub async fn purge_host(&self, purge: &Purge) -> bool {
        let host = &purge.host;
        match self.try_purge(purge).await {
            Ok(()) => {
                tracing::info!(%host, "what the streams had of the removed host is deleted");
                true
            }
            Err(error) => {
                tracing::warn!(%host, error, "what the streams have of the removed host cannot be deleted yet");
                false
            }
        }
    }

    async fn try_purge(&self, purge: &Purge) -> Result<(), Failed> {
        let Purge { host, announced, removed_at } = purge;
        let workers = self.purged_stream(subject::WORKERS_STREAM).await?;
        let mut is_back = false;
        for on in subjects(&workers, &subject::workers_of(host)).await? {
            is_back |= !self.withdraw(&workers, &on, |message| message.sequence <= *announced).await?;
        }
        let (versions, on) = (self.purged_stream(subject::VERSIONS_STREAM).await?, subject::versions(host));
        if self.withdraw(&versions, &on, |message| message.time <= *removed_at).await? {
            versions.purge().filter(&on).keep(1).await.map_err(|error| with_causes(&error))?;
        }
        if let Some(outputs) =
            self.find_stream(subject::OUTPUT_STREAM).await.map_err(|error| with_causes(&error))?
        {
            outputs.purge().filter(subject::output(host)).await.map_err(|error| with_causes(&error))?;
        }
        // That it has nothing any more is forgotten.
        if let Some(applied) =
            self.find_stream(subject::APPLIED_STREAM).await.map_err(|error| with_causes(&error))?
        {
            applied.purge().filter(subject::applied(host)).await.map_err(|error| with_causes(&error))?;
        }
        self.purge_items(host).await?;
        if is_back { Ok(()) } else { self.delete_consumer(&subject::consumer(host)).await }
    }

    /// Withdraws the last message on `subject` by an empty one, which tells every instance. Returns false if that message is
    /// not `old`, and stays.
    async fn withdraw(
        &self,
        stream: &Stream,
        subject: &str,
        old: impl Fn(&StreamMessage) -> bool,
    ) -> Result<bool, Failed> {
        let last = match stream.get_last_raw_message_by_subject(subject).await {
            Ok(last) => last,
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(true),
            Err(error) => return Err(with_causes(&error)),
        };
        if last.payload.is_empty() {
            return Ok(true);
        }
        if !old(&last) {
            return Ok(false);
        }
        let mut headers = HeaderMap::new();
        headers.insert(names::EXPECTED_LAST_SUBJECT_SEQUENCE, last.sequence.to_string());
        let sent = self.publish(subject.to_owned(), headers, Bytes::new()).await;
        // It also fails if the host has announced itself at this very moment: it is looked at again.
        sent.map_err(|error| with_causes(&error))?.await.map_err(|error| with_causes(&error))?;
        Ok(true)
    }

    async fn delete_consumer(&self, name: &str) -> Result<(), Failed> {
        let control = self.purged_stream(subject::CONTROL_STREAM).await?;
        match control.delete_consumer(name).await {
            Ok(_) => Ok(()),
            Err(error) => match control.consumer_info(name).await {
                Err(info) if info.kind() == ConsumerInfoErrorKind::NotFound => Ok(()),
                Err(_) | Ok(_) => Err(with_causes(&error)),
            },
        }
    }

    async fn purged_stream(&self, name: &str) -> Result<Stream, Failed> {
        self.stream(name).await.map_err(|error| with_causes(&error))
    }
}

/// The subjects in `stream` that match `filter`.
pub(super) async fn subjects(stream: &Stream, filter: &str) -> Result<Vec<String>, Failed> {
    let listed = stream.info_with_subjects(filter).await.map_err(|error| with_causes(&error))?;
    let subjects = listed.map_ok(|(subject, _)| subject).try_collect().await;
    subjects.map_err(|error: InfoError| with_causes(&error))
}
