//! The controller as a worker sees it: creates streams, sends commands and waits for answers.

use std::fmt::Display;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::jetstream::consumer;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, ErrorCode, context::GetStreamErrorKind};
use async_nats::{Client, HeaderMap};
use chrono::{DateTime, SecondsFormat, Utc};
use futures::TryStreamExt;
use os_upgrade_protocol::{Action, Announcement, HostName, Reply, header, subject};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use super::consumers::ConsumerCreator;
use super::error::{CheckError, nats};
use super::wire::{self, Event, Seen, Wire};

/// How long to wait for an unexpected reply after an acknowledgement.
const QUIET: Duration = Duration::from_millis(300);
/// How often to poll the state of streams and consumers.
pub(super) const POLL_EVERY: Duration = Duration::from_millis(20);

/// How long something may take before the check says that it waits.
const SILENT_FOR: Duration = Duration::from_secs(2);

/// A command that was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) sequence: u64,
    pub(super) action: Action,
    /// The number of messages observed before.
    pub(super) mark: usize,
    /// Whether it must not be answered.
    pub(super) silent: bool,
    /// The check had it redelivered, or the worker restarted, so it is not used to judge in-progress acks.
    pub(super) disturbed: bool,
}

/// The worker's reaction to a command. `index` counts into the observed messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A valid reply.
    Reply { result: String, index: usize },
    /// An invalid reply.
    NoReply { error: String, index: usize },
    /// An acknowledgement without a reply.
    Acked,
    /// Neither a reply nor an acknowledgement.
    Nothing,
}

impl Answer {
    /// A description for the report.
    pub(super) fn seen(&self, patience: Duration) -> String {
        match self {
            Self::Reply { result, .. } => format!("answered with {result:?}"),
            Self::NoReply { error, .. } => format!("answered with an invalid reply: {error}"),
            Self::Acked => "acknowledged, no reply".to_owned(),
            Self::Nothing => format!("neither answered nor acknowledged within {} s", patience.as_secs()),
        }
    }

    pub(super) const fn index(&self) -> Option<usize> {
        match self {
            Self::Reply { index, .. } | Self::NoReply { index, .. } => Some(*index),
            Self::Acked | Self::Nothing => None,
        }
    }

    /// Whether the worker declined the command: with an error, or with an acknowledgement alone.
    pub(super) fn declines(&self) -> bool {
        match self.result() {
            Some(result) => !matches!(result, "done" | "reboot-required"),
            None => *self == Self::Acked,
        }
    }

    pub(super) fn result(&self) -> Option<&str> {
        match self {
            Self::Reply { result, .. } => Some(result),
            Self::NoReply { .. } | Self::Acked | Self::Nothing => None,
        }
    }
}

/// Plays the orchestrator for one host: sends commands and observes the answers.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) host: HostName,
    pub(super) client: Client,
    pub(super) jetstream: jetstream::Context,
    pub(super) wire: Wire,
    pub(super) patience: Duration,
    pub(super) work_wait: Duration,
    pub(super) sent: Vec<Sent>,
    /// The worker is restarted or its consumer deleted from time to time, so commands may be delivered twice.
    pub(super) restarting: bool,
    pub(super) consumer_creator: ConsumerCreator,
    check: u128,
    runs: u32,
}

