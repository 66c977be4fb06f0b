//! Pruning: what is too old is deleted, in small steps, and its space is given back to the file system.

use chrono::{DateTime, Utc};
use os_upgrade_shell::journal::Committed;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, query, query_as, query_scalar};

use super::error::StoreError;
use super::projector::Projector;
use super::time::to_text;
use super::write;

/// How many of the newest runs are kept, however old they are.
pub(super) const RUNS_KEPT_MIN: u32 = 200;
/// The most runs that are deleted in one transaction, with their hosts and facts.
const RUNS_AT_ONCE: u32 = 10;
/// The most other facts that are deleted in one transaction.
const FACTS_AT_ONCE: u32 = 2_000;
/// The most pages that are given back at once.
const PAGES_AT_ONCE: u32 = 2_000;

impl Projector {
    /// Moves the state with which folding begins to before `next`, the record that was applied last or any before it. Only
    /// facts before it are pruned.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn advance_base(&mut self, next: &Committed) -> Result<(), StoreError> {
        Ok(write::base(&mut self.connection, next).await?)
    }

    /// Deletes some of the records that a client waited for a slot, and, if `before` is given, of the runs that ended
    /// before then, and of facts that are about no run and became true before then. What folding needs, and the newest
    /// 200 runs, stay. Returns whether there is more to delete.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn prune(&mut self, before: Option<DateTime<Utc>>) -> Result<bool, StoreError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        let base: Option<i64> =
            query_scalar("SELECT sequence FROM base").fetch_optional(&mut *transaction).await?;
        let Some(base) = base else { return Ok(false) };
        let mut is_more = waits(&mut transaction, base).await?;
        if let Some(before) = before {
            is_more |= runs(&mut transaction, base, before).await?;
            is_more |= facts_without_run(&mut transaction, base, before).await?;
        }
        transaction.commit().await?;
        let give_back = format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})");
        query(sqlx::AssertSqlSafe(give_back)).fetch_all(&mut self.connection).await?;
        Ok(is_more)
    }
}

/// A run whose end is missing, because it was in a gap, counts from its start. Runs are deleted only once all of their
/// facts precede the base.
async fn runs(connection: &mut SqliteConnection, base: i64, before: DateTime<Utc>) -> sqlx::Result<bool> {
    let old = "SELECT id FROM runs WHERE coalesce(ended_at, started_at) < ?1 \
         AND number <= (SELECT number FROM runs ORDER BY number DESC LIMIT 1 OFFSET ?2) \
         AND NOT EXISTS (SELECT 1 FROM facts WHERE run = id AND sequence >= ?3) ORDER BY number LIMIT ?4";
    let old: Vec<String> = query_scalar(old)
        .bind(to_text(before))
        .bind(RUNS_KEPT_MIN)
        .bind(base)
        .bind(RUNS_AT_ONCE)
        .fetch_all(&mut *connection)
        .await?;
    for id in &old {
        let delete = "DELETE FROM facts WHERE run = ? RETURNING sequence, place";
        let deleted = query_as(delete).bind(id).fetch_all(&mut *connection).await?;
        record(connection, &deleted).await?;
        for delete in ["DELETE FROM run_hosts WHERE run = ?", "DELETE FROM runs WHERE id = ?"] {
            query(delete).bind(id).execute(&mut *connection).await?;
        }
    }
    Ok(old.len() >= RUNS_AT_ONCE as usize)
}

async fn facts_without_run(
    connection: &mut SqliteConnection,
    base: i64,
    before: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let delete = "DELETE FROM facts WHERE (sequence, place) IN \
         (SELECT sequence, place FROM facts WHERE run IS NULL AND at < ? AND sequence < ? LIMIT ?) \
         RETURNING sequence, place";
    let deleted = query_as(delete)
        .bind(to_text(before))
        .bind(base)
        .bind(FACTS_AT_ONCE)
        .fetch_all(&mut *connection)
        .await?;
    record(connection, &deleted).await?;
    Ok(deleted.len() >= FACTS_AT_ONCE as usize)
}

/// Records up to where facts have been pruned, of those at these sequences and places.
async fn record(connection: &mut SqliteConnection, deleted: &[(i64, i64)]) -> sqlx::Result<()> {
    let Some((sequence, place)) = deleted.iter().max() else { return Ok(()) };
    let upsert = "INSERT INTO pruned VALUES (1, ?1, ?2) ON CONFLICT (one) \
         DO UPDATE SET sequence = ?1, place = ?2 WHERE (sequence, place) < (?1, ?2)";
    query(upsert).bind(sequence).bind(place).execute(connection).await?;
    Ok(())
}

/// That a client waits is in the state; that it did is of no interest later.
async fn waits(connection: &mut SqliteConnection, base: i64) -> sqlx::Result<bool> {
    let delete = "DELETE FROM facts WHERE (sequence, place) IN \
         (SELECT sequence, place FROM facts WHERE list = 'waits' AND sequence < ? LIMIT ?)";
    let deleted = query(delete).bind(base).bind(FACTS_AT_ONCE).execute(connection).await?;
    Ok(deleted.rows_affected() >= FACTS_AT_ONCE.into())
}
