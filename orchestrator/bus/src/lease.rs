//! The lease: one key of a KV bucket that forgets it after a while.

use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use async_nats::connection::State;
use async_nats::jetstream::kv::{self, CreateErrorKind, Operation, UpdateErrorKind};
use chrono::{DateTime, Utc};
use os_upgrade_protocol::json;
use os_upgrade_shell::lease::{ANSWER_WITHIN, LEASE_TTL, LeaseAction, LeaseHolder, LeaseOutcome};

use super::Bus;
use super::streams::StreamsError;

const BUCKET: &str = "os-upgrade-lease";
const KEY: &str = "leader";
/// How long a server may leave the lease unanswered before another one is tried: one that is cut off from its cluster keeps
/// its clients, and has nothing to say to them. A cluster that is well may take some nine seconds for new leaders of its
/// streams.
const UNANSWERED_MAX: Duration = Duration::from_secs(15);

/// The name of the bucket's stream.
pub(super) fn stream() -> String {
    format!("KV_{BUCKET}")
}

impl Bus {
    /// Makes the bucket if it is missing.
    ///
    /// # Errors
    /// The server does not give it.
    pub async fn ensure_lease(&self, replicas: usize) -> Result<(), StreamsError> {
        let config = kv::Config {
            bucket: BUCKET.to_owned(),
            max_age: LEASE_TTL,
            num_replicas: replicas,
            ..kv::Config::default()
        };
        match self.jetstream.create_key_value(config).await {
            Ok(_) => Ok(()),
            Err(error) => match self.jetstream.get_key_value(BUCKET).await {
                Ok(_) => Ok(()),
                Err(_) => Err(StreamsError::Unusable { stream: BUCKET.to_owned(), source: error.into() }),
            },
        }
    }

    /// Carries out what the lease wants, within the time after which it is asked for anew.
    pub async fn lease(&self, action: &LeaseAction) -> LeaseOutcome {
        let outcome = tokio::time::timeout(ANSWER_WITHIN, self.try_lease(action)).await;
        let outcome = outcome.ok().flatten().unwrap_or(LeaseOutcome::Failed);
        if self.is_given_up(outcome != LeaseOutcome::Failed) {
            tracing::warn!(
                "the nats-server does not answer about streams: connecting anew, to another if there is one"
            );
            // It fails only when the client has been closed.
            let _ = self.client.force_reconnect().await;
        }
        outcome
    }

    /// Notes whether the lease was answered, and whether the server has had its time by now.
    fn is_given_up(&self, is_answered: bool) -> bool {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        if is_answered || self.client.connection_state() != State::Connected {
            *unanswered = None;
            return false;
        }
        let is_over = unanswered.get_or_insert_with(Instant::now).elapsed() > UNANSWERED_MAX;
        if is_over {
            *unanswered = None;
        }
        is_over
    }

    async fn try_lease(&self, action: &LeaseAction) -> Option<LeaseOutcome> {
        let bucket = self.bucket().await?;
        let value = |holder: &LeaseHolder| serde_json::to_vec(holder).ok().map(bytes::Bytes::from);
        match action {
            LeaseAction::Create(holder) => match bucket.create(KEY, value(holder)?).await {
                Ok(revision) => Some(written(bucket, revision).await),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => holder_of(bucket).await,
                Err(_) => None,
            },
            LeaseAction::Update { holder, revision } => {
                match bucket.update(KEY, value(holder)?, *revision).await {
                    Ok(revision) => Some(written(bucket, revision).await),
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                        holder_of(bucket).await
                    }
                    Err(_) => None,
                }
            }
            LeaseAction::Release { revision } => {
                bucket.delete_expect_revision(KEY, Some(*revision)).await.ok()?;
                Some(LeaseOutcome::Released)
            }
        }
    }

    /// Who holds the lease, if somebody does.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn lease_holder(&self) -> Result<Option<LeaseHolder>, StreamsError> {
        let unusable = |source| StreamsError::Unusable { stream: BUCKET.to_owned(), source };
        if self.find_stream(&stream()).await?.is_none() {
            return Ok(None);
        }
        let bucket = self.bucket().await.ok_or_else(|| unusable("no answer".into()))?;
        let entry = bucket.entry(KEY).await.map_err(|error| unusable(error.into()))?;
        let entry = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()))
    }

    /// The bucket. It is looked up once: the server answers look-ups in turn with every other request about streams
    /// and consumers, and a site whose workers all start at once makes so many of them that a lease would expire.
    async fn bucket(&self) -> Option<&kv::Store> {
        self.lease.get_or_try_init(|| self.jetstream.get_key_value(BUCKET)).await.ok()
    }
}

/// That it is written, and when by the server's clock. It may have been written again since by nobody else.
async fn written(bucket: &kv::Store, revision: u64) -> LeaseOutcome {
    let entry = bucket.entry_for_revision(KEY, revision).await.ok().flatten();
    LeaseOutcome::Written { revision, at: entry.map(|entry| utc(entry.created)) }
}

/// By way of the standard library's time, which is the same whichever time crate the client is built with.
fn utc(time: impl Into<SystemTime>) -> DateTime<Utc> {
    time.into().into()
}

async fn holder_of(bucket: &kv::Store) -> Option<LeaseOutcome> {
    let entry = bucket.entry(KEY).await.ok()?.filter(|entry| entry.operation == Operation::Put)?;
    let holder = json::object(&entry.value).ok()?;
    Some(LeaseOutcome::Taken { holder, revision: entry.revision })
}