impl Controller {
    /// Creates missing streams and subscribes to all messages.
    pub(super) async fn start(
        client: Client,
        host: HostName,
        patience: Duration,
        work_wait: Duration,
    ) -> Result<Self, CheckError> {
        let jetstream = jetstream::new(client.clone());
        match jetstream.get_stream(subject::JOURNAL_STREAM).await {
            Ok(_) => return Err(CheckError::InUse),
            Err(error) if is_absent(&error.kind()) => {}
            Err(error) => return Err(nats(error)),
        }
        // These first: a worker that finds the others looks for these at once, and only then says that it takes configurations.
        let of_configurations =
            [os_upgrade_jetstream::desired_stream(), os_upgrade_jetstream::applied_stream()];
        for config in of_configurations.into_iter().chain(os_upgrade_jetstream::worker_streams()) {
            jetstream.get_or_create_stream(config).await.map_err(nats)?;
        }
        let consumer_creator = ConsumerCreator::start(client.clone(), host.clone()).await?;
        let mut wire = Wire::new(client.clone(), host.clone());
        wire.listen_to_all().await.map_err(CheckError::Nats)?;
        client.publish(wire::probe(&host), "".into()).await.map_err(nats)?;
        let is_probe = |event: &Event| event.seen == Seen::Probe;
        let received = wire.until(patience, |events| events.iter().any(is_probe).then_some(())).await;
        received.ok_or(CheckError::CannotSubscribe)?;
        let check = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Ok(Self {
            host,
            client,
            jetstream,
            wire,
            patience,
            work_wait,
            sent: Vec::new(),
            restarting: false,
            consumer_creator,
            check,
            runs: 0,
        })
    }

    /// Sends a `prepare` for this host in a new run.
    pub(super) async fn prepare(&mut self, not_after: Option<DateTime<Utc>>) -> Result<Sent, CheckError> {
        let hosts = json!([self.host]);
        self.prepare_of(hosts, not_after, false).await
    }

