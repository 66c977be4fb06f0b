//! What hosts are to have: items and manifests, published under a fence. A manifest is published after the items that it names.
//!
//! A stream's fence orders those who write to it. The control stream's is proved by the journal; here a leader puts its own in place of an
//! earlier one, and never of a later one: that is compared, and the stream takes the new one only if what was compared is still the last.
//! So once a leader's fence is stored, nothing of an earlier leader is stored any more, however long that was paused.

use std::collections::BTreeSet;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use bytes::Bytes;
use os_upgrade_protocol::{DesiredFence, HostName, ItemId, Manifest, header as names, subject};

use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::delivery::{DesiredFenced, DesiredStored};

use super::Bus;
use super::purge::subjects;

impl Bus {
    /// Puts `fence` in place of an earlier one.
    pub async fn fence_desired(&self, fence: &DesiredFence) -> DesiredFenced {
        let Ok(stream) = self.stream(subject::DESIRED_STREAM).await else { return DesiredFenced::Unknown };
        let Ok(last) = last_fence(&stream).await else { return DesiredFenced::Unknown };
        let expected = match last {
            Some((_, LastFence::Of(last))) if last.site != fence.site => {
                return DesiredFenced::CrossedSite { site: last.site };
            }
            Some((_, LastFence::Of(last))) if last.revision > fence.revision => {
                return DesiredFenced::Superseded;
            }
            // What is none orders nobody.
            Some((sequence, LastFence::Of(_) | LastFence::Unreadable)) => sequence,
            None => 0,
        };
        match self
            .publish_desired(subject::DESIRED_LEADER.to_owned(), expected, fence.to_payload().into())
            .await
        {
            DesiredStored::Stored(sequence) => DesiredFenced::Stored(sequence),
            // Somebody was quicker: whoever it is, it is compared the next time.
            DesiredStored::Fenced | DesiredStored::Unknown => DesiredFenced::Unknown,
        }
    }

    /// The site whose leader has put the last fence; `None` if there is none yet.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub async fn desired_site(&self) -> Result<Option<String>, String> {
        let stream = self.find_stream(subject::DESIRED_STREAM).await.map_err(|error| with_causes(&error))?;
        let Some(stream) = stream else { return Ok(None) };
        let last = last_fence(&stream).await.map_err(|error| error.to_string())?;
        Ok(last.and_then(|(_, last)| match last {
            LastFence::Of(fence) => Some(fence.site),
            LastFence::Unreadable => None,
        }))
    }

    /// Publishes an item under the fence at this sequence: a sealed configuration, or a unit.
    pub async fn publish_item(
        &self,
        host: &HostName,
        id: &ItemId,
        content: Bytes,
        fence: u64,
    ) -> DesiredStored {
        self.publish_desired(subject::desired_item(host, id), fence, content).await
    }

    /// Publishes what `host` is to have under the fence at this sequence: the `units` that the manifest names and that may not be stored yet, and
    /// then the manifest. Tells the host, and deletes what the manifest no longer names: the `replaced` items, and whatever is older than
    /// `since`, the first fence of this leader. It is stored only if all that is done.
    pub async fn publish_manifest(
        &self,
        host: &HostName,
        manifest: &Manifest,
        units: &[(ItemId, Bytes)],
        replaced: &[ItemId],
        (fence, since): (u64, u64),
    ) -> DesiredStored {
        for (id, unit) in units {
            match self.publish_item(host, id, unit.clone(), fence).await {
                DesiredStored::Stored(_) => {}
                failed @ (DesiredStored::Fenced | DesiredStored::Unknown) => return failed,
            }
        }
        let subject = subject::desired_manifest(host);
        let stored = self.publish_desired(subject, fence, manifest.to_payload().into()).await;
        if let DesiredStored::Stored(_) = stored {
            // The host looks once a minute anyway.
            drop(self.client.publish(subject::desired_hint(host), Bytes::new()).await);
            if let Err(error) = self.delete_unnamed(host, manifest, replaced, since).await {
                tracing::debug!(%host, error, "cannot delete what the host is not to have any more");
                return DesiredStored::Unknown;
            }
        }
        stored
    }

    async fn delete_unnamed(
        &self,
        host: &HostName,
        manifest: &Manifest,
        replaced: &[ItemId],
        since: u64,
    ) -> Result<(), String> {
        let stream = self.stream(subject::DESIRED_STREAM).await.map_err(|error| with_causes(&error))?;
        let named: BTreeSet<String> =
            manifest.items.iter().map(|item| subject::desired_item(host, &item.id)).collect();
        let replaced: BTreeSet<String> = replaced.iter().map(|id| subject::desired_item(host, id)).collect();
        for on in subjects(&stream, &subject::desired_items(host)).await? {
            let purge = stream.purge().filter(&on);
            let purged = match () {
                () if named.contains(&on) => continue,
                () if replaced.contains(&on) => purge.await,
                () => purge.sequence(since).await,
            };
            purged.map_err(|error| with_causes(&error))?;
        }
        Ok(())
    }

    /// Deletes the items that were stored before `host` was told that it is to have nothing. What is newer is of a host that was approved again.
    pub(super) async fn purge_items(&self, host: &HostName) -> Result<(), String> {
        let stream = self.find_stream(subject::DESIRED_STREAM).await.map_err(|error| with_causes(&error))?;
        let Some(stream) = stream else { return Ok(()) };
        let told = match stream.get_last_raw_message_by_subject(&subject::desired_manifest(host)).await {
            Ok(told) => told,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(()),
            Err(error) => return Err(with_causes(&error)),
        };
        if Manifest::parse(&told.payload).is_ok_and(|manifest| manifest.items.is_empty()) {
            let purge = stream.purge().filter(subject::desired_items(host)).sequence(told.sequence);
            purge.await.map_err(|error| with_causes(&error))?;
        }
        Ok(())
    }

    async fn publish_desired(&self, subject: String, fence: u64, payload: Bytes) -> DesiredStored {
        let mut headers = HeaderMap::new();
        headers.insert(names::PRODUCER_NAME, names::CONTROLLER);
        headers.insert(names::EXPECTED_LAST_SUBJECT_SEQUENCE, fence.to_string());
        headers.insert(names::EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT, subject::DESIRED_LEADER);
        let acked = match self.publish(subject, headers, payload).await {
            Ok(acked) => acked.await,
            Err(error) => Err(error),
        };
        match acked {
            Ok(ack) => DesiredStored::Stored(ack.sequence),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => DesiredStored::Fenced,
            Err(error) => {
                tracing::debug!(%error, "publish what a host is to have");
                DesiredStored::Unknown
            }
        }
    }
}

/// The last message on the subject of fences.
enum LastFence {
    Of(DesiredFence),
    Unreadable,
}

/// The last fence and its sequence, as the stream's leader has it.
async fn last_fence(stream: &Stream) -> Result<Option<(u64, LastFence)>, async_nats::Error> {
    match stream.get_last_raw_message_by_subject(subject::DESIRED_LEADER).await {
        Ok(message) => {
            let fence = DesiredFence::parse(&message.payload).map_or(LastFence::Unreadable, LastFence::Of);
            Ok(Some((message.sequence, fence)))
        }
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
