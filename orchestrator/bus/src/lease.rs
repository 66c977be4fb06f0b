//! The lease: one key in a KV bucket whose entries expire.

use std::error::Error;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use async_nats::connection::State;
use async_nats::jetstream::kv::{self, CreateErrorKind, Operation, UpdateErrorKind};
use async_nats::jetstream::stream::Config;
use chrono::{DateTime, Utc};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::json;
use os_upgrade_shell::lease::{ANSWER_WITHIN, LeaseAction, LeaseHolder, LeaseOutcome};

use super::storage::storage_limit;
use super::streams::{LEASE_BUCKET, LEASE_STREAM, Layout, StreamsError, unusable};
use super::{Bus, LeaseBucket};

const KEY: &str = "leader";
/// How long a server may leave lease requests unanswered before another server is tried. A server that is cut off from
/// its cluster keeps its clients but does not answer them. A healthy cluster may take some nine seconds to elect new
/// stream leaders.
const UNANSWERED_MAX: Duration = Duration::from_secs(15);

impl Bus {
    /// Checks the bucket, or creates it if it does not exist.
    ///
    /// # Errors
    /// It cannot be created, or exists with other settings. It is not changed.
    pub async fn ensure_lease(&self, layout: &Layout<'_>) -> Result<(), StreamsError> {
        let config = layout.lease();
        self.ensure_stream(&config).await?;
        let look_up = || async {
            let store = self.jetstream.get_key_value(LEASE_BUCKET).await;
            let store = store.map_err(|error| unusable(&config.name, error))?;
            Ok::<_, StreamsError>(LeaseBucket { store, config: config.clone() })
        };
        // Looked up only once: the server queues look-ups with all other requests about streams and consumers, and when
        // all workers of a site start at once, the queue is so long that the lease would expire.
        self.lease.get_or_try_init(look_up).await?;
        Ok(())
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
        let LeaseBucket { store: bucket, config } = self.lease.get()?;
        let value = |holder: &LeaseHolder| serde_json::to_vec(holder).ok().map(bytes::Bytes::from);
        match action {
            LeaseAction::Create(holder) => match bucket.create(KEY, value(holder)?).await {
                Ok(revision) => Some(lease_written(bucket, revision).await),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => holder_of(bucket).await,
                Err(error) => self.refused(config, &error).await,
            },
            LeaseAction::Update { holder, revision } => {
                match bucket.update(KEY, value(holder)?, *revision).await {
                    Ok(revision) => Some(lease_written(bucket, revision).await),
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                        holder_of(bucket).await
                    }
                    Err(error) => self.refused(config, &error).await,
                }
            }
            LeaseAction::Release { revision } => {
                bucket.delete_expect_revision(KEY, Some(*revision)).await.ok()?;
                Some(LeaseOutcome::Released)
            }
        }
    }

    /// The outcome of a write that was refused. The bucket is created again if it is missing: then the question has no
    /// answer, and is repeated.
    async fn refused(
        &self,
        config: &Config,
        error: &(dyn Error + Send + Sync + 'static),
    ) -> Option<LeaseOutcome> {
        if let Some(limit) = storage_limit(error) {
            return Some(LeaseOutcome::Full(limit));
        }
        let missing = self.find_stream(&config.name).await.is_ok_and(|found| found.is_none());
        if missing {
            tracing::warn!(stream = config.name, "the lease is not there: creating it again");
            if let Err(error) = self.ensure_stream(config).await {
                tracing::warn!("{}", with_causes(&error));
            }
        }
        None
    }

    /// The process that holds the lease; `None` if there is none.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn lease_holder(&self) -> Result<Option<LeaseHolder>, StreamsError> {
        if self.find_stream(LEASE_STREAM).await?.is_none() {
            return Ok(None);
        }
        let bucket = self.jetstream.get_key_value(LEASE_BUCKET).await;
        let bucket = bucket.map_err(|error| unusable(LEASE_STREAM, error))?;
        let entry = bucket.entry(KEY).await.map_err(|error| unusable(LEASE_STREAM, error))?;
        let entry = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()))
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