    /// Sends a `prepare` for these hosts in a new run.
    pub(super) async fn prepare_of(
        &mut self,
        hosts: Value,
        not_after: Option<DateTime<Utc>>,
        silent: bool,
    ) -> Result<Sent, CheckError> {
        self.runs += 1;
        let at = not_after.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true)).unwrap_or_default();
        let command = json!({ "action": "prepare", "hosts": hosts, "not-after": at });
        self.send(Action::Prepare, &command, silent).await
    }

    /// Sends an `upgrade` or `reboot` for this host in the current run.
    pub(super) async fn command(&mut self, action: Action, silent: bool) -> Result<Sent, CheckError> {
        let command = json!({ "action": action, "host": self.host });
        self.send(action, &command, silent).await
    }

    /// Sends a `reboot` for this host that names the boot to leave.
    pub(super) async fn reboot_of(&mut self, boot_id: &str) -> Result<Sent, CheckError> {
        let command = json!({ "action": Action::Reboot, "host": self.host, "boot-id": boot_id });
        self.send(Action::Reboot, &command, false).await
    }

    /// The announcement of the worker, if one is stored that can be read.
    pub(super) async fn announcement(&self) -> Result<Option<Announcement>, CheckError> {
        let announced = self.stored(subject::WORKERS_STREAM, &subject::workers_of(&self.host)).await?;
        Ok(announced.last().and_then(|payload| Announcement::parse(payload).ok()))
    }

    /// Waits until the worker announces another boot than `boot_id`; false if it does not in time.
    pub(super) async fn has_left(&self, boot_id: &str) -> Result<bool, CheckError> {
        let until = Instant::now() + self.patience;
        loop {
            let announced = self.announcement().await?.and_then(|says| says.boot_id);
            if announced.is_some_and(|announced| announced != boot_id) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            sleep(POLL_EVERY).await;
        }
    }

    pub(super) async fn send(
        &mut self,
        action: Action,
        command: &Value,
        silent: bool,
    ) -> Result<Sent, CheckError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::PRODUCER_NAME, header::CONTROLLER);
        headers.insert(header::RUN, format!("check-{}-{}", self.check, self.runs));
        let mark = self.wire.mark();
        let payload = command.to_string().into();
        let publish = self.jetstream.publish_with_headers(subject::command(&self.host), headers, payload);
        let sequence = publish.await.map_err(nats)?.await.map_err(nats)?.sequence;
        let sent = Sent { sequence, action, mark, silent, disturbed: self.restarting };
        self.sent.push(sent.clone());
        Ok(sent)
    }

    /// Marks a command as disturbed; see [`Sent::disturbed`].
    pub(super) fn disturb(&mut self, sent: &Sent) {
        for known in self.sent.iter_mut().filter(|known| known.sequence == sent.sequence) {
            known.disturbed = true;
        }
    }

    /// Waits until a command is delivered to a worker, and returns its ack subject; `None` if it was not delivered in time
    /// or is already acknowledged.
    pub(super) async fn delivered(&self, sent: &Sent) -> Result<Option<String>, CheckError> {
        let until = Instant::now() + self.patience;
        let delivery = async {
            while Instant::now() < until {
                if let Some(ack) = self.pending_ack(sent).await? {
                    return Ok(Some(ack));
                }
                if self.wire.inspect(|events| acked(events, sent)).is_some() {
                    return Ok(None);
                }
                sleep(POLL_EVERY).await;
            }
            Ok(None)
        };
        let (action, patience) = (sent.action, self.patience.as_secs());
        waiting_for(format_args!("the worker to fetch {action}, for at most {patience} s"), delivery).await
    }

    /// The ack subject of a command that is delivered but not acknowledged.
    async fn pending_ack(&self, sent: &Sent) -> Result<Option<String>, CheckError> {
        let consumers = self.consumers().await?;
        let has = |info: &&consumer::Info| {
            info.num_ack_pending > 0 && info.delivered.stream_sequence == sent.sequence
        };
        // In the server's format. It accepts any values for the last two tokens, the time and the pending count.
        Ok(consumers.iter().find(has).map(|info| {
            let (stream, name, place) =
                (subject::CONTROL_STREAM, &info.name, info.delivered.consumer_sequence);
            format!("$JS.ACK.{stream}.{name}.1.{}.{place}.0.0", sent.sequence)
        }))
    }

    /// Waits for the answer to a command, at most as long as work may take.
    pub(super) async fn answer(&self, sent: &Sent) -> Answer {
        self.answer_within(sent, self.work_wait).await
    }

    /// Waits for the answer to a command: a reply and its acknowledgement, or only an acknowledgement.
    pub(super) async fn answer_within(&self, sent: &Sent, wait: Duration) -> Answer {
        let first =
            |events: &[Event]| reply(events, sent).or_else(|| acked(events, sent).map(|_| Answer::Acked));
        let what = format_args!("the answer to {}, for at most {} s", sent.action, wait.as_secs());
        match waiting_for(what, self.wire.until(wait, first)).await {
            None => Answer::Nothing,
            Some(Answer::Acked) => {
                // A reply may still follow, late or unexpected.
                let late = self.wire.until(QUIET, |events| reply(events, sent)).await;
                late.unwrap_or(Answer::Acked)
            }
            Some(answer) => {
                self.wire.until(self.patience, |events| acked(events, sent)).await;
                answer
            }
        }
    }

    /// Acknowledges a command if the worker has not, so that the next one can be delivered.
    pub(super) async fn settle(&self, sent: &Sent) -> Result<(), CheckError> {
        if self.wire.inspect(|events| acked(events, sent)).is_none()
            && let Some(ack) = self.pending_ack(sent).await?
        {
            self.client.publish(ack, "+ACK".into()).await.map_err(nats)?;
            self.client.flush().await.map_err(nats)?;
        }
        Ok(())
    }

    pub(super) async fn stream(&self, name: &str) -> Result<Stream, CheckError> {
        self.jetstream.get_stream(name).await.map_err(nats)
    }

    /// The consumers that receive this host's commands.
    pub(super) async fn consumers(&self) -> Result<Vec<consumer::Info>, CheckError> {
        let stream = self.stream(subject::CONTROL_STREAM).await?;
        let all: Vec<consumer::Info> = stream.consumers().try_collect().await.map_err(nats)?;
        let wanted = subject::command(&self.host);
        let reads = |info: &consumer::Info| {
            let filters = filters(info);
            filters.is_empty() || filters.iter().any(|filter| covers(filter, &wanted))
        };
        Ok(all.into_iter().filter(reads).collect())
    }

    /// The last sequence of the versions stream.
    pub(super) async fn last_versions(&self) -> Result<u64, CheckError> {
        Ok(self.stream(subject::VERSIONS_STREAM).await?.cached_info().state.last_sequence)
    }

    /// The payloads of the messages in a stream whose subjects match `filter`, oldest first.
    pub(super) async fn stored(&self, stream: &str, filter: &str) -> Result<Vec<Vec<u8>>, CheckError> {
        let stored = self.stored_with_sequences(stream, filter).await?;
        Ok(stored.into_iter().map(|(_, payload)| payload).collect())
    }

    /// As [`Self::stored`], with the messages' sequences.
    pub(super) async fn stored_with_sequences(
        &self,
        stream: &str,
        filter: &str,
    ) -> Result<Vec<(u64, Vec<u8>)>, CheckError> {
        let stream = self.stream(stream).await?;
        let mut payloads = Vec::new();
        let mut next = 1;
        while let Ok(message) =
            stream.raw_message_builder().sequence(next).next_by_subject(filter).send().await
        {
            next = message.sequence + 1;
            payloads.push((message.sequence, message.payload.to_vec()));
        }
        Ok(payloads)
    }
}

