//! The lease: one key in a KV bucket whose entries expire.

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
/// How long a server may leave lease requests unanswered before another server is tried. A server that is cut off from
/// its cluster keeps its clients but does not answer them. A healthy cluster may take some nine seconds to elect new
/// stream leaders.
const UNANSWERED_MAX: Duration = Duration::from_secs(15);

/// The name of the bucket's stream.
pub(super) fn stream() -> String {
    format!("KV_{BUCKET}")
}

impl Bus {
    /// Creates the bucket if it does not exist.
    ///
    /// # Errors
    /// The bucket can neither be created nor opened.
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

    /// Carries out `action` within [`ANSWER_WITHIN`], after which the question is repeated.
    pub async fn lease(&self, action: &LeaseAction) -> LeaseOutcome {
        let outcome = tokio::time::timeout(ANSWER_WITHIN, self.try_lease(action)).await;
        let outcome = outcome.ok().flatten().unwrap_or(LeaseOutcome::Failed);
        if self.must_reconnect(outcome != LeaseOutcome::Failed) {
            tracing::warn!(
                "the nats-server does not answer about streams: reconnecting, to another if there is one"
            );
            // It fails only when the client has been closed.
            let _ = self.client.force_reconnect().await;
        }
        outcome
    }

    /// Records whether the lease was answered. Returns whether it has been unanswered for too long.
    fn must_reconnect(&self, is_answered: bool) -> bool {
        let mut unanswered_since = self.unanswered_since.lock().unwrap_or_else(PoisonError::into_inner);
        if is_answered || self.client.connection_state() != State::Connected {
            *unanswered_since = None;
            return false;
        }
        let is_overdue = unanswered_since.get_or_insert_with(Instant::now).elapsed() > UNANSWERED_MAX;
        if is_overdue {
            *unanswered_since = None;
        }
        is_overdue
    }

    async fn try_lease(&self, action: &LeaseAction) -> Option<LeaseOutcome> {
        let bucket = self.bucket().await?;
        let value = |holder: &LeaseHolder| serde_json::to_vec(holder).ok().map(bytes::Bytes::from);
        match action {
            LeaseAction::Create(holder) => match bucket.create(KEY, value(holder)?).await {
                Ok(revision) => Some(lease_written(bucket, revision).await),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => holder_of(bucket).await,
                Err(_) => None,
            },
            LeaseAction::Update { holder, revision } => {
                match bucket.update(KEY, value(holder)?, *revision).await {
                    Ok(revision) => Some(lease_written(bucket, revision).await),
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

    /// The process that holds the lease; `None` if there is none.
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

    /// The bucket. It is looked up only once: the server queues look-ups with all other requests about streams and
    /// consumers, and when all workers of a site start at once, the queue is so long that the lease would expire.
    async fn bucket(&self) -> Option<&kv::Store> {
        self.lease.get_or_try_init(|| self.jetstream.get_key_value(BUCKET)).await.ok()
    }
}

/// The outcome of a successful write, with the server's time of it. No other process can have written it since.
async fn lease_written(bucket: &kv::Store, revision: u64) -> LeaseOutcome {
    let entry = bucket.entry_for_revision(KEY, revision).await.ok().flatten();
    LeaseOutcome::Written { revision, at: entry.map(|entry| utc(entry.created)) }
}

/// Converts by way of [`SystemTime`], which works with whichever time crate the client is built.
fn utc(time: impl Into<SystemTime>) -> DateTime<Utc> {
    time.into().into()
}

async fn holder_of(bucket: &kv::Store) -> Option<LeaseOutcome> {
    let entry = bucket.entry(KEY).await.ok()?.filter(|entry| entry.operation == Operation::Put)?;
    let holder = json::object(&entry.value).ok()?;
    Some(LeaseOutcome::Taken { holder, revision: entry.revision })
}
