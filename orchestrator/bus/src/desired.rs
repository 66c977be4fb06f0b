//! What hosts are to have: items and manifests, published under a fence.
//!
//! A stream's fence orders those who write to it. The control stream's is proved by the journal; here a leader puts its own in place of an
//! earlier one, and never of a later one: that is compared, and the stream takes the new one only if what was compared is still the last.
//! So once a leader's fence is stored, nothing of an earlier leader is stored any more, however long that was paused.

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use bytes::Bytes;
use os_upgrade_protocol::{DesiredFence, HostName, ItemId, Manifest, header as names, subject};

use super::Bus;

/// What became of a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredFenced {
    /// It is stored, with this sequence.
    Stored(u64),
    /// A later leader has put its own, so this instance does not lead any more.
    Superseded,
    /// The stream is another site's.
    CrossedSite { site: String },
    /// It may be stored or not: to be tried again.
    Unknown,
}

/// What became of an item or a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesiredStored {
    /// It is stored, with this sequence.
    Stored(u64),
    /// The fence is no longer the last one: it is certainly not stored.
    Fenced,
    /// It may be stored or not. Only after another fence it can no longer become so.
    Unknown,
}

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

    /// Publishes a sealed item under the fence at this sequence.
    pub async fn publish_item(
        &self,
        host: &HostName,
        id: &ItemId,
        sealed: Bytes,
        fence: u64,
    ) -> DesiredStored {
        self.publish_desired(subject::desired_item(host, id), fence, sealed).await
    }

    /// Publishes what `host` is to have under the fence at this sequence.
    pub async fn publish_manifest(&self, host: &HostName, manifest: &Manifest, fence: u64) -> DesiredStored {
        self.publish_desired(subject::desired_manifest(host), fence, manifest.to_payload().into()).await
    }

    /// Deletes an item that no manifest names any more. Returns whether it is certainly not in the stream any more.
    pub async fn delete_item(&self, host: &HostName, id: &ItemId) -> bool {
        let Ok(stream) = self.stream(subject::DESIRED_STREAM).await else { return false };
        stream.purge().filter(subject::desired_item(host, id)).await.is_ok()
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
