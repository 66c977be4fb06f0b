//! How many runs and hosts came to which end since the store began. Pruning does not lower the numbers.

use chrono::{DateTime, Utc};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row as _, query};

use super::error::StoreError;
use super::row;

/// Runs and hosts, counted by their end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs that ended.
    pub runs: Vec<RunTotal>,
    /// Hosts that a run upgraded, or that failed or timed out in one: the status, one word, and their number.
    pub hosts: Vec<(String, u64)>,
}

/// The runs with one result and one kind of trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTotal {
    /// How they ended, one word.
    pub result: String,
    /// The kind of what started them, one word.
    pub trigger_kind: String,
    /// How many there are.
    pub total: u64,
    /// When the last one ended.
    pub last_ended_at: DateTime<Utc>,
}

pub(super) async fn read(connection: &mut SqliteConnection) -> Result<Totals, StoreError> {
    let runs = query("SELECT result, trigger_kind, total, last_ended_at FROM run_totals")
        .fetch_all(&mut *connection)
        .await?;
    let run = |row: &SqliteRow| {
        Ok(RunTotal {
            result: row.try_get("result")?,
            trigger_kind: row.try_get("trigger_kind")?,
            total: row.try_get("total")?,
            last_ended_at: row::time(row, "last_ended_at")?,
        })
    };
    let hosts = query("SELECT status, total FROM host_totals").fetch_all(connection).await?;
    let host = |row: &SqliteRow| Ok((row.try_get("status")?, row.try_get("total")?));
    Ok(Totals {
        runs: runs.iter().map(run).collect::<Result<_, StoreError>>()?,
        hosts: hosts.iter().map(host).collect::<Result<_, StoreError>>()?,
    })
}
