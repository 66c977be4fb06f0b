//! What NATS does not tell a client, found by trying, for operators. A trial leaves nothing behind, or says what it has left.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::{ErrorCode, stream};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::select;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{AckSubject, subject};

use super::{ANSWER_WITHIN, Bus};

/// After how long NATS deletes the consumer of a trial that was cut off.
const CONSUMER_TTL: Duration = Duration::from_secs(30);
/// The stream that NATS refuses to create, because the journal has its subject.
const REFUSED_STREAM: &str = "os-upgrade:trial";
/// The most streams that NATS is asked for to find a server's limit. About 20 are enough: 5 for the magnitude, the others
/// halve what is left.
const TRIALS_MAX: usize = 64;
/// How exactly a server's limit is found, in bytes; of large ones a thousandth.
const PRECISION: u64 = 16 * 1024;

/// How NATS takes acknowledgements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckTrial {
    /// Whether the subject that it gives with a message has the long form.
    pub is_long: bool,
    /// Why an acknowledgement through it was not taken.
    pub taken: Result<(), String>,
}

/// How much the connected server may store, its `max_file_store`, less what streams of other accounts have reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStorage {
    /// So many bytes.
    Limited(u64),
    /// No less than the account.
    AccountIsLower,
    /// It does not tell, as in a cluster and before there is a journal.
    Unknown,
}

impl Bus {
    /// Acknowledges the last message of the journal to a consumer of its own; `None` if there is no message.
    ///
    /// # Errors
    /// No message can be read, and so none acknowledged.
    pub async fn try_acknowledgement(&self) -> Result<Option<AckTrial>, String> {
        let journal = self.find_stream(subject::JOURNAL_STREAM).await.map_err(|error| with_causes(&error))?;
        let Some(journal) = journal else { return Ok(None) };
        let config = pull::Config {
            deliver_policy: DeliverPolicy::Last,
            ack_policy: AckPolicy::Explicit,
            inactive_threshold: CONSUMER_TTL,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let consumer = journal.create_consumer(config).await.map_err(|error| with_causes(&error))?;
        let trial = async {
            let next = consumer.fetch().max_messages(1).expires(ANSWER_WITHIN).messages().await;
            let next = next.map_err(|error| with_causes(&error))?.next().await;
            let Some(message) = next.transpose().map_err(|error| error.to_string())? else { return Ok(None) };
            let Some(reply) = message.reply.clone() else { return Ok(None) };
            let is_long = AckSubject::parse(&reply).is_some_and(|ack| ack.is_long());
            let taken = self.client.request(reply, Bytes::from_static(b"+ACK")).await;
            Ok(Some(AckTrial { is_long, taken: taken.map(drop).map_err(|error| with_causes(&error)) }))
        };
        let trial = trial.await;
        // Else NATS deletes it.
        drop(journal.delete_consumer(&consumer.cached_info().name).await);
        trial
    }

    /// Where NATS delivers a message to `subject`, of which its account may map messages to others that begin with it.
    ///
    /// # Errors
    /// The message does not arrive.
    pub async fn try_mapping(&self, subject: &str) -> Result<String, String> {
        let arrival = async {
            let subscribe = async |subject: String| {
                self.client.subscribe(subject).await.map_err(|error| with_causes(&error))
            };
            let (plain, mapped) =
                (subscribe(subject.to_owned()).await?, subscribe(format!("{subject}.>")).await?);
            let published = self.client.publish(subject.to_owned(), Bytes::new()).await;
            published.map_err(|error| with_causes(&error))?;
            let arrived = select(plain, mapped).next().await;
            arrived.map(|message| message.subject.to_string()).ok_or_else(|| "NATS is unreachable".to_owned())
        };
        let late = |_| format!("a message to {subject} does not arrive");
        tokio::time::timeout(ANSWER_WITHIN, arrival).await.map_err(late)?
    }

    /// How much the connected server may store.
    ///
    /// A server that is not in a cluster refuses a stream that reserves more than it may store before it refuses one with
    /// subjects of another stream. So it is asked for streams with the journal's subject, which it refuses in any case. It is
    /// asked for none before there is a journal.
    ///
    /// # Errors
    /// NATS has created such a stream, because the journal was deleted just then, and does not delete it again.
    pub async fn server_storage(&self) -> Result<ServerStorage, String> {
        if !matches!(self.find_stream(subject::JOURNAL_STREAM).await, Ok(Some(_))) {
            return Ok(ServerStorage::Unknown);
        }
        let Ok(account) = self.jetstream.query_account().await else { return Ok(ServerStorage::Unknown) };
        let (mut fits, mut too_much) = (0, u64::MAX >> 1);
        if self.takes_reservation(too_much).await? != Some(false) {
            return Ok(ServerStorage::Unknown);
        }
        for _ in 1..TRIALS_MAX {
            if too_much - fits <= PRECISION.max(fits / 1024) {
                break;
            }
            // First the magnitude is found, then the number.
            let low = fits.max(PRECISION);
            let between =
                if low < too_much / 4 { low.isqrt() * too_much.isqrt() } else { fits.midpoint(too_much) };
            match self.takes_reservation(between).await? {
                Some(true) => fits = between,
                Some(false) => too_much = between,
                None => return Ok(ServerStorage::Unknown),
            }
        }
        let limit = fits + account.reserved_storage;
        let is_of_account = account.limits.max_storage.is_some_and(|of_account| {
            let highest = too_much + account.reserved_storage;
            u64::try_from(of_account).is_ok_and(|of_account| of_account > 0 && of_account <= highest)
        });
        Ok(if is_of_account { ServerStorage::AccountIsLower } else { ServerStorage::Limited(limit) })
    }

    /// Whether a new stream may reserve so many bytes; `None` if that is not what NATS answers.
    ///
    /// # Errors
    /// The stream was created, and cannot be deleted.
    async fn takes_reservation(&self, bytes: u64) -> Result<Option<bool>, String> {
        let config = stream::Config {
            name: REFUSED_STREAM.to_owned(),
            subjects: vec![subject::JOURNAL_FACT.to_owned()],
            max_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            ..stream::Config::default()
        };
        match self.jetstream.create_stream(config).await {
            // The journal was just deleted.
            Ok(_) => {
                let deleted = self.jetstream.delete_stream(REFUSED_STREAM).await;
                deleted.map(|_| None).map_err(|error| {
                    format!("the stream {REFUSED_STREAM} was created to try it: {}", with_causes(&error))
                })
            }
            Err(error) => {
                // Without an answer of JetStream nothing is known.
                let CreateStreamErrorKind::JetStream(error) = error.kind() else { return Ok(None) };
                Ok(match error.error_code() {
                    ErrorCode::STREAM_SUBJECT_OVERLAP => Some(true),
                    ErrorCode::STORAGE_RESOURCES_EXCEEDED => Some(false),
                    _ => None,
                })
            }
        }
    }
}
