//! Commands on their way to hosts: published under a fence, retracted, and read back from the control stream.

use async_nats::HeaderMap;
use async_nats::jetstream::consumer;
use async_nats::jetstream::context::{ConsumerInfoErrorKind, PublishErrorKind};
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use chrono::Utc;
use futures::TryStreamExt;
use os_upgrade_kernel::Order;
use os_upgrade_protocol::{Fence, HostName, header as names, subject};
use os_upgrade_shell::control_stream::RawControl;
use os_upgrade_shell::dispatch::PublishOutcome;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::reader::{Delivery, Read};
use super::{Bus, header};

impl Bus {
    /// Publishes a fence. Returns its sequence, or `None` unless it is certainly stored.
    pub async fn publish_fence(&self, leader: &str, nonce: &str) -> Option<u64> {
        let payload = Fence::new(leader, nonce).to_payload();
        let mut headers = HeaderMap::new();
        headers.insert(names::PRODUCER_NAME, names::CONTROLLER);
        let sent = self.publish(subject::LEADER.to_owned(), headers, payload.into()).await;
        sent.ok()?.await.ok().map(|ack| ack.sequence)
    }

    /// Publishes a command on condition that `fence` is still the last one, and not after its time.
    pub async fn publish_command(&self, order: &Order, fence: u64) -> PublishOutcome {
        // This process may have been paused since the command was dispatched.
        if order.is_late(Utc::now()) {
            return PublishOutcome::NotStored;
        }
        let (id, command) = (&order.id, order.command());
        let mut headers = HeaderMap::new();
        headers.insert(names::PRODUCER_NAME, names::CONTROLLER);
        headers.insert(names::RUN, id.run.as_str());
        headers.insert(names::COMMAND_ID, id.to_string());
        headers.insert(names::EXPECTED_LAST_SUBJECT_SEQUENCE, fence.to_string());
        headers.insert(names::EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT, subject::LEADER);
        let sent = self.publish(subject::command(&id.host), headers, command.to_payload().into()).await;
        let acked = match sent {
            Ok(acked) => acked.await,
            Err(error) => Err(error),
        };
        match acked {
            Ok(_) => PublishOutcome::Stored,
            Err(error) => {
                tracing::debug!(%error, command = %id, "publish");
                outcome(&error)
            }
        }
    }

    /// Deletes the command at `sequence`, unless it was delivered to a worker. `Some(true)`: deleted. `Some(false)`: a
    /// worker has it, or it does not exist. `None`: unknown.
    pub async fn retract(&self, host: &HostName, sequence: u64) -> Option<bool> {
        let stream = self.stream(subject::CONTROL_STREAM).await.ok()?;
        if was_delivered(&stream, host, sequence).await? {
            return Some(false);
        }
        match stream.delete_message(sequence).await {
            Ok(deleted) => Some(deleted),
            Err(error) => {
                tracing::debug!(%error, sequence, "retract");
                // It may be deleted already, or the bus may be away.
                match stream.get_raw_message(sequence).await {
                    Err(error)
                        if error.kind()
                            == async_nats::jetstream::stream::RawMessageErrorKind::NoMessageFound =>
                    {
                        Some(false)
                    }
                    Ok(_) | Err(_) => None,
                }
            }
        }
    }

    /// Maps the control stream's messages from sequence `from` on and sends them to `sink`, until `stop`.
    pub async fn read_control<T: Send>(
        &self,
        from: u64,
        stop: CancellationToken,
        sink: mpsc::Sender<T>,
        map: impl Fn(RawControl) -> T + Send + Sync,
    ) {
        self.read(
            (subject::CONTROL_STREAM, Delivery::Pushed),
            from,
            stop,
            sink,
            |sequence, read| match read {
                Read::Message(message) => raw(sequence, &message).map(&map),
                Read::End => None,
            },
        )
        .await;
    }
}

/// Whether the message at `sequence` was delivered to a worker of `host`; `None` if unknown. The SDK's consumers have a
/// known name. A worker without the SDK may use another, so all consumers are searched if there is none of that name.
async fn was_delivered(stream: &Stream, host: &HostName, sequence: u64) -> Option<bool> {
    match stream.consumer_info(subject::consumer(host)).await {
        Ok(info) => return Some(info.delivered.stream_sequence >= sequence),
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {}
        Err(_) => return None,
    }
    let command = subject::command(host);
    let consumers: Vec<consumer::Info> = stream.consumers().try_collect().await.ok()?;
    let may_receive = |info: &&consumer::Info| {
        let (one, many) = (&info.config.filter_subject, &info.config.filter_subjects);
        let all = one.is_empty() && many.is_empty();
        let matching = all || covers(one, &command) || many.iter().any(|filter| covers(filter, &command));
        // A consumer without acknowledgements only observes, as the orchestrator's own do.
        matching && info.config.ack_policy != consumer::AckPolicy::None
    };
    Some(consumers.iter().filter(may_receive).any(|info| info.delivered.stream_sequence >= sequence))
}

/// Whether `filter`, with its wildcards, covers `subject`.
fn covers(filter: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in filter.split('.') {
        match (wanted, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(token)) if wanted == token => {}
            (_, _) => return false,
        }
    }
    tokens.next().is_none()
}

fn outcome(error: &async_nats::jetstream::context::PublishError) -> PublishOutcome {
    match error.kind() {
        PublishErrorKind::WrongLastSequence => PublishOutcome::Fenced,
        PublishErrorKind::StreamNotFound
        | PublishErrorKind::WrongLastMessageId
        | PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::MaxAckPending
        | PublishErrorKind::MaxPayloadExceeded
        | PublishErrorKind::Other => {
            let busy = async_nats::jetstream::ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT;
            let source = std::error::Error::source(error);
            let code = source
                .and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>())
                .map(async_nats::jetstream::Error::error_code);
            if code == Some(busy) { PublishOutcome::NotStored } else { PublishOutcome::Unknown }
        }
    }
}

/// Converts a delivered message of the control stream; `None` without JetStream metadata.
pub(crate) fn raw(sequence: u64, message: &async_nats::jetstream::Message) -> Option<RawControl> {
    let info = message.info().ok()?;
    let lookup = |name: &str| {
        let headers = message.headers.as_ref()?;
        header(headers, name).map(str::to_owned)
    };
    Some(RawControl {
        sequence,
        time: info.published,
        subject: message.subject.to_string(),
        command_id: lookup(names::COMMAND_ID).or_else(|| lookup(names::LEGACY_COMMAND_ID)),
        in_reply_to: lookup(names::IN_REPLY_TO),
        run: lookup(names::RUN),
        payload: Bytes::clone(&message.payload),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn filters_cover_as_in_nats() {
        let subject = "os-upgrade:control.command.h1";
        for (filter, covers) in [
            ("os-upgrade:control.command.h1", true),
            ("os-upgrade:control.command.*", true),
            ("os-upgrade:control.>", true),
            ("*.*.*", true),
            (">", true),
            ("os-upgrade:control.command.h2", false),
            ("os-upgrade:control.reply.*", false),
            ("os-upgrade:control.*", false),
            ("os-upgrade:control.command.h1.>", false),
            ("os-upgrade:control.command.h1.x", false),
            ("", false),
        ] {
            assert_eq!(super::covers(filter, subject), covers, "{filter}");
        }
    }
}