/// The outcome of `step`. If it takes long, the log says what is waited for.
pub(super) async fn waiting_for<T>(what: impl Display, step: impl Future<Output = T>) -> T {
    let mut step = pin!(step);
    if let Ok(outcome) = timeout(SILENT_FOR, &mut step).await {
        return outcome;
    }
    info!("waiting for {what}");
    step.await
}

/// The filter subjects of a consumer; empty if it reads all subjects.
pub(super) fn filters(info: &consumer::Info) -> Vec<String> {
    let one = (!info.config.filter_subject.is_empty()).then(|| info.config.filter_subject.clone());
    one.into_iter().chain(info.config.filter_subjects.clone()).collect()
}

/// Whether a filter with wildcards matches this subject.
fn covers(filter: &str, subject: &str) -> bool {
    let (mut filter, mut subject) = (filter.split('.'), subject.split('.'));
    loop {
        match (filter.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(token)) if wanted == token => {}
            (Some(_) | None, Some(_) | None) => return false,
        }
    }
}

/// The index of the command's acknowledgement in `events`.
pub(super) fn acked(events: &[Event], sent: &Sent) -> Option<usize> {
    let acked = Seen::Acked { sequence: sent.sequence };
    Some(sent.mark + events[sent.mark..].iter().position(|event| event.seen == acked)?)
}

/// Whether a reply may belong to this command: it names this one, or none.
pub(super) fn answers(in_reply_to: Option<u64>, sent: &Sent) -> bool {
    in_reply_to.is_none_or(|sequence| sequence == sent.sequence)
}

fn reply(events: &[Event], sent: &Sent) -> Option<Answer> {
    events.iter().enumerate().skip(sent.mark).find_map(|(index, event)| {
        let Seen::Reply { payload, in_reply_to, .. } = &event.seen else { return None };
        answers(*in_reply_to, sent).then(|| match Reply::parse(payload) {
            Ok(reply) if reply.action == sent.action => {
                Answer::Reply { result: reply.result.as_str().to_owned(), index }
            }
            Ok(reply) => Answer::NoReply { error: format!("its action is {}", reply.action), index },
            Err(error) => Answer::NoReply { error: error.to_string(), index },
        })
    })
}

fn is_absent(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_filters_match_subjects() {
        for (filter, expected) in [
            ("a.b.c", true),
            ("a.*.c", true),
            ("a.>", true),
            (">", true),
            ("a.b", false),
            ("a.b.c.>", false),
            ("a.b.d", false),
            ("*", false),
        ] {
            assert_eq!(covers(filter, "a.b.c"), expected, "{filter}");
        }
    }
}
